package report

import (
	"strings"
	"time"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/ledger"
)

// lack is what the limit that a message waits for does not have.
type lack uint8

const (
	usedUp   lack = iota // units, until its window ends
	noPlace              // a place so soon: each of its units has one of its own
	kept                 // units for this lane
	unshared             // units for the process that looked
	closed               // anything: it is 0
	tooSmall             // as much as the message takes
	inFuture             // a window of now: its own begins later
)

// limited is the limit that a message waits for.
type limited struct {
	on      string // as admission.Key.On
	channel string // empty for a limit over all channels
	key     admission.Key
	limit   *admission.Limit // nil when the routing document is not known, or has none like it any more
	lack    lack
	// until is when the limit has room again at the earliest; zero when that is not known, or is never.
	until time.Time
	// begins is when a window begins that lies in the future.
	begins time.Time
}

// ahead says that the window of the limit begins at a time in the future. Until then a limit of a second, or one that slides, has no
// place, and until it ends any other has no more than what is left of it.
func (l *limited) ahead(begins time.Time, zone *time.Location) {
	if l == nil || begins.IsZero() || l.lack == closed || l.lack == tooSmall {
		return
	}
	l.until = l.key.Window.End(begins, zone)
	if l.lack == noPlace {
		l.until = begins
	}
	l.lack, l.begins = inFuture, begins
}

// newLimited finds the limit that a waiting message waits for: nil when it waits for something else. doc is
// the document that the wait went by, seen are the channels that it looked at, and days are cut in zone.
func newLimited(m *ledger.Message, doc *config.Routing, zone *time.Location, seen []Candidate) *limited {
	channel, key, ok := admission.ParseOn(m.WaitsFor)
	if !ok || m.State != ledger.Waiting {
		return nil
	}
	l := &limited{on: m.WaitsFor, channel: channel, key: key, limit: limitOn(doc, channel, key)}
	l.lack = l.lacks(m.Reason, seen)
	switch l.lack {
	case usedUp:
		if !m.WaitingSince.IsZero() {
			l.until = key.Window.End(m.WaitingSince, zone)
		}
	case noPlace, kept, unshared:
		if m.NextAt.Before(m.ExpiresAt) {
			l.until = m.NextAt
		}
	case closed, tooSmall, inFuture:
	}
	return l
}

// lacks tells what the limit lacks from the reason of the wait and from what its document says of it.
func (l *limited) lacks(reason string, seen []Candidate) lack {
	money := l.key.Unit == admission.Money
	paced := l.key.Window == admission.Second && !money
	switch {
	case reason == "reserved":
		return kept
	case reason == "no_share":
		return unshared
	case l.limit == nil && paced:
		return noPlace
	case l.limit == nil:
		return usedUp
	case l.limit.Max == 0:
		return closed
	case l.tooSmall(reason, seen):
		return tooSmall
	case paced, l.limit.Sliding:
		return noPlace
	}
	return usedUp
}

// tooSmall reports whether the message takes more than the limit gives, on every channel that it counts on.
func (l *limited) tooSmall(reason string, seen []Candidate) bool {
	found := false
	for i := range seen {
		if c := &seen[i]; l.explains(c, reason) {
			if c.Limit != l.on { // it is not 0, so what never has room is too small
				return false
			}
			found = true
		}
	}
	return found
}

// sentence says that a message waits, and for what: the words for the beginning are "It waits" or "It would wait".
func (l *limited) sentence(begin string, when func(time.Time) string) string {
	if l.lack == closed {
		return begin + ", because " + shutWords(l.channel, l.key)
	}
	return begin + " for " + l.name() + ": " + l.state(when)
}

// name is such as "the limit of tenant shop over all channels". What it counts stands in state where that is known.
func (l *limited) name() string {
	switch {
	case l.limit == nil:
		return limitWords(l.channel, l.key)
	case l.lack == noPlace || l.lack == unshared:
		return "the limit of " + amount(l.limit, l.limit.Max) + " per " + windowWords[l.key.Window] + whose(l.channel, l.key.Scope)
	case l.key.Scope == (admission.Scope{}):
		return "the limit of " + l.channel
	}
	return "the limit of " + scopeWords(l.key.Scope, where(l.channel))
}

// state says what the limit lacks.
func (l *limited) state(when func(time.Time) string) string {
	switch l.lack {
	case kept:
		return "what is left" + l.all(" of its ", "") + " is kept for other lanes"
	case unshared:
		return "the channel's policy left no slots to the process that looked"
	case noPlace:
		if l.until.IsZero() {
			return "it has no place before the deadline of the message"
		}
		return "it has no place before " + when(l.until)
	case tooSmall:
		return "the message takes more than" + l.all(" its ", " it gives")
	case inFuture:
		return "its window begins in the future, " + when(l.begins) + ", because the database's clock was ahead when it was opened, and no other is opened before"
	case usedUp, closed:
	}
	switch money := l.key.Unit == admission.Money; {
	case l.limit == nil && money:
		return "it is spent"
	case l.limit == nil:
		return "it is used up"
	case money:
		return l.all("its ", "") + " are spent"
	case l.limit.Max == 1:
		return l.all("its ", "") + " is used up"
	}
	return l.all("its ", "") + " are used up"
}

// all is what the limit gives in a window, such as "100 messages of the minute", after before; else stands for it
// when that is not known.
func (l *limited) all(before, otherwise string) string {
	if l.limit == nil {
		return otherwise
	}
	return before + amount(l.limit, l.limit.Max) + " of the " + windowWords[l.key.Window]
}

// hopes are what could still save a message that the limit has no room for before its deadline.
func (l *limited) hopes() string {
	hopes := []string{"the limit is raised"}
	if l.lack == inFuture {
		hopes = []string{`the window of now is started again ("dispatcher limits set --restart")`}
	}
	if l.key.Unit == admission.Money && l.lack == usedUp {
		hopes = append(hopes, "money comes back")
	}
	if l.channel != "" {
		hopes = append(hopes, "another channel can take it")
	}
	return strings.Join(hopes, " or ")
}

// explains reports whether the limit is why a channel could not take the message.
func (l *limited) explains(c *Candidate, reason string) bool {
	return c.Channel == l.channel || l.channel == "" && c.Reason == reason
}
