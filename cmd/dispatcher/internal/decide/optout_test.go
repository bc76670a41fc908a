package decide

import (
	"testing"

	"dispatcher/ledger"
)

// TestWhatHasBegunIsFinished: half a message helps nobody, and a submission that is repeated under
// its own key is no other.
func TestWhatHasBegunIsFinished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seen := &ledger.Seen{OptedOut: []bool{true, true, true}}
	var tasks []Task
	for _, row := range []ledger.Message{{Lane: "bulk"}, {Lane: "bulk", PartsLeft: []int{1}}, {Lane: "bulk", SameKey: "k"}} {
		tasks = append(tasks, Task{Row: row, Lane: w.routing.Lane(row.Lane)})
	}
	excludeOptedOut(tasks, seen)
	for i, want := range []bool{true, false, false} {
		if tasks[i].barred != want {
			t.Errorf("task %d: barred %t", i, !want)
		}
	}
}
