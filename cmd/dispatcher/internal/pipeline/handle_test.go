package pipeline

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config/tier"
	"dispatcher/provider"
)

func TestSecondRecordWithAnIDOfTheBatchComesLater(t *testing.T) {
	t.Parallel()
	ids := func(jobs []decide.Job) (out []string) {
		for _, j := range jobs {
			out = append(out, j.Message.ID)
		}
		return out
	}
	var jobs []decide.Job
	for _, id := range []string{"a", "b", "a", "", "", "c", "b", "a"} {
		jobs = append(jobs, decide.Job{Message: envelope.Message{ID: id}})
	}
	first, again := distinct(jobs)
	if !cmp.Equal(ids(first), []string{"a", "b", "", "", "c"}) ||
		!cmp.Equal(ids(again), []string{"a", "b", "a"}) {
		t.Errorf("first %q, again %q", ids(first), ids(again))
	}
}

// TestALargeBatchOfTheFirstLaneHasTheSlotsThatAreKeptForIt: all other slots are held by attempts
// without answers.
func TestALargeBatchOfTheFirstLaneHasTheSlotsThatAreKeptForIt(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	p.slots.hold(t, p.slots.size())
	defer p.slots.release(p.slots.size())
	messages := 2*p.firstLaneSlots.size() + 1
	p.handle(t, jobsNamed("code", messages))
	p.eventually(t, byState, map[string]int64{"accepted": int64(messages)})
}

// TestAMessageIsReceivedOnce: not again when its record is repeated or when it comes due, and not
// at all when it can never be sent.
func TestAMessageIsReceivedOnce(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	p.handle(t, jobsNamed("m", 3))
	p.handle(t, jobsNamed("m", 4)) // three of them again
	later := forLater(jobsNamed("later", 1))
	later[0].Message.To = "+18765550123"
	later[0].Raw = later[0].Message.Append(nil)
	p.handle(t, later)
	unusable := jobsNamed("unusable", 1)
	unusable[0].Problem = &envelope.Problem{Code: envelope.Unstorable, Detail: "a test"}
	p.handle(t, unusable)
	p.comeDue(t)
	p.eventually(t, byState, map[string]int64{"accepted": 5, "dead": 1})
	p.received.mu.Lock()
	defer p.received.mu.Unlock()
	want := map[string]int{"+447700900123": 4, "+18765550123": 1}
	if diff := cmp.Diff(want, p.received.all); diff != "" {
		t.Error(diff)
	}
}

// TestNothingIsSentBeforeItsAttemptIsCommitted: at each submit another session sees the attempt.
// The transaction of the claim takes long, so that an earlier submit would find none.
func TestNothingIsSentBeforeItsAttemptIsCommitted(t *testing.T) {
	t.Parallel()
	const n = 20
	p := setup(t, nil)
	for _, sql := range []string{
		`create function dispatcher.slow() returns trigger language plpgsql as
			'begin perform pg_sleep(0.02); return null; end'`,
		`create trigger slow after insert on dispatcher.attempts for each row
			execute function dispatcher.slow()`,
	} {
		if _, err := p.sql.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex // p.sql serves one query at a time
	sent, early := 0, 0
	for _, c := range p.channels {
		c.answer = func(s provider.Submission) provider.Result {
			mu.Lock()
			defer mu.Unlock()
			var stored bool
			if err := p.sql.QueryRow(t.Context(), `select exists (select from audit.attempts
				where message_id = $1 and attempt = $2)`, s.ID, s.Attempt).Scan(&stored); err != nil {
				t.Error(err)
			}
			if !stored {
				early++
			}
			sent++
			return accepts(s)
		}
	}
	p.handle(t, jobsNamed("m", n))
	tier.Eventually(t, "all are sent", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return sent == n
	})
	if early > 0 {
		t.Errorf("%d of %d messages were sent before their attempts were committed", early, n)
	}
}
