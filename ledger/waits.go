package ledger

import (
	"encoding/json"
	"math"
	"time"

	"dispatcher/admission"
)

// waitJSON is an entry of messages.waits.
type waitJSON struct {
	Reason string  `json:"reason"`
	On     string  `json:"on,omitempty"`
	Millis float64 `json:"ms"`
}

// encodeWaits is JSON; empty for nil, which keeps what the row has.
func encodeWaits(waits []Wait) string {
	if waits == nil {
		return ""
	}
	list := make([]waitJSON, len(waits))
	for i, w := range waits {
		list[i] = waitJSON{w.Reason, w.On, float64(w.For.Microseconds()) / 1000}
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic("ledger: " + err.Error()) // words and a finite number always encode
	}
	return string(text)
}

// decodeWaits reads what encodeWaits wrote. What cannot be read tells nothing: it is for
// people, and no decision depends on it.
func decodeWaits(text string) []Wait {
	if text == "" {
		return nil
	}
	var list []waitJSON
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil
	}
	waits := make([]Wait, len(list))
	for i, w := range list {
		waits[i] = Wait{Reason: w.Reason, On: w.On, For: time.Duration(math.Round(w.Millis*1000)) * time.Microsecond}
	}
	return waits
}

// ticket is that of an attempt which was claimed at a time and goes on with what was accepted
// earlier.
func ticket(accepted, claimed time.Time) *admission.Ticket {
	t := admission.NewTicket(accepted.UTC())
	t = t.CheckIn(claimed.UTC())
	return &t
}
