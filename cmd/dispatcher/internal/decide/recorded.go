package decide

import (
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// SelectorsAt are the selectors of a recorded message that still counted at a moment.
func SelectorsAt(m *ledger.Message, at time.Time) []selector.Selector {
	msg, problem := envelope.Decode(m.Envelope, true)
	if problem != nil {
		return nil // it was decoded before it was stored: only damage explains this
	}
	return selector.Unexpired(msg.Selectors, at.Sub(m.ReceivedAt))
}

// ExpiredSelectors are the keys of a message's selectors that no longer counted at a moment.
func ExpiredSelectors(m *ledger.Message, at time.Time) []string {
	msg, problem := envelope.Decode(m.Envelope, true)
	if problem != nil {
		return nil
	}
	age := at.Sub(m.ReceivedAt)
	var expired []string
	for _, s := range msg.Selectors {
		if s.ExpiresAfter > 0 && age >= s.ExpiresAfter {
			expired = append(expired, s.Key)
		}
	}
	return expired
}

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

// DestinationOf is where a recorded message goes. country may be nil, and then none is known. The
// number is empty when the record is damaged.
func DestinationOf(m *ledger.Message, country func(number string) string) Destination {
	msg, problem := envelope.Decode(m.Envelope, true)
	if problem != nil {
		return Destination{}
	}
	to := Destination{Number: msg.To}
	if label, ok := msg.Labels[networkLabel]; ok {
		to.Network = network(label.String())
	}
	if country != nil {
		to.Country = country(msg.To)
	}
	return to
}

// Recipient is the number that a recorded message goes to, to tell which limits count it; empty
// when the record is damaged. It must not be shown.
func Recipient(m *ledger.Message) string {
	msg, problem := envelope.Decode(m.Envelope, true)
	if problem != nil {
		return ""
	}
	return msg.To
}
