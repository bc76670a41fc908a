package dispatch

import (
	"slices"
	"strings"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/provider/sms"
)

// Senders says which sender ids a channel may carry. The zero value lets all pass.
type Senders struct {
	// Default is the sender of messages that name none; empty leaves it to the adapter.
	Default string
	// Rules are looked through in their order; the first whose countries fit counts.
	Rules []SenderRule
}

// SenderRule says which sender ids pass to some countries.
type SenderRule struct {
	Countries []string         // ISO 3166 in lower case; empty fits all
	Allow     []sms.SenderKind // kinds that pass
	IDs       []string         // ids that pass
	From      string           // takes the place of what does not pass, and of none; empty for nothing
}

// byCountry reports whether a rule goes by countries.
func (s *Senders) byCountry() bool {
	return slices.ContainsFunc(s.Rules, func(r SenderRule) bool { return len(r.Countries) > 0 })
}

// carry is the sender that a channel puts on a message to a country; false when it may not carry the
// message's own and has none in its place.
func (s *Senders) carry(from, country string) (sender string, ok bool) {
	if from == "" {
		from = s.Default
	}
	for i := range s.Rules {
		if r := &s.Rules[i]; oneOf(r.Countries, country) {
			return r.carry(from)
		}
	}
	return from, true
}

// gives reports whether the channel gives a sender to messages that have none, or have another. A number is the same with and
// without its plus, as adapters see it.
func (s *Senders) gives(sender string) bool {
	same := func(own string) bool { return strings.TrimPrefix(own, "+") == strings.TrimPrefix(sender, "+") }
	return same(s.Default) || slices.ContainsFunc(s.Rules, func(r SenderRule) bool { return same(r.From) })
}

func (r *SenderRule) carry(from string) (sender string, ok bool) {
	switch {
	case from == "":
		return r.From, true // the adapter has one of its own, or the carrier has
	case slices.Contains(r.IDs, from), slices.Contains(r.Allow, sms.KindOf(from)):
		return from, true
	}
	return r.From, r.From != ""
}

// ReplacesSender reports whether a channel with such rules puts a sender of its own in the place of a recorded message's.
func ReplacesSender(m *ledger.Message, s *Senders, country func(number string) string) bool {
	msg, problem := envelope.Decode(m.Envelope, true)
	if problem != nil || msg.From == "" || len(s.Rules) == 0 {
		return false
	}
	sender, ok := s.carry(msg.From, country(msg.To))
	return ok && sender != msg.From
}

// refuses reports whether a channel may not carry the message's sender.
func (t *task) refuses(ch *Channel) bool {
	_, ok := t.sender(ch)
	return !ok
}

// replaces reports whether a channel puts a sender of its own in the place of the message's.
func (t *task) replaces(ch *Channel) bool {
	sender, ok := t.sender(ch)
	return ok && t.msg.From != "" && sender != t.msg.From
}

// sender is what a channel puts on the message in place of a sender; false when it may not carry it.
func (t *task) sender(ch *Channel) (sender string, ok bool) {
	return ch.Senders.carry(t.msg.From, t.to.Country)
}
