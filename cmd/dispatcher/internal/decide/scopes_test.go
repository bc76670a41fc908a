package decide

import (
	"cmp"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// drawnScope draws a tenant or a prefix.
func drawnScope(t *rapid.T) admission.Scope {
	if rapid.Bool().Draw(t, "by tenant") {
		return admission.Scope{Tenant: rapid.SampledFrom([]string{"shop", "bank", "*"}).Draw(t,
			"tenant")}
	}
	return admission.Scope{Prefix: rapid.SampledFrom([]string{
		"+4", "+44", "+447", "+4479", "+1",
		"+447700900123", "+4477009001234",
	}).Draw(t, "prefix")}
}

// drawnLimits draws limits of tenants and prefixes.
func drawnLimits(t *rapid.T) []admission.Limit {
	return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) admission.Limit {
		return admission.Limit{
			Scope: drawnScope(t), Max: rapid.Int64Range(0, 9).Draw(t, "max"),
			Window: rapid.SampledFrom([]admission.Window{admission.Minute, admission.Day}).Draw(t,
				"window"),
		}
	}), 0, 8, func(l admission.Limit) admission.Key { return l.Key() }).Draw(t, "limits")
}

// TestScopesOfAMessageAreThoseThatCoverIt compares the look-ups with a loop over all limits.
func TestScopesOfAMessageAreThoseThatCoverIt(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(rt *rapid.T) {
		w := newFixture(t)
		w.routing.Limits = drawnLimits(rt)
		for c := range w.routing.Channels {
			w.routing.Channels[c].Limits = drawnLimits(rt)
		}
		w.routing.Routes[0].Members = []int{0, 2}
		task := w.task("a")
		task.Row.Tenant = rapid.SampledFrom([]string{"", "shop", "bank", "other"}).Draw(rt,
			"of tenant")
		task.msg.To = rapid.SampledFrom([]string{
			"+447700900123", "+15550100", "+4",
			"+33",
		}).Draw(rt, "to")
		want := map[ledger.ScopeRef]bool{}
		cover := func(channel string, limits []admission.Limit) {
			for _, l := range limits {
				scope := l.Scope
				if scope.Each() {
					scope.Tenant = task.Row.Tenant
				}
				if scope.Covers(task.Row.Tenant, task.msg.To) && scope != (admission.Scope{}) {
					want[ledger.ScopeRef{Channel: channel, Scope: scope}] = true
				}
			}
		}
		cover("", w.routing.Limits)
		cover("a", w.routing.Channels[0].Limits)
		cover("c", w.routing.Channels[2].Limits)

		p := NewPlan(w.routing, testKeys, noon, nil)
		p.Tasks = append(p.Tasks, *task)
		got := p.Request(0, nil).Scopes
		if !slices.IsSortedFunc(got, func(a, b ledger.ScopeRef) int {
			return cmp.Or(cmp.Compare(a.Channel, b.Channel),
				cmp.Compare(a.Scope.String(), b.Scope.String()))
		}) {
			rt.Fatalf("not in lock order: %v", got)
		}
		if len(got) != len(want) || slices.ContainsFunc(got, func(ref ledger.ScopeRef) bool {
			return !want[ref]
		}) {
			rt.Fatalf("got scopes %v, want %v", got, want)
		}
	})
}

func TestOnlyScopesOfTheBatchAreLockedAndLanesRankDueRows(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.routing.Lanes = map[string]Lane{
		"bulk":  {Lane: config.Lane{Name: "bulk"}, Order: 2},
		"otp":   {Lane: config.Lane{Name: "otp"}},
		"old":   {Lane: config.Lane{Name: "old"}, Order: lastOrder, former: true},
		"later": {Lane: config.Lane{Name: "later"}, Order: 1},
	}
	for _, tenant := range []string{"shop", "bank", "news"} {
		w.routing.Limits = append(w.routing.Limits,
			admission.Limit{Scope: admission.Scope{Tenant: tenant}, Window: admission.Day, Max: 5})
	}
	w.routing.Prepare()
	jobs := []Job{
		{Lane: "bulk", Message: envelope.Message{
			ID: "1", To: "+447700900123", Text: "x",
			Tenant: "shop",
		}, Produced: noon},
		{Lane: "bulk", Message: envelope.Message{
			ID: "2", To: "+447700900123", Text: "x",
			Tenant: "shop",
		}, Produced: noon},
		{
			Lane: "bulk", Message: envelope.Message{ID: "3", To: "+447700900123", Text: "x"},
			Produced: noon,
		},
		{Lane: "bulk", Message: envelope.Message{
			ID: "4", To: "+447700900123", Text: "x",
			Tenant: "bank", SendAt: noon.Add(time.Hour),
		}, Produced: noon},
	}
	w.routing.Lanes["bulk"] = Lane{Lane: config.Lane{Name: "bulk", TTL: time.Hour}, Order: 2}
	p := NewPlan(w.routing, testKeys, noon, jobs)
	req := p.Request(0, nil)
	want := []ledger.ScopeRef{{Scope: admission.Scope{Tenant: "shop"}}}
	if diff := gocmp.Diff(want, req.Scopes); diff != "" || req.Lanes != nil {
		t.Errorf("lanes %v, scopes %s", req.Lanes, diff)
	}
	if got := p.Request(5, nil).Lanes; !gocmp.Equal(got, []string{"otp", "later", "bulk"}) {
		t.Errorf("due rows by %v", got)
	}
}

