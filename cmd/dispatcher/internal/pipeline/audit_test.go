package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/audit"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/provider"
	"dispatcher/selector"
)

// archive keeps the routings of a pipeline for its audit.
type archive struct {
	mu       sync.Mutex
	versions map[int64]*decide.Routing // guarded by mu
}

func (a *archive) keep(r *decide.Routing) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.versions[r.Version] = r
}

// edition reads from the ledger when a version was in force.
func (a *archive) edition(ctx context.Context, l *ledger.Ledger,
	version int64,
) (audit.Edition, error) {
	a.mu.Lock()
	e := audit.Edition{Routing: a.versions[version], Bounded: map[string]bool{}}
	a.mu.Unlock()
	if e.Routing == nil {
		return audit.Edition{Trouble: "unknown"}, nil
	}
	stored, err := l.Routing.Version(ctx, version)
	if err != nil {
		return e, err
	}
	e.From = stored.CreatedAt
	next, err := l.Routing.Version(ctx, version+1)
	if errors.Is(err, ledger.ErrNoRouting) {
		return e, nil
	}
	e.Until = next.CreatedAt
	return e, err
}

// audited verifies all records of the ledger.
func (p *pipeline) audited(t *testing.T, a *archive) (records int, found []audit.Mismatch) {
	t.Helper()
	v := audit.NewVerifier(verifyKeys, func(version int64) (audit.Edition, error) {
		return a.edition(t.Context(), p.ledger, version)
	})
	filter := ledger.ChoiceFilter{From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour)}
	err := p.ledger.Messages.EachChoice(t.Context(), filter, func(r *ledger.Record) error {
		mismatches, err := v.Verify(r)
		records, found = records+1, append(found, mismatches...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return records, found
}

// TestTheRunningDayIsVerifiedOverChangingVersions: messages wait for limits, are refused, throttled
// and not answered, while weights, modes and rankings change. An audit that runs all the time finds
// nothing.
func TestTheRunningDayIsVerifiedOverChangingVersions(t *testing.T) {
	t.Parallel()
	a := &archive{versions: map[int64]*decide.Routing{}}
	p := setup(t, func(r *decide.Routing) {
		r.Lanes["bulk"] = decide.Lane{Lane: config.Lane{
			Name: "bulk", TTL: time.Hour,
			MaxWaiting: 100, Ambiguous: "resend_once",
		}}
	})

	// A claim that finds a newer version loads it. Only the steps below create versions.
	p.cfg.Reload = func(ctx context.Context) error {
		current, err := p.ledger.Routing.Current(ctx)
		if err != nil {
			return err
		}
		a.mu.Lock()
		r := a.versions[current.Version]
		a.mu.Unlock()
		if r == nil {
			return fmt.Errorf("version %d is on its way", current.Version)
		}
		next := *r // a copy: two loops may reload at once, and a routing in use must not change
		return p.Apply(&next, nil)
	}
	first := *p.routing
	a.keep(&first)
	for name, answer := range map[string]func(provider.Submission) provider.Result{
		"b": func(s provider.Submission) provider.Result {
			return []provider.Result{
				{Outcome: provider.Refused, Code: "dial"},
				{Outcome: provider.Throttled},
				{Outcome: provider.Unknown, Code: "timeout"},
				{Outcome: provider.Accepted},
			}[(len(s.ID)+int(s.ID[len(s.ID)-1])+s.Attempt)%4]
		},
	} {
		p.channels[name].answer = answer
	}
	records := 0
	step := func(limit int64, change func(*decide.Route)) {
		t.Helper()
		limits := []admission.Limit{{Window: admission.Day, Max: limit}}
		next := limited(turnedRound(t, p.routing), limits)
		next.Version = p.routing.Version + 1
		change(&next.Routes[0])
		a.keep(next)
		p.routing = next
		if got := p.applyRouting(t, limits); got != next.Version {
			t.Fatalf("version %d, want %d", got, next.Version)
		}
		records += 60
		p.handle(t, jobsNamed(fmt.Sprint("v", next.Version), 60))
		if n, found := p.audited(t, a); n != records || len(found) > 0 {
			t.Fatalf("under version %d, %d of %d records: %+v", next.Version, n, records, found)
		}
	}
	step(20, func(r *decide.Route) {})
	step(25, func(r *decide.Route) { r.Fallback = decide.Redraw })
	step(30, func(r *decide.Route) { r.Mode, r.Fallback = decide.RoundRobinMode, decide.LoadRatio })
	step(35, func(r *decide.Route) { r.Mode, r.HoldThrottled = decide.LongestIdle, true })
	step(40, func(r *decide.Route) {
		r.Mode, r.Fallback = decide.BestWorkerMode, decide.RoundRobin
	})
	step(1000, func(r *decide.Route) {
		r.Mode, r.Fallback, r.HoldThrottled = decide.Weighted, decide.BestWorker, false
	})
	for open, began := int64(1), time.Now(); open > 0; {
		counts := p.counts(t, byState)
		if time.Since(began) > tier.LongestWait {
			t.Fatalf("still in flight: %v", counts)
		}
		open = counts["waiting"] + counts["retry"] + counts["sending"]
		if n, found := p.audited(t, a); n != records || len(found) > 0 {
			t.Fatalf("%v, %d of %d records: %+v", counts, n, records, found)
		}
	}
	if counts := p.counts(t, byState); counts["accepted"] < int64(records/2) {
		t.Errorf("%v of %d", counts, records)
	}
}

var verifyKeys = []selector.Key{{3}, {2}, {1}}

// turnedRound returns the routing with the weights of its only route in reverse order.
func turnedRound(t testing.TB, r *decide.Routing) *decide.Routing {
	t.Helper()
	next := *r
	next.Routes = slices.Clone(r.Routes)
	table := r.Routes[0].Table
	entries := make([]selector.Entry, table.Len())
	for i := range entries {
		entries[i] = selector.Entry{
			Name:   table.Entry(i).Name,
			Weight: table.Entry(len(entries) - 1 - i).Weight,
		}
	}
	var err error
	if next.Routes[0].Table, err = selector.NewTable(entries); err != nil {
		t.Fatal(err)
	}
	return &next
}

// limited is the routing with these limits on each channel. It is a new one: a routing keeps an
// index of its limits.
func limited(r *decide.Routing, limits []admission.Limit) *decide.Routing {
	next := &decide.Routing{
		Version: r.Version, Zone: r.Zone, Channels: slices.Clone(r.Channels), Routes: r.Routes,
		Lanes: r.Lanes, Country: r.Country, CallingCode: r.CallingCode,
	}
	for i := range next.Channels {
		next.Channels[i].Limits = limits
	}
	return next
}
