package pipeline

import (
	"testing"
)

// TestALargeBatchOfTheFirstLaneHasTheSlotsThatAreKeptForIt: all others are held by attempts that
// nobody answers.
func TestALargeBatchOfTheFirstLaneHasTheSlotsThatAreKeptForIt(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	p.slots.hold(t, p.slots.size())
	defer p.slots.release(p.slots.size())
	messages := 2*p.express.size() + 1
	p.handle(t, jobsNamed("code", messages))
	p.eventually(t, byState, map[string]int64{"accepted": int64(messages)})
}
