package decide

import (
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/ledger"
)

// ReplacesSender reports whether a channel with such rules puts a sender of its own in the place of
// a recorded message's.
func ReplacesSender(m *ledger.Message, s *config.Senders, country func(number string) string) bool {
	msg, problem := envelope.Decode(m.Envelope, true)
	if problem != nil || msg.From == "" || len(s.Rules) == 0 {
		return false
	}
	sender, ok := s.For(msg.From, country(msg.To))
	return ok && sender != msg.From
}

// refuses reports whether a channel may not carry the message's sender.
func (t *Task) refuses(ch *Channel) bool {
	_, ok := t.sender(ch)
	return !ok
}

// replaces reports whether a channel puts a sender of its own in the place of the message's.
func (t *Task) replaces(ch *Channel) bool {
	sender, ok := t.sender(ch)
	return ok && t.msg.From != "" && sender != t.msg.From
}

// sender is what a channel puts on the message in place of a sender; false when it may not carry
// it.
func (t *Task) sender(ch *Channel) (sender string, ok bool) {
	return ch.Senders.For(t.msg.From, t.to.Country)
}
