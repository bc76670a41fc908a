package decide

import (
	"slices"
	"testing"

	"dispatcher/ledger"
)

// TestOrderTakesTheFirstThatCan: whatever the load and last assignment of the channels, mode order
// picks the first listed channel that is not excluded. The ranking has the reasons of those before.
func TestOrderTakesTheFirstThatCan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*fixture)
		want   string
		listed []string
	}{
		"all can": {func(*fixture) {}, "a", []string{"a"}},
		"the first is loaded": {
			func(w *fixture) { w.seen.Channels[0].Gate.Active.Count = 99 }, "a", []string{"a"},
		},
		"the first was assigned last": {
			func(w *fixture) { w.seen.Channels[0].LastAssigned = noon }, "a", []string{"a"},
		},
		"the first is down": {
			func(w *fixture) { w.unready[0] = "connecting" }, "b", []string{"a connecting", "b"},
		},
		"two are away": {func(w *fixture) {
			w.unready[0], w.routing.Channels[1].State = "breaker_open", Draining
		}, "c", []string{"a breaker_open", "b draining", "c"}},
	} {
		w := inMode(t, InOrderMode, InOrder)
		c.change(w)
		d := w.decide(w.fresh())
		if d.State != ledger.Sending || d.Attempt.Channel != c.want ||
			d.Attempt.Reason != ledger.ByFirstChoice || d.Plan.FirstChoice != c.want ||
			d.Plan.Size != 0 {
			t.Errorf("%s: decision %+v", name, d)
			continue
		}
		r := decoded(t, d)
		var listed []string
		for _, one := range r.Candidates {
			text := one.Channel
			if one.Reason != "" {
				text += " " + one.Reason
			}
			listed = append(listed, text)
		}
		if !slices.Equal(listed, c.listed) || r.By != "order" || r.More != 3-len(listed) {
			t.Errorf("%s: ranking %+v", name, r)
		}
	}
}

// TestOrderGoesOnBehindARefusal: the fallback order skips the channels that were tried in the
// round, and never returns to one before them.
func TestOrderGoesOnBehindARefusal(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{InOrderMode, RoundRobinMode} {
		w := inMode(t, mode, InOrder)
		w.seen.Channels[1].Gate.Active.Count = 99
		task := w.fresh()
		task.tried("a")
		if d := w.decide(task); d.Attempt.Channel != "b" || d.Attempt.Reason != ledger.ByFallback {
			t.Errorf("after a: %+v", d)
		}
		task = w.fresh()
		task.tried("a", "b")
		if d := w.decide(task); d.Attempt.Channel != "c" {
			t.Errorf("after a and b: %+v", d)
		}
	}
	w := newFixture(t) // weighted: the drawn channel, then the others as listed
	w.routing.Routes[0].Fallback = InOrder
	w.unready[2] = "connecting"
	w.seen.Channels[0].Gate.Active.Count = 99
	if d := w.decide(w.task("c")); d.Attempt.Channel != "a" ||
		d.Attempt.Reason != ledger.ByFallback {
		t.Errorf("behind the drawn c: %+v", d)
	}
}
