package pipeline

import (
	"fmt"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/provider"
)

const stopped = "+447700900123"

// jobTo returns a record of a lane from a tenant to a number.
func jobTo(id, lane, tenant, number string, at time.Time) decide.Job {
	m := envelope.Message{ID: id, To: number, Text: "Hello", Tenant: tenant, SendAt: at}
	return decide.Job{Lane: lane, Produced: time.Now(), Message: m, Raw: m.Append(nil)}
}

func (p *pipeline) optOut(t *testing.T, tenant, number string) {
	t.Helper()
	by := ledger.Listing{Tenant: tenant, Source: ledger.ByCommand}
	if _, err := p.ledger.OptOuts.Add(t.Context(), by, []string{number}); err != nil {
		t.Fatal(err)
	}
}

// submitted lists the ids that reached a provider.
func (p *pipeline) submitted() map[string]bool {
	ids := map[string]bool{}
	for _, c := range p.channels {
		for _, s := range c.submits() {
			ids[s.ID] = true
		}
	}
	return ids
}

// stateAndReason counts messages by state and reason.
const stateAndReason = `select state || coalesce(' ' || reason, ''), count(*) from ` +
	`dispatcher.message_states group by 1`

func TestAnOptedOutRecipientGetsNothingOfThatTenant(t *testing.T) {
	t.Parallel()
	a := &archive{versions: map[int64]*decide.Routing{}}
	p := setup(t, nil)
	first := *p.routing
	a.keep(&first)
	soon := time.Now().Add(6 * time.Second) // after the opt-out, on a busy machine too
	p.handle(t, []decide.Job{
		jobTo("scheduled", "bulk", "shop", stopped, soon),
		jobTo("scheduled-else", "bulk", "bank", stopped, soon),
	})
	p.optOut(t, "shop", stopped)
	p.handle(t, []decide.Job{
		jobTo("new", "bulk", "shop", stopped, time.Time{}),
		jobTo("else", "bulk", "bank", stopped, time.Time{}),
		jobTo("nobody", "bulk", "", stopped, time.Time{}),
		jobTo("other", "bulk", "shop", "+447700900124", time.Time{}),
	})
	p.eventually(t, stateAndReason, map[string]int64{"rejected opted_out": 2, "accepted": 4})
	p.stop()
	for id, want := range map[string]bool{
		"scheduled": false, "new": false, "scheduled-else": true,
		"else": true, "nobody": true, "other": true,
	} {
		if p.submitted()[id] != want {
			t.Errorf("%s was submitted: %t", id, !want)
		}
	}
	want := map[string]int64{"0": 2, "1": 4}
	p.eventually(t, `select attempts::text, count(*) from dispatcher.messages group by 1`, want)
	p.eventually(t, `select channel, active from audit.active`,
		map[string]int64{"a": 0, "b": 0, "c": 0})
	if records, found := p.audited(t, a); records != 6 || len(found) > 0 {
		t.Errorf("%d records: %+v", records, found)
	}
	events := p.counts(t,
		`select convert_from(v, 'UTF8')::json ->> 'reason', count(*)
		from dispatcher.outbox, unnest("values") v
		where convert_from(v, 'UTF8')::json ->> 'state' = 'rejected' group by 1`)
	if events["opted_out"] != 2 {
		t.Errorf("status events of rejected messages: %v", events)
	}
}

func TestALaneMayIgnoreOptOuts(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) {
		r.Lanes["codes"] = decide.Lane{Lane: config.Lane{
			Name: "codes", TTL: time.Hour,
			MaxWaiting: 100, IgnoreOptOut: true,
		}}
	})
	p.optOut(t, "shop", stopped)
	p.handle(t, []decide.Job{
		jobTo("code", "codes", "shop", stopped, time.Time{}),
		jobTo("offer", "bulk", "shop", stopped, time.Time{}),
	})
	p.eventually(t, stateAndReason, map[string]int64{"rejected opted_out": 1, "accepted": 1})
}

// TestARecipientWhoOptsOutBetweenAttemptsGetsNoOther: the first provider refused, and a STOP came
// before the next attempt. The attempt stays stored, and its audit finds nothing.
func TestARecipientWhoOptsOutBetweenAttemptsGetsNoOther(t *testing.T) {
	t.Parallel()
	a := &archive{versions: map[int64]*decide.Routing{}}
	p := setup(t, func(r *decide.Routing) {
		lane := r.Lanes["bulk"]
		lane.Ambiguous = "resend_once"
		r.Lanes["bulk"] = lane
	})
	first := *p.routing
	a.keep(&first)
	outcomes := []provider.Outcome{provider.Refused, provider.Throttled, provider.Unknown}
	for _, c := range p.channels {
		c.answer = func(s provider.Submission) provider.Result {
			p.optOut(t, "shop", s.To)
			return provider.Result{Outcome: outcomes[s.To[len(s.To)-1]%3], Code: "scripted"}
		}
	}
	var jobs []decide.Job
	for i := range 9 {
		jobs = append(jobs, jobTo(fmt.Sprint("m", i), "bulk", "shop",
			fmt.Sprintf("+44770090012%d", i), time.Time{}))
	}
	p.handle(t, jobs)
	// The recipient may have the message that was not answered, so it is not rejected.
	p.eventually(t, stateAndReason,
		map[string]int64{"rejected opted_out": 6, "unknown ambiguous_final": 3})
	// The message that was queued behind a throttled one was never sent.
	p.eventually(t, `select outcome, count(*) from audit.attempts where provider_code = `+
		`'scripted' group by 1`,
		map[string]int64{"refused": 3, "throttled": 3, "unknown": 3})
	p.eventually(t, `select channel, active from audit.active`,
		map[string]int64{"a": 0, "b": 0, "c": 0})
	if records, found := p.audited(t, a); records != 9 || len(found) > 0 {
		t.Errorf("%d records: %+v", records, found)
	}
}
