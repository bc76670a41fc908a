package decide

import (
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
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
