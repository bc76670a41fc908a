package report

import (
	"math"
	"slices"
	"strings"
	"time"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/ledger"
)

// noticeableWait distinguishes a message that waited before its first attempt from one that was
// attempted in the claim that stored it.
const noticeableWait = 100 * time.Millisecond

// WaitedBefore is the index of the attempt that ended the waits; -1 when none did.
func (p *page) WaitedBefore() int {
	switch {
	case len(p.Waits) == 0 || len(p.Attempts) == 0 || p.State == string(ledger.Waiting):
		return -1
	case p.State == string(ledger.Failed):
		return -1 // it waited until it failed
	case p.Attempts[0].ClaimedAt.Sub(p.ReceivedAt) >= noticeableWait:
		return 0
	}
	return len(p.Attempts) - 1
}

func (w *Wait) length() time.Duration {
	return time.Duration(math.Round(w.Seconds * float64(time.Second)))
}

// WaitedTotal is how long the message has waited in all.
func (p *page) WaitedTotal() (sum time.Duration) {
	for i := range p.Waits {
		sum += p.Waits[i].length()
	}
	return sum
}

// WaitsForLimitAlone reports whether the message has waited only for Limit, which the next sentence
// names.
func (p *page) WaitsForLimitAlone() bool {
	return p.Limit != nil && len(p.Waits) == 1 && p.Waits[0].On == p.Limit.On
}

// Waited is how long the message has waited, and for what.
func (p *page) Waited() string {
	words := make([]string, len(p.Waits))
	for i := range p.Waits {
		words[i] = span(p.Waits[i].length()) + p.waitedFor(&p.Waits[i])
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return span(p.WaitedTotal()) + ": " + enumerate(words)
}

// waitedFor says what was waited for, and why it was not available.
func (p *page) waitedFor(w *Wait) string {
	if words, ok := waitWords[w.Reason]; ok {
		return " because " + words
	}
	if channel, key, ok := admission.ParseOn(w.On); ok {
		return " for " + limitWords(channel, key) + " (" + p.lacked(w) + ")"
	}
	if w.On == "" {
		return " (" + exclusion(w.Reason) + ")"
	}
	return " for " + w.On + " (" + exclusion(w.Reason) + ")"
}

// lacked says why a limit did not admit the message. If the last decision found that it never can,
// that is the reason, even if it was used up at an earlier decision.
func (p *page) lacked(w *Wait) string {
	for i := range p.ranking.candidates {
		if c := &p.ranking.candidates[i]; c.Limit == w.On && c.Reason == w.Reason && c.Never != "" {
			return map[string]string{
				lackClosed: "closed: 0 at the last look", lackTooSmall: "too small for the message at " +
					"the last look",
			}[c.Never]
		}
	}
	switch w.Reason {
	case "reserved", "no_share":
		return exclusion(w.Reason)
	}
	return "no room"
}

// Held reports whether the message is held for its first choice.
func (p *page) Held() bool { return p.ranking.held() }

// ExcludedLast says why each channel before the chosen one was excluded at the last decision.
func (p *page) ExcludedLast() string {
	return excluded(passedOver(p.ranking.candidates), p.ranking.doc)
}

// ExcludedOtherwise is ExcludedLast without the channels that Limit excluded.
func (p *page) ExcludedOtherwise() string {
	others := slices.Clone(passedOver(p.ranking.candidates))
	return excluded(slices.DeleteFunc(others, func(c Candidate) bool {
		return p.Limit.excludes(&c, p.Reason)
	}), p.ranking.doc)
}

// excluded lists channels with their exclusion reasons, grouped by reason. doc is the document that
// has the limits, nil when it is not known.
func excluded(passed []Candidate, doc *config.Routing) string {
	var order []string
	channels := map[string][]string{}
	for i := range passed {
		c := &passed[i]
		why := exclusion(strings.TrimSpace(c.Never + " " + c.Reason))
		if c.Limit != "" && c.Never == "" {
			why = limitExclusion(doc, c.Reason, c.Limit)
		}
		if channels[why] == nil {
			order = append(order, why)
		}
		channels[why] = append(channels[why], c.Channel)
	}
	words := make([]string, len(order))
	for i, why := range order {
		words[i] = list(channels[why]) + " could not take it (" + why + ")"
	}
	return list(words)
}

// TooLate reports whether the limit cannot admit the message before its deadline. It is false for a
// message that is held for its first choice, because other channels may take it earlier.
func (p *page) TooLate() bool {
	if p.Held() {
		return false
	}
	if p.Limit.Until.IsZero() {
		return p.Lack == lackNoSlot
	}
	return !p.Limit.Until.Before(*p.Deadline)
}

// RoomLater reports whether Until of the limit is in the future.
func (p *page) RoomLater() bool { return p.Limit.Until.After(p.now) }

// overdue is how late a message must be for a sentence about it. Due messages are read every
// second, the oldest first.
const overdue = 5 * time.Second

// Overdue is how long the message has been due; 0 when that is not unusual.
func (p *page) Overdue() time.Duration {
	if late := p.now.Sub(p.NextAt); !p.now.IsZero() && late > overdue {
		return late
	}
	return 0
}

// LastLook reports whether the message is next due at its deadline.
func (p *page) LastLook() bool { return p.Deadline != nil && !p.NextAt.Before(*p.Deadline) }

// WouldBeHeld is how long a message would be held for its first choice although another channel
// could take it at once.
func (p *page) WouldBeHeld() time.Duration {
	route := p.doc.Route(p.Route)
	if route == nil || len(passedOver(p.Candidates)) == len(p.Candidates) {
		return 0
	}
	return route.Wait
}

// ChosenCandidate is the candidate that a forecast chooses; nil when it chooses none.
func (p *page) ChosenCandidate() *Candidate {
	at := slices.IndexFunc(p.Candidates, func(c Candidate) bool {
		return p.Chosen != nil && c.Channel == *p.Chosen
	})
	if at < 0 {
		return nil
	}
	return &p.Candidates[at]
}
