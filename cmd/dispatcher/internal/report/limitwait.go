package report

import (
	"time"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/ledger"
)

// Why a limit does not let a message pass.
const (
	lackUnits   = "used_up"   // nothing is left in its window
	lackSlot    = "no_slot"   // it spaces its units, and the next is due later
	lackForLane = "reserved"  // what is left is kept for other lanes
	lackShare   = "no_share"  // the policy left nothing to the process that looked
	lackOpen    = "closed"    // it is 0
	lackSize    = "too_small" // the message takes more than it gives
	lackWindow  = "future"    // its window begins in the future
	lackTopUp   = "unpaid"    // what was topped up is spent
)

// limitWait is the limit that a message waits for.
type limitWait struct {
	On      string // as admission.Key.On
	Channel string // empty for a limit over all channels
	Key     admission.Key
	Limit   *admission.Limit // nil when the routing document is not known, or has none like it
	Lack    string
	// Until is when the limit has room again at the earliest; zero when that is not known, or
	// never.
	Until time.Time
	// Begins is when a window begins that lies in the future.
	Begins time.Time
}

// newLimitWait finds the limit that a waiting message waits for; nil when it waits for something
// else. doc is the document that the wait was decided under, looked are the channels that the
// decision looked at. Days begin at midnight in zone.
func newLimitWait(
	m *ledger.Message, doc *config.Routing, zone *time.Location, looked []Candidate,
) *limitWait {
	channel, key, ok := admission.ParseOn(m.WaitsFor)
	if !ok || m.State != ledger.Waiting {
		return nil
	}
	l := &limitWait{On: m.WaitsFor, Channel: channel, Key: key, Limit: limitOn(doc, channel, key)}
	l.Lack = l.lack(m.Reason, looked)
	switch l.Lack {
	case lackUnits:
		if !m.WaitingSince.IsZero() {
			l.Until = key.Window.End(m.WaitingSince, zone)
		}
	case lackSlot, lackForLane, lackShare:
		if m.NextAt.Before(m.ExpiresAt) {
			l.Until = m.NextAt
		}
	}
	return l
}

// lack tells what the limit lacks from the reason of the wait and from the document.
func (l *limitWait) lack(reason string, looked []Candidate) string {
	spaced := l.Key.Window == admission.Second && !l.Money()
	switch {
	case reason == "reserved":
		return lackForLane
	case reason == "no_share":
		return lackShare
	case l.Key.Window == admission.Prepaid:
		return lackTopUp
	case l.Limit != nil && l.Limit.Closed():
		return lackOpen
	case l.Limit != nil && l.tooSmall(reason, looked):
		return lackSize
	case spaced, l.Limit != nil && l.Limit.Sliding:
		return lackSlot
	}
	return lackUnits
}

// tooSmall reports whether the message takes more than the limit gives, on every channel that it
// counts on.
func (l *limitWait) tooSmall(reason string, looked []Candidate) bool {
	found := false
	for i := range looked {
		if c := &looked[i]; l.excludes(c, reason) {
			if c.Limit != l.On { // it is not 0, so what never has room is too small
				return false
			}
			found = true
		}
	}
	return found
}

// excludes reports whether the limit is why a channel could not take the message.
func (l *limitWait) excludes(c *Candidate, reason string) bool {
	return c.Channel == l.Channel || l.Channel == "" && c.Reason == reason
}

// future says that the window of the limit begins at a time in the future. A limit that spaces its
// units has no slot until then. Any other has what is left of that window until the window ends.
func (l *limitWait) future(begins time.Time, zone *time.Location) {
	if l == nil || begins.IsZero() || l.Never() {
		return
	}
	l.Until = l.Key.Window.End(begins, zone)
	if l.Lack == lackSlot {
		l.Until = begins
	}
	l.Lack, l.Begins = lackWindow, begins
}

// Never reports whether the limit never has room for the message by itself.
func (l *limitWait) Never() bool {
	return l.Lack == lackOpen || l.Lack == lackSize || l.Lack == lackTopUp
}

// Money reports whether the limit counts money.
func (l *limitWait) Money() bool { return l.Key.Unit == admission.Money }

// Closed says whom a limit of 0 keeps out of which channels.
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

// Name is such as "the limit of tenant shop over all channels". Where Lack tells how much the limit
// gives, the name does not.
func (l *limitWait) Name() string {
	switch {
	case l.Limit == nil:
		return limitWords(l.Channel, l.Key)
	case l.Lack == lackSlot || l.Lack == lackShare:
		return "the limit of " + amount(l.Limit) + " per " + windowWords[l.Key.Window].noun +
			covered(l.Channel, l.Key.Scope)
	case l.Lack == lackTopUp:
		return limitWords(l.Channel, l.Key)
	case l.Key.Scope == (admission.Scope{}):
		return "the limit of " + l.Channel
	}
	return "the limit" + covered(l.Channel, l.Key.Scope)
}

// Gives is what the limit gives in a window, such as "100 messages of the minute"; empty when that
// is not known.
func (l *limitWait) Gives() string {
	if l.Limit == nil {
		return ""
	}
	return amount(l.Limit) + " of the " + windowWords[l.Key.Window].noun
}

// Single reports whether that is one unit.
func (l *limitWait) Single() bool { return l.Limit == nil || l.Limit.Max == 1 && !l.Money() }
