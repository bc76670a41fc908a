package report

import (
	"slices"
	"strings"
	"time"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// Wait is for how long a message waited for one and the same thing, in all.
type Wait struct {
	Reason string `json:"reason"` // a word of the closed list that candidates have, or why a message waits for no channel
	// On is the channel, or its limit as admission.Key.On names it: "alpha 1s messages", "tenant:shop 1d money"; empty
	// for nothing in particular.
	On      string  `json:"on"`
	Seconds float64 `json:"seconds"`
}

// allWaits are the waits of a message. That under way is among them, up to now; it is left out when now is zero.
func allWaits(m *ledger.Message, now time.Time) []ledger.Wait {
	if m.State != ledger.Waiting || m.WaitingSince.IsZero() || now.IsZero() {
		return m.Waits
	}
	present := ledger.Wait{Reason: m.Reason, On: m.WaitsFor, For: max(now.Sub(m.WaitingSince), 0)}
	waits := slices.Clone(m.Waits)
	at := slices.IndexFunc(waits, func(w ledger.Wait) bool { return w.Reason == present.Reason && w.On == present.On })
	if at < 0 {
		return append(waits, present)
	}
	waits[at].For += present.For
	return waits
}

func waitsAsData(all []ledger.Wait) []Wait {
	waits := make([]Wait, len(all))
	for i, w := range all {
		waits[i] = Wait{Reason: w.Reason, On: w.On, Seconds: w.For.Seconds()}
	}
	return waits
}

// waitedFor tells how long a message has waited, and for what; empty when it is not known to have. seen are the channels that
// the last wait looked at.
func waitedFor(waits []ledger.Wait, seen []Candidate) string {
	var all time.Duration
	words := make([]string, len(waits))
	for i, w := range waits {
		all += w.For
		words[i] = span(w.For) + waitedOn(&w, seen)
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return span(all) + ": " + enumerate(words)
}

// waitedOn names what was waited for and what was the matter with it.
func waitedOn(w *ledger.Wait, seen []Candidate) string {
	if words, ok := waitWords[w.Reason]; ok {
		return " because " + words
	}
	if w.On == "" {
		return " (" + whyNot(w.Reason, 1) + ")"
	}
	if channel, key, ok := admission.ParseOn(w.On); ok {
		return " for " + limitWords(channel, key) + " (" + lackOf(w, seen) + ")"
	}
	return " for " + w.On + " (" + whyNot(w.Reason, 1) + ")"
}

// lackOf says what the matter was with a limit. A limit that the last look found never to have room was not used up, though it
// may have been at a look before.
func lackOf(w *ledger.Wait, seen []Candidate) string {
	at := slices.IndexFunc(seen, func(c Candidate) bool { return c.Limit == w.On && c.Reason == w.Reason })
	if at >= 0 {
		if words, ok := neverWords[seen[at].Never]; ok {
			return words
		}
	}
	return because(limitLackWords, w.Reason)
}
