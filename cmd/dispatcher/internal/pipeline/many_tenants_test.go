package pipeline

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// manyTenants is so many that a process does not remember all their scopes, and cannot lock them in
// one claim: each tenant has a limit on each of three channels.
const manyTenants = 1000

// tenantNumber returns the name of tenant i.
func tenantNumber(i int) string { return fmt.Sprintf("t%04d", i%manyTenants) }

// unreachedLimits returns limits of all tenants that none of them reaches.
func unreachedLimits() []admission.Limit {
	limits := make([]admission.Limit, manyTenants)
	for i := range limits {
		limits[i] = admission.Limit{
			Scope:  admission.Scope{Tenant: tenantNumber(i)},
			Window: admission.Day, Max: 1000,
		}
	}
	return limits
}

// jobsOf returns jobsNamed of all tenants in turn.
func jobsOf(prefix string, n int) []decide.Job {
	jobs := jobsNamed(prefix, n)
	for i := range jobs {
		jobs[i].Message.Tenant = tenantNumber(i)
		jobs[i].Raw = jobs[i].Message.Append(nil)
	}
	return jobs
}

// campaign returns as many messages of one tenant.
func campaign(prefix string) []decide.Job {
	jobs := jobsNamed(prefix, manyTenants)
	for i := range jobs {
		jobs[i].Message.Tenant = tenantNumber(manyTenants / 2)
		jobs[i].Raw = jobs[i].Message.Append(nil)
	}
	return jobs
}

// waitingTenants returns a pipeline with closed channels and waiting messages of limited tenants.
func waitingTenants(t *testing.T, jobs []decide.Job) *pipeline {
	t.Helper()
	p := setup(t, onlyA)
	p.limitTo(t, append(unreachedLimits(), admission.Limit{Window: admission.Day}), nil)
	p.handle(t, jobs)
	p.eventually(t, byState, map[string]int64{"waiting": int64(len(jobs))})
	return p
}

// open allows most messages on each channel and makes all waiting messages due at once. Applying a
// document would make them due one after the other.
func (p *pipeline) open(t *testing.T, most int) {
	t.Helper()
	tx, err := p.sql.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{
		fmt.Sprintf(`update dispatcher.limits set configured_max = %d, max = %[1]d where scope = `+
			`'channel'`, most),
		`update dispatcher.messages set next_at = now()`,
	} {
		if _, err := tx.Exec(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestMessagesOfManyLimitedTenantsAreSentThoughNewOnesCome: a claim locks the limits of the due
// rows that the claim before saw, and picks up those rows, however many there are. All waiting
// messages are sent before as many new ones were stored.
func TestMessagesOfManyLimitedTenantsAreSentThoughNewOnesCome(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	p := waitingTenants(t, jobsOf("old", manyTenants))
	p.open(t, 100*manyTenants)
	const old = `select 'old', count(*) from audit.messages where id like 'old-%' and state <> ` +
		`'waiting'`
	for batch := range slices.Chunk(campaign("new"), 50) {
		p.handle(t, batch)
		if p.counts(t, old)["old"] == manyTenants {
			break
		}
	}
	if sent := p.counts(t, old)["old"]; sent < manyTenants {
		t.Errorf("got %d of %d waiting messages sent before as many new ones", sent, manyTenants)
	}
	p.eventually(t, `select state, count(*) from audit.messages where id like 'old-%' group by 1`,
		map[string]int64{"accepted": manyTenants})
}

// TestManyLimitedTenantsTakeTurns: with as many slots as tenants, nearly each tenant sends one
// message, including the one with a campaign. Some send two, because their limits happened to be
// locked in a claim for another tenant. On a busy machine an attempt may be too late to leave. It
// has used its slot all the same, so attempts are counted here.
func TestManyLimitedTenantsTakeTurns(t *testing.T) {
	t.Parallel()
	p := waitingTenants(t, append(campaign("many"), jobsOf("some", 2*manyTenants)...))
	p.open(t, manyTenants)
	p.eventually(t, `select 'sent', count(*) from audit.attempts where outcome is not null`,
		map[string]int64{"sent": manyTenants})
	const turns = ` from (select m.tenant, count(*) as n from dispatcher.all_attempts a
		join dispatcher.messages m on m.seq = a.message_seq group by 1) t`
	if n := p.counts(t, `select 'tenants', count(*)`+turns)["tenants"]; n < manyTenants*3/4 {
		t.Errorf("%d of %d tenants had a turn", n, manyTenants)
	}
	if n := p.counts(t, `select 'most', max(n)::bigint`+turns)["most"]; n > 2 {
		t.Errorf("a tenant had %d attempts before the others had one", n)
	}
}

// TestWhatAClaimNeededIsKnownToTheNextThoughItWaitsForSlots: other attempts hold all slots again
// and again, each time for longer than unneeded scopes are remembered. Two claims are enough: the
// first one finds out what has to be locked.
func TestWhatAClaimNeededIsKnownToTheNextThoughItWaitsForSlots(t *testing.T) {
	t.Parallel()
	p := waitingTenants(t, jobsOf("old", 5))
	ctx, stop := context.WithCancel(t.Context())
	holder, held := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(holder)
		// nothing is known before
		first := sync.OnceFunc(func() { p.neededScopes.age(); close(held) })
		for {
			got, err := p.slots.acquire(ctx, p.slots.size(), p.slots.size())
			if err != nil {
				return
			}
			first()
			// so that the next claim has read what is needed and waits in line
			ledger.Pause(ctx, 200*time.Millisecond)
			p.neededScopes.age()
			p.slots.release(got)
		}
	}()
	defer func() { stop(); <-holder }()
	<-held
	p.open(t, 100)
	p.eventually(t, byState, map[string]int64{"accepted": 5})
}

// age lets as much time pass as scopes are remembered for.
func (n *neededScopes) age() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for ref, at := range n.scopes {
		n.scopes[ref] = at.Add(-neededFor - time.Second)
	}
}
