package report

import (
	"strings"
	"time"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// Wait is for how long a message waited for one and the same thing, in all.
type Wait struct {
	Reason string `json:"reason"` // a word of the closed list that candidates have, or why a message waits for no channel
	// On is the channel, tenant:NAME or prefix:+NUMBER over all channels, or CHANNEL tenant:NAME; empty for nothing in particular.
	On      string  `json:"on"`
	Seconds float64 `json:"seconds"`
}

func waitsOf(m *ledger.Message) []Wait {
	waits := make([]Wait, len(m.Waits))
	for i, w := range m.Waits {
		waits[i] = Wait{Reason: w.Reason, On: w.On, Seconds: w.For.Seconds()}
	}
	return waits
}

// waitedFor tells how long a message has waited, and for what; empty when it is not known to have.
func waitedFor(waits []ledger.Wait) string {
	var all time.Duration
	words := make([]string, len(waits))
	for i, w := range waits {
		all += w.For
		words[i] = span(w.For) + waitedOn(&w)
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return span(all) + ": " + enumerate(words)
}

// waitedOn names what was waited for and what was the matter with it.
func waitedOn(w *ledger.Wait) string {
	if words, ok := waitWords[w.Reason]; ok {
		return " because " + words
	}
	if w.On == "" {
		return " (" + whyNot(w.Reason, 1) + ")"
	}
	return " for " + waitedThing(w.On) + " (" + whyNot(w.Reason, 1) + ")"
}

// waitedThing names a channel, or one of its limits.
func waitedThing(on string) string {
	if channel, key, ok := admission.ParseOn(on); ok {
		return limitWords(channel, key)
	}
	if scope, err := admission.ParseScope(on); err == nil {
		return scopeWords(scope, "")
	}
	if channel, text, found := strings.Cut(on, " "); found {
		if scope, err := admission.ParseScope(text); err == nil {
			return scopeWords(scope, " on "+channel)
		}
	}
	return on
}

// limitWords is such as "the limit of messages per second on alpha".
func limitWords(channel string, key admission.Key) string {
	words := "the limit of " + key.Unit.String() + " per " + windowWords[key.Window]
	where := " over all channels"
	if channel != "" {
		where = " on " + channel
	}
	if key.Scope == (admission.Scope{}) {
		return words + where
	}
	return words + " of " + scopeWords(key.Scope, where)
}

var windowWords = map[admission.Window]string{
	admission.Second: "second", admission.Minute: "minute", admission.Hour: "hour", admission.Day: "day",
}

func scopeWords(s admission.Scope, where string) string {
	switch {
	case s.Tenant != "":
		return "tenant " + s.Tenant + where
	case s.Prefix != "":
		return "numbers that begin with " + s.Prefix + where
	}
	return s.String() + where
}
