package pipeline

import (
	"strings"
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/provider"
)

// dailyBudget allows three messages a day, at 30000 micros each.
func dailyBudget() admission.Limit {
	return admission.Limit{
		Window: admission.Day, Unit: admission.Money, Max: 90_000,
		Currency: "GBP",
	}
}

// atNoon sets the time zone so that it is about noon: no business day ends and no reserve decays
// meanwhile.
func atNoon(r *decide.Routing) {
	into := time.Duration(time.Now().UnixNano()) % (24 * time.Hour)
	r.Zone = time.FixedZone("here", int((12*time.Hour - into).Seconds()))
}

// rejectsBad accepts every message except those whose ids begin with bad.
func rejectsBad(s provider.Submission) provider.Result {
	if strings.HasPrefix(s.ID, "bad") {
		return provider.Result{Outcome: provider.Rejected, Code: "number"}
	}
	return accepts(s)
}

// TestWhatComesBackFillsTheShareOfAProcessAgain: under each policy a process spends its whole share
// on messages that are rejected, and still has all of it for messages that are accepted.
func TestWhatComesBackFillsTheShareOfAProcessAgain(t *testing.T) {
	t.Parallel()
	for _, policy := range []admission.Policy{
		admission.Exact{},
		admission.Even{},
		admission.Curve{Factor: 1},
		admission.CounterPolicy{},
	} {
		t.Run(policy.String(), func(t *testing.T) {
			t.Parallel()
			p := setup(t, func(r *decide.Routing) {
				onlyA(r)
				atNoon(r)
				r.Channels[0].Policy = policy
			})
			p.limitTo(t, []admission.Limit{dailyBudget()}, nil)
			p.channels["a"].answer = rejectsBad
			p.handle(t, jobsNamed("bad", 7)) // they continue as soon as money is refunded
			p.eventually(t, byState, map[string]int64{"rejected": 7})
			p.handle(t, jobsNamed("good", 3))
			p.eventually(t, byState, map[string]int64{"rejected": 7, "accepted": 3})
			p.handle(t, jobsNamed("more", 1))
			p.eventually(t, `select coalesce(reason, ''), count(*) from dispatcher.messages `+
				`where state = 'waiting' group by 1`, map[string]int64{decide.NoBudget: 1})
		})
	}
}

// TestWaitersForMoneyAreClaimedOnceItIsRefunded: however long settling takes. A waiting message
// that was claimed earlier would find no money and wait for a minute.
func TestWaitersForMoneyAreClaimedOnceItIsRefunded(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) { onlyA(r); atNoon(r) })
	p.limitTo(t, []admission.Limit{dailyBudget()}, nil)
	p.channels["a"].answer = rejectsBad
	for _, sql := range []string{
		// longer than dueInterval
		`create function dispatcher.doze() returns trigger language plpgsql as 'begin perform ` +
			`pg_sleep(1); return null; end'`,
		`create trigger doze before update on dispatcher.attempts for each statement execute ` +
			`function dispatcher.doze()`,
	} {
		if _, err := p.sql.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	p.handle(t, append(jobsNamed("bad", 3), jobsNamed("good", 3)...))
	p.eventually(t, byState, map[string]int64{"rejected": 3, "accepted": 3})
}

// TestWhatComesBackFillsTheReserveOfItsLaneAgain: rejected otp messages use up nothing of the
// reserve for otp.
func TestWhatComesBackFillsTheReserveOfItsLaneAgain(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) {
		onlyA(r)
		atNoon(r)
		r.Lanes["otp"] = decide.Lane{Lane: config.Lane{
			Name: "otp", TTL: time.Hour,
			MaxWaiting: 100,
		}}
	})
	kept := dailyBudget()
	kept.Reserve = []admission.Reserve{{Lane: "otp", Percent: 34}} // one message
	p.limitTo(t, []admission.Limit{kept}, nil)
	p.channels["a"].answer = rejectsBad
	codes := func(prefix string, n int) []decide.Job {
		jobs := jobsNamed(prefix, n)
		for i := range jobs {
			jobs[i].Lane = "otp"
		}
		return jobs
	}
	p.handle(t, codes("bad", 2))
	p.eventually(t, byState, map[string]int64{"rejected": 2})
	p.handle(t, jobsNamed("campaign", 3))
	// 30600 are reserved, so a second one finds too little
	p.eventually(t, byState, map[string]int64{"rejected": 2, "accepted": 1, "waiting": 2})
	p.handle(t, codes("good", 2))
	p.eventually(t, byState, map[string]int64{"rejected": 2, "accepted": 3, "waiting": 2})
}