// dueFixture returns a fixture whose tenant shop has a limit over all channels, and due rows of the
// tenant.
func dueFixture(t testing.TB, rows int) (*fixture, []ledger.Message) {
	t.Helper()
	w := newFixture(t)
	w.routing.Limits = []admission.Limit{{
		Scope:  admission.Scope{Tenant: "shop"},
		Window: admission.Day, Max: 3,
	}}
	var due []ledger.Message
	for i := range rows {
		row := storedRow(ledger.Waiting, 0)
		row.Seq, row.Tenant, row.ExpiresAt = int64(i+1), "shop", noon.Add(48*time.Hour)
		due = append(due, row)
	}
	return w, due
}

// shown returns the state that a claim reads after locking some scopes, all unused.
func (w *fixture) shown(refs []ledger.ScopeRef, due []ledger.Message) *ledger.Seen {
	seen, index := *w.seen, w.routing.scopes()
	seen.Channels, seen.Scoped = slices.Clone(w.seen.Channels), nil
	seen.Messages = due
	for range due {
		seen.Intakes = append(seen.Intakes, ledger.Due)
	}
	for _, ref := range refs {
		state := ledger.ScopeState{ScopeRef: ref}
		place, _ := index.place(ref)
		for _, l := range index.at(place).limits {
			// what a row holds
			bare := admission.Limit{Scope: l.Scope, Window: l.Window, Unit: l.Unit, Max: l.Max}
			state.Counters = append(state.Counters, admission.Counter{Limit: bare, Max: l.Max})
		}
		seen.Scoped = append(seen.Scoped, state)
	}
	return &seen
}

// TestDueRowsWhoseLimitsWereNotLockedAreLeftAndLockedNext: they are not decided on before their
// limits are locked.
func TestDueRowsWhoseLimitsWereNotLockedAreLeftAndLockedNext(t *testing.T) {
	t.Parallel()
	w, due := dueFixture(t, 5)
	due[4].Tenant = "" // no limit counts it
	claim := func(needed []ledger.ScopeRef) *Decided {
		t.Helper()
		p := NewPlan(w.routing, testKeys, noon, nil)
		req := p.Request(len(due), needed)
		d, err := Batch(p, w.shown(req.Scopes, due), &Snapshot{Unready: w.unready})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	r := claim(nil)
	for i, d := range r.Decisions {
		if want := map[bool]ledger.State{true: ledger.Sending, false: ""}[i == 4]; d.State != want {
			t.Errorf("row %d: %+v", i, d)
		}
	}
	if !r.Unlocked || len(r.Attempts) != 1 || len(r.Unasked) > 0 {
		t.Errorf("unlocked %v, %d attempts, %d to ask about", r.Unlocked, len(r.Attempts),
			len(r.Unasked))
	}
	r = claim(r.Needed)
	sent := 0
	for _, d := range r.Decisions {
		switch {
		case d.State == ledger.Sending:
			sent++
		case d.State != ledger.Waiting || d.Reason != TenantLimit ||
			d.WaitsFor != "tenant:shop 1d messages" || !d.NextAt.Equal(noon.Add(12*time.Hour)):
			t.Errorf("decision %+v", d)
		}
	}
	if r.Unlocked || sent != 4 {
		t.Errorf("unlocked %v, %d sent, want the three of the limit and one that it does not count",
			r.Unlocked, sent)
	}
	if r := claim(r.Needed); r.Unlocked {
		t.Error("scopes that due rows needed before were not locked")
	}
	if r := claim([]ledger.ScopeRef{{Channel: "gone"}}); !r.Unlocked {
		t.Error("scopes that were not needed were locked")
	}
}

func places(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
