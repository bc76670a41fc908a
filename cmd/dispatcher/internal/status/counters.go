package status

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger"
)

// Counters finds the counters of limits in a snapshot of the ledger.
type Counters struct {
	*ledger.Present
	Zone *time.Location
}

// Counter is the counter of a limit, with the window of the present. A limit without a row, because
// it was applied between the two reads of the database, has granted nothing.
func (cs *Counters) Counter(channel string, l *admission.Limit) admission.Counter {
	c := admission.Counter{Limit: *l, Max: l.Max}
	if stored := cs.Stored(channel, l.Key()); stored != nil {
		c = *stored
		c.Limit = *l // the rows do not hold all of it
		if l.Window == admission.Prepaid {
			c.Limit.Max = stored.Limit.Max // the sum of top-ups, which is not in the document
		}
	}
	c.Roll(cs.Now, cs.Zone)
	return c
}

// Stored is the counter of a limit as in its row; nil when there is no row.
func (cs *Counters) Stored(channel string, key admission.Key) *admission.Counter {
	var counters []admission.Counter
	if key.Scope == (admission.Scope{}) {
		if state := cs.Channel(channel); state != nil {
			counters = state.Gate.Counters
		}
	} else {
		at := slices.IndexFunc(cs.Scoped, func(s ledger.ScopeState) bool {
			return s.Channel == channel && s.Scope == key.Scope
		})
		if at >= 0 {
			counters = cs.Scoped[at].Counters
		}
	}
	at := slices.IndexFunc(counters, func(s admission.Counter) bool { return s.Key() == key })
	if at < 0 {
		return nil
	}
	return &counters[at]
}

// withTenants returns limits, those of a channel or those over all channels. A limit of each tenant
// is followed by the limits of the tenants that have a counter.
func (cs *Counters) withTenants(channel string, limits []admission.Limit) []admission.Limit {
	var all []admission.Limit
	for i := range limits {
		all = append(all, limits[i])
		if !limits[i].Scope.Each() {
			continue
		}
		for _, s := range cs.Scoped {
			own := limits[i].Own(s.Scope.Tenant)
			if s.Channel == channel && s.Scope.Tenant != "" && !s.Scope.Each() &&
				cs.Stored(channel, own.Key()) != nil &&
				!slices.ContainsFunc(limits, func(l admission.Limit) bool {
					return l.Key() == own.Key()
				}) {
				all = append(all, own)
			}
		}
	}
	return all
}

// Channel is the state of a channel; nil when it was applied between the two reads of the database.
func (cs *Counters) Channel(name string) *ledger.ChannelState {
	at := slices.IndexFunc(cs.Channels, func(s ledger.ChannelState) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &cs.Channels[at]
}

// fit asks one counter for units, without reserves, for an attempt that can leave from earliest on.
func (cs *Counters) fit(
	c admission.Counter, ease admission.Ease, units int64, earliest time.Time,
) (admission.Release, *admission.Exclusion) {
	c.Unit, c.Reserve = admission.Segments, nil // one message can ask for many segments
	m := &admission.Moment{Now: cs.Now, Earliest: earliest, Zone: cs.Zone}
	return admission.Fit(m, []admission.Account{{Counter: &c, Rate: ease.RateAt(cs.Now)}},
		&admission.Need{Segments: int(units)})
}

// atThisMoment is how far a release time may be from now and still count as now: arrival times are
// rounded with each unit.
const atThisMoment = time.Millisecond

// brink is longer than the last part of a window, in which no release times are given because an
// attempt would arrive in the next window.
const brink = 100 * time.Millisecond

// atOnce is how many units a sliding limit admits at this moment. In the last part of a calendar
// window (see brink) it asks for a release time before that part, because calendar windows do not
// matter to a sliding limit.
func (cs *Counters) atOnce(c admission.Counter, ease admission.Ease) int64 {
	earliest := cs.Now
	if before := c.End(cs.Zone).Add(-brink); before.Before(earliest) && cs.Now.Before(c.End(cs.Zone)) {
		earliest = before
	}
	return int64(sort.Search(int(c.Burst), func(units int) bool {
		release, exclusion := cs.fit(c, ease, int64(units)+1, earliest)
		return exclusion != nil || release.At.Sub(cs.Now) > atThisMoment
	}))
}

// longAgo is longer than a sliding limit can delay an attempt.
const longAgo = 72 * time.Hour

// nextPlace is when a sliding limit admits one more unit; nil for never.
func (cs *Counters) nextPlace(c admission.Counter, ease admission.Ease) *time.Time {
	at := cs.Now
	// With an earliest time long ago, only the arrival time of the limit delays the unit.
	_, exclusion := cs.fit(c, ease, 1, cs.Now.Add(-longAgo))
	switch {
	case exclusion == nil:
	case exclusion.When.IsZero():
		return nil
	case exclusion.Why == admission.NotYet:
		at = exclusion.When.Add(admission.Horizon)
	default:
		at = exclusion.When
	}
	if ease.Until.After(at) {
		at = ease.Until
	}
	if at.Before(cs.Now) {
		at = cs.Now
	}
	return report.Moment(at.UTC())
}

// Waiters counts the messages that wait for the same thing.
type Waiters struct {
	// On is a channel, or a limit such as "alpha 1s messages"; empty for none in particular.
	On       string    `json:"on"`
	Reason   string    `json:"reason"` // an exclusion reason, as in "explain"
	Messages int64     `json:"messages"`
	Next     time.Time `json:"next"` // when the first of them is tried again
}

// Waiters lists all waiting messages, or those that wait for the named channels and their limits;
// the largest group first.
func (cs *Counters) Waiters(named []string) []Waiters {
	out := []Waiters{}
	for _, w := range cs.Waiting {
		if len(named) == 0 || slices.ContainsFunc(named,
			func(channel string) bool { return waitsOn(w.On, channel) }) {
			out = append(out, Waiters{
				On: w.On, Reason: w.Reason, Messages: w.Messages,
				Next: w.Next.UTC(),
			})
		}
	}
	slices.SortStableFunc(out, func(a, b Waiters) int {
		return cmp.Compare(b.Messages, a.Messages)
	})
	return out
}

// waitsOn reports whether on is a channel or one of its limits.
func waitsOn(on, channel string) bool { return on == channel || strings.HasPrefix(on, channel+" ") }

// WaitingFor counts the messages that wait for exactly this: a channel itself, or one limit.
func (cs *Counters) WaitingFor(on string) (messages int64) {
	for _, w := range cs.Waiting {
		if w.On == on {
			messages += w.Messages
		}
	}
	return messages
}

// WaitingOn counts the messages that wait for a channel or for one of its limits.
func (cs *Counters) WaitingOn(channel string) (messages int64) {
	for _, w := range cs.Waiting {
		if waitsOn(w.On, channel) {
			messages += w.Messages
		}
	}
	return messages
}
