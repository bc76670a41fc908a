package pipeline

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/provider"
)

// TestNothingLeavesPastItsDeadline: another message occupies the only sender until the deadline has
// passed.
func TestNothingLeavesPastItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		carrier := &timedChannel{takes: 3 * time.Second}
		w, now := newTestWorker(t, carrier, 1), time.Now()
		first := &openAttempt{Attempt: &decide.Attempt{}, claimed: now}
		second := &openAttempt{Attempt: &decide.Attempt{}, claimed: now}
		first.Submission.ID, second.Submission.ID = "first", "second"
		first.Submission.Deadline, second.Submission.Deadline = now.Add(time.Second),
			now.Add(2*time.Second)
		w.put(first)
		synctest.Wait()
		w.put(second)
		time.Sleep(2*time.Second + 50*time.Millisecond)
		if codes := w.codes(); codes[decide.CodeExpired] != 1 || len(codes) != 1 {
			t.Errorf("got %v returned right after the deadline", codes)
		}
		time.Sleep(time.Second)
		if _, ids := carrier.submits(); len(ids) != 1 || ids[0] != "first" {
			t.Errorf("%v were submitted", ids)
		}
	})
}

// TestAMessageThatExpiresInItsQueueIsGivenUp: in a whole pipeline. It fails, costs nothing and
// holds no slot.
func TestAMessageThatExpiresInItsQueueIsGivenUp(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *decide.Routing) { onlyA(r); r.Channels[0].Concurrency = 1 })
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	p.channels["a"].answer = func(s provider.Submission) provider.Result {
		<-gate
		return accepts(s)
	}
	p.handle(t, jobsNamed("first", 1))
	p.eventually(t, byState, map[string]int64{"sending": 1})
	jobs := jobsNamed("short", 3)
	for i := range jobs {
		soon := p.now().Add(3 * time.Second) // before its send timeout of 5 s
		jobs[i].Message.ExpiresAt = soon.UTC().Truncate(time.Millisecond)
		jobs[i].Raw = jobs[i].Message.Append(nil)
	}
	p.handle(t, jobs)
	p.eventually(t, byState, map[string]int64{"sending": 1, "failed": 3})
	open()
	p.eventually(t, byState, map[string]int64{"accepted": 1, "failed": 3})
	p.eventually(t, `select coalesce(outcome, '') || ' ' || coalesce(provider_code, '') || ' ' `+
		`|| price_micros, count(*) from audit.attempts where message_id like 'short%' group by 1`,
		map[string]int64{"refused expired 0": 3})
	p.eventually(t, `select 'active', active from audit.active where channel = 'a'`,
		map[string]int64{"active": 0})
	if n := len(p.channels["a"].submits()); n != 1 {
		t.Errorf("%d messages were submitted", n)
	}
}

// TestASubmissionCarriesItsDeadline: by this process's clock, earlier by the uncertainty of the
// database's.
func TestASubmissionCarriesItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, asked := newClock(), time.Now()
		time.Sleep(20 * time.Millisecond)
		here := time.Now()
		// the database's clock is an hour slow, within 10 ms
		c.read(here.Add(-time.Hour), asked, here)
		expires := c.now().Add(time.Minute)
		if got := c.deadline(expires).Sub(here); got != time.Minute-10*time.Millisecond {
			t.Errorf("in %s", got)
		}
		if got := c.deadline(time.Time{}); !got.IsZero() {
			t.Errorf("a deadline %s without one", got)
		}
	})
}
