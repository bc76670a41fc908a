package report

import (
	"time"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/ledger"
)

// Why a limit does not admit a message.
const (
	lackUsedUp   = "used_up"   // nothing is left in its window
	lackNoSlot   = "no_slot"   // it spaces its units, and the next one is due later
	lackReserved = "reserved"  // the rest is reserved for other lanes
	lackNoShare  = "no_share"  // the policy left nothing for the process that made the claim
	lackClosed   = "closed"    // it is 0
	lackTooSmall = "too_small" // the message takes more than its maximum
	lackFuture   = "future"    // its running window begins in the future
	lackUnpaid   = "unpaid"    // the budget is spent
)

// limitWait is the limit that a message waits for.
type limitWait struct {
	On      string // as admission.Key.On
	Channel string // empty for a limit over all channels
	Key     admission.Key
	Limit   *admission.Limit // nil when the routing document is not known, or does not have it
	Lack    string
	// Until is the earliest time at which the limit can admit the message; zero when that is not
	// known, or never.
	Until time.Time
	// Begins is the start of the running window, if that is in the future.
	Begins time.Time
}

// newLimitWait finds the limit that a waiting message waits for; nil when it waits for something
// else. doc is the document of the decision to wait, candidates are those of that decision. Days
// begin at midnight in zone.
func newLimitWait(
	m *ledger.Message, doc *config.Routing, zone *time.Location, candidates []Candidate,
) *limitWait {
	channel, key, ok := admission.ParseOn(m.WaitsFor)
	if !ok || m.State != ledger.Waiting {
		return nil
	}
	l := &limitWait{On: m.WaitsFor, Channel: channel, Key: key, Limit: limitOn(doc, channel, key)}
	l.Lack = l.lack(m.Reason, candidates)
	switch l.Lack {
	case lackUsedUp:
		if !m.WaitingSince.IsZero() {
			l.Until = key.Window.End(m.WaitingSince, zone)
		}
	case lackNoSlot, lackReserved, lackNoShare:
		if m.NextAt.Before(m.ExpiresAt) {
			l.Until = m.NextAt
		}
	}
	return l
}

// lack derives Lack from the reason of the wait and from the document.
func (l *limitWait) lack(reason string, candidates []Candidate) string {
	spaced := l.Key.Window == admission.Second && !l.Money()
	switch {
	case reason == "reserved":
		return lackReserved
	case reason == "no_share":
		return lackNoShare
	case l.Key.Window == admission.Prepaid:
		return lackUnpaid
	case l.Limit != nil && l.Limit.Closed():
		return lackClosed
	case l.Limit != nil && l.tooSmall(reason, candidates):
		return lackTooSmall
	case spaced, l.Limit != nil && l.Limit.Sliding:
		return lackNoSlot
	}
	return lackUsedUp
}

// tooSmall reports whether the message takes more than the limit's maximum, on every channel that
// the limit excluded.
func (l *limitWait) tooSmall(reason string, candidates []Candidate) bool {
	found := false
	for i := range candidates {
		if c := &candidates[i]; l.excludes(c, reason) {
			if c.Limit != l.On || c.Never == "" { // l is not closed
				return false
			}
			found = true
		}
	}
	return found
}

// excludes reports whether the limit excluded a channel.
func (l *limitWait) excludes(c *Candidate, reason string) bool {
	return c.Channel == l.Channel || l.Channel == "" && c.Reason == reason
}

// future sets Lack and Until for a running window that begins in the future. A limit that spaces
// its units has no slot before the window begins. Any other limit has nothing left before it ends.
func (l *limitWait) future(begins time.Time, zone *time.Location) {
	if l == nil || begins.IsZero() || l.Never() {
		return
	}
	l.Until = l.Key.Window.End(begins, zone)
	if l.Lack == lackNoSlot {
		l.Until = begins
	}
	l.Lack, l.Begins = lackFuture, begins
}

// Never reports whether time alone will never let the limit admit the message.
func (l *limitWait) Never() bool {
	return l.Lack == lackClosed || l.Lack == lackTooSmall || l.Lack == lackUnpaid
}

// Money reports whether the limit counts money.
func (l *limitWait) Money() bool { return l.Key.Unit == admission.Money }

// Closed says which channels a limit of 0 closes, and to whom.
func (l *limitWait) Closed() string {
	words := l.Channel + " is closed"
	if l.Channel == "" {
		words = "all channels are closed"
	}
	if l.Key.Scope == (admission.Scope{}) {
		return words + " (its " + kindOfLimit(l.Key) + " is 0)"
	}
	return words + " to " + scopeWords(l.Key.Scope) + " (the " + kindOfLimit(l.Key) + " is 0)"
}

// Name names the limit: "the limit of tenant shop over all channels". It has the maximum only if
// the sentence about Lack does not.
func (l *limitWait) Name() string {
	switch {
	case l.Limit == nil:
		return limitWords(l.Channel, l.Key)
	case l.Lack == lackNoSlot || l.Lack == lackNoShare:
		return "the limit of " + maximum(l.Limit) + " per " + windowWords[l.Key.Window].noun +
			covered(l.Channel, l.Key.Scope)
	case l.Lack == lackUnpaid:
		return limitWords(l.Channel, l.Key)
	case l.Key.Scope == (admission.Scope{}):
		return "the limit of " + l.Channel
	}
	return "the limit" + covered(l.Channel, l.Key.Scope)
}

// Gives is the maximum of the limit in a window, such as "100 messages of the minute"; empty when
// it is not known.
func (l *limitWait) Gives() string {
	if l.Limit == nil {
		return ""
	}
	return maximum(l.Limit) + " of the " + windowWords[l.Key.Window].noun
}

// Single reports whether Gives is one unit, so that a sentence needs the singular.
func (l *limitWait) Single() bool { return l.Limit == nil || l.Limit.Max == 1 && !l.Money() }
