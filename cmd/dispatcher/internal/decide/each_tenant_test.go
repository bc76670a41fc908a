package decide

import (
	"slices"
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// dueOf returns due rows, one of each named tenant.
func dueOf(tenants ...string) []ledger.Message {
	var due []ledger.Message
	for i, tenant := range tenants {
		row := storedRow(ledger.Waiting, 0)
		row.Seq, row.Tenant, row.ExpiresAt = int64(i+1), tenant, noon.Add(48*time.Hour)
		due = append(due, row)
	}
	return due
}

// TestEachTenantHasALimitOfItsOwn: tenant bank has its own in the document, and messages without a
// tenant have none.
func TestEachTenantHasALimitOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	each := admission.Limit{
		Scope: admission.Scope{Tenant: admission.EachTenant}, Window: admission.Day, Max: 2,
	}
	bank := each.Own("bank")
	bank.Max = 1
	w.routing.Limits = []admission.Limit{each, bank}
	due := dueOf("shop", "bank", "", "news", "shop", "bank", "", "shop", "", "")
	var needed []ledger.ScopeRef
	claim := func() *Decided {
		t.Helper()
		p := NewPlan(w.routing, testKeys, noon, nil)
		req := p.Request(len(due), needed)
		if req.EachTenant != (len(needed) > 0) {
			t.Errorf("unexpected requests for rows of tenants: %v", req.EachTenant)
		}
		d, err := Batch(p, w.shown(req.Scopes, due), &Snapshot{Unready: w.unready})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first := claim()
	if len(first.Attempts) != 4 || !first.Unlocked {
		t.Fatalf("got %d attempts without locks, want those without a tenant", len(first.Attempts))
	}
	needed = first.Needed
	sent := map[string]int{}
	for i, d := range claim().Decisions {
		switch {
		case d.State == ledger.Sending:
			sent[due[i].Tenant]++
		case d.Reason != TenantLimit || d.WaitsFor != "tenant:"+due[i].Tenant+" 1d messages":
			t.Errorf("%s: %+v", due[i].Tenant, d)
		}
	}
	for tenant, want := range map[string]int{"shop": 2, "bank": 1, "news": 1, "": 4} {
		if sent[tenant] != want {
			t.Errorf("%d of tenant %q were sent, want %d", sent[tenant], tenant, want)
		}
	}
}

// TestATenantWithAnotherLimitHasThatOfEachToo: only a limit with the same window and unit replaces
// it.
func TestATenantWithAnotherLimitHasThatOfEachToo(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	each := admission.Limit{
		Scope: admission.Scope{Tenant: admission.EachTenant}, Window: admission.Day, Max: 2,
	}
	other := each.Own("shop")
	other.Window, other.Max = admission.Minute, 9
	w.routing.Channels[0].Limits = []admission.Limit{other, each}
	s := w.routing.scopes()
	for tenant, want := range map[string]int{"shop": 2, "news": 1, "": 0} {
		task := w.task("a")
		task.Row.Tenant = tenant
		task.Route.Members = []int{0}
		got := 0
		for _, place := range s.covering(nil, task) {
			got += len(s.at(place).limits)
		}
		if got != want {
			t.Errorf("%d limits count a message of tenant %q, want %d", got, tenant, want)
		}
		replay := NewReplay(w.routing, testKeys)
		task.withoutPayload = tenant == "news" // the audit finds the limits without the number, too
		if got := len(replay.Limits(task, 0)); got != want {
			t.Errorf("the audit finds %d for tenant %q, want %d", got, tenant, want)
		}
	}
}

// TestExplainKnowsTheLimitsOfEachTenant: for a tenant that has used nothing, all of the limit is
// free.
func TestExplainKnowsTheLimitsOfEachTenant(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.routing.Limits = []admission.Limit{{
		Scope: admission.Scope{Tenant: admission.EachTenant}, Window: admission.Day, Max: 1,
	}}
	q := &ExplainInput{Routing: w.routing, Keys: testKeys, Now: noon}
	q.Job.Message.Tenant = "shop"
	full := ledger.ScopeState{ScopeRef: ledger.ScopeRef{Scope: admission.Scope{Tenant: "shop"}}}
	full.Counters = []admission.Counter{{
		Limit: w.routing.Limits[0].Own("shop"), Max: 1, Granted: 1,
	}}
	for name, c := range map[string]struct {
		given []ledger.ScopeState
		free  int64
	}{"nothing taken": {nil, 1}, "all taken": {[]ledger.ScopeState{full}, 0}} {
		q.Scoped = c.given
		states := q.scoped()
		at := slices.IndexFunc(states, func(s ledger.ScopeState) bool {
			return s.ScopeRef == full.ScopeRef
		})
		if at < 0 || len(states[at].Counters) != 1 || states[at].Counters[0].Free() != c.free {
			t.Errorf("%s: got %+v", name, states)
		}
	}
}
