package decide

import (
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// SelectorsAt are the selectors of a recorded message that had not expired at a moment.
func SelectorsAt(m *ledger.Message, at time.Time) []selector.Selector {
	msg, problem := envelope.Decode(m.Envelope, true)
	if problem != nil {
		return nil // it was decoded before it was stored, so the row is damaged
	}
	return selector.Unexpired(msg.Selectors, at.Sub(m.ReceivedAt))
}

// ExpiredSelectors are the keys of a message's selectors that had expired at a moment.
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

// ReplacesSender reports whether a channel with these rules replaces the sender of a recorded
// message.
func ReplacesSender(m *ledger.Message, s *config.Senders, country func(number string) string) bool {
	msg, problem := envelope.Decode(m.Envelope, true)
	if problem != nil || msg.From == "" || len(s.Rules) == 0 {
		return false
	}
	sender, ok := s.For(msg.From, country(msg.To))
	return ok && sender != msg.From
}

// DestinationOf is where a recorded message goes. Without country, which may be nil, no country is
// known. The number is empty when the record is damaged.
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

// SendAt is the earliest time at which a recorded message may be sent; zero when its producer named
// none, or when the record is damaged.
func SendAt(m *ledger.Message) time.Time {
	msg, problem := envelope.Decode(m.Envelope, true)
	if problem != nil {
		return time.Time{}
	}
	return msg.SendAt
}

// Recipient is the number of a recorded message, for finding the limits that count it; empty when
// the record is damaged. It must not be shown.
func Recipient(m *ledger.Message) string {
	msg, problem := envelope.Decode(m.Envelope, true)
	if problem != nil {
		return ""
	}
	return msg.To
}
