package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
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
	messages := 2*p.express.size() + 1
	p.handle(t, jobsNamed("code", messages))
	p.eventually(t, byState, map[string]int64{"accepted": int64(messages)})
}
