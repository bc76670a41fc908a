package ledger_test

import (
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dispatcher/ledger"
)

// ramp is a ramp of three steps, one an hour.
func ramp(route string) ledger.Ramp {
	return ledger.Ramp{
		Route: route, From: map[string]string{"a": "5", "b": "95"}, To: map[string]string{
			"a": "34.5", "b": "65.5",
		},
		Steps: 3, Every: time.Hour, MaxErrors: 0.05, MaxDeviation: 0.1, LeastMessages: 200,
		Author: "ann", Reason: "new contract",
	}
}

func startRamp(t testing.TB, l *ledger.Ledger, r ledger.Ramp) ledger.Ramp {
	t.Helper()
	started, err := l.Ramps.Start(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return started
}

// makeStep applies a document as a step of the ramp, whatever happened to the ramp since r was
// read.
func makeStep(t testing.TB, l *ledger.Ledger, r ledger.Ramp, step int, routes ...string) error {
	r.Step, r.ChangedAt = step, time.Time{}
	_, err := l.Routing.Apply(t.Context(), ledger.NewRouting{
		Author: "ramp", Document: "step",
		Routes: rotatingRoutes(members, routes...), Ramp: &r,
	})
	return err
}

// only is the one ramp that the ledger has.
func only(t testing.TB, l *ledger.Ledger) ledger.Ramp {
	t.Helper()
	ramps, err := l.Ramps.List(t.Context(), true)
	if err != nil || len(ramps) != 1 {
		t.Fatalf("%d ramps, %v", len(ramps), err)
	}
	return ramps[0]
}

func TestARampGoesFromItsStartToItsLastStep(t *testing.T) {
	t.Parallel()
	l := lend(t).l
	applyRoutes(t, l, members, "default")
	before, err := l.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	started := startRamp(t, l, ramp("default"))
	want := ramp("default")
	want.ID, want.State, want.ChangedBy = started.ID, ledger.RampRunning, "ann"
	times := cmpopts.IgnoreFields(ledger.Ramp{}, "NextAt", "CreatedAt", "ChangedAt")
	if diff := cmp.Diff(want, started, times); diff != "" || started.NextAt.Before(before) ||
		!started.NextAt.Equal(started.CreatedAt) {
		t.Errorf("due %s, %s", started.NextAt, diff)
	}
	for step := 1; step <= 3; step++ {
		if err := makeStep(t, l, started, step, "default"); err != nil {
			t.Fatal(err)
		}
		want.Step, want.Version = step, int64(step+1)
		if step == 3 {
			want.State = ledger.RampDone
		}
		got := only(t, l)
		if diff := cmp.Diff(want, got, times); diff != "" {
			t.Error(diff)
		}
		if due := started.NextAt.Add(time.Duration(step) * time.Hour); step < 3 &&
			!got.NextAt.Equal(due) || step == 3 && !got.NextAt.IsZero() {
			t.Errorf("after step %d the next one is due at %s, want %s", step, got.NextAt, due)
		}
	}
	if open, err := l.Ramps.List(t.Context(), false); len(open) != 0 || err != nil {
		t.Errorf("%d ramps are open, %v", len(open), err)
	}
	later := ramp("default")
	later.NextAt = before.Add(24 * time.Hour)
	if second := startRamp(t, l, later); !second.NextAt.Equal(later.NextAt) {
		t.Errorf("due at %s", second.NextAt)
	}
}

func TestARouteHasOneRampAtATime(t *testing.T) {
	t.Parallel()
	l := lend(t).l
	first := startRamp(t, l, ramp("default"))
	startRamp(t, l, ramp("another"))
	if _, err := l.Ramps.Start(t.Context(), ramp("default"), nil); !errors.Is(err,
		ledger.ErrRampRunning) {
		t.Errorf("beside a running one: got %v", err)
	}
	if err := l.Ramps.Set(t.Context(), first.ID, ledger.RampRunning, ledger.RampHeld, ledger.RampChange{By: "steer", Why: "errors"}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Ramps.Start(t.Context(), ramp("default"), nil); !errors.Is(err,
		ledger.ErrRampRunning) {
		t.Errorf("beside a held one: got %v", err)
	}
	if err := l.Ramps.Set(t.Context(), first.ID, ledger.RampHeld, ledger.RampCancelled, ledger.RampChange{By: "ann", Why: ""}); err != nil {
		t.Fatal(err)
	}
	second := startRamp(t, l, ramp("default"))
	open, err := l.Ramps.List(t.Context(), false)
	if err != nil || len(open) != 2 || open[0].ID != second.ID || open[1].Route != "another" {
		t.Errorf("%v, %v", open, err)
	}
}

// TestARampThatWasHeldAndResumedMeanwhileStaysAsItIs: what another process found out before that
// changes nothing, although the ramp is running again.
func TestARampThatWasHeldAndResumedMeanwhileStaysAsItIs(t *testing.T) {
	t.Parallel()
	l := lend(t).l
	seen := startRamp(t, l, ramp("default"))
	hold := ledger.RampChange{By: "steer", Why: "errors", Seen: seen.ChangedAt}
	if err := l.Ramps.Set(t.Context(), seen.ID, ledger.RampRunning, ledger.RampHeld,
		hold); err != nil {
		t.Fatal(err)
	}
	if err := l.Ramps.Set(t.Context(), seen.ID, ledger.RampHeld, ledger.RampRunning,
		ledger.RampChange{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Ramps.Set(t.Context(), seen.ID, ledger.RampRunning, ledger.RampHeld,
		hold); !errors.Is(err, ledger.ErrRampMoved) {
		t.Errorf("the second hold: %v", err)
	}
	next := seen
	next.Step = 1
	if _, err := l.Routing.Apply(t.Context(), ledger.NewRouting{
		Author: "ramp", Document: "step", Routes: rotatingRoutes(members, "default"), Ramp: &next,
	}); !errors.Is(err, ledger.ErrRampMoved) {
		t.Errorf("a step: %v", err)
	}
	if now := only(t, l); now.State != ledger.RampRunning || now.Step != 0 {
		t.Errorf("it is %s at step %d", now.State, now.Step)
	}
}

// Two appliers make each step, as two processes do whose timers fire at the same time.
func TestOfTwoAppliersOfAStepOneWinsAndTheOtherAppliesNothing(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	appliers := []*ledger.Ledger{rig.l, connect(t, ledger.Config{URL: rig.url})}
	long := ramp("default")
	long.Steps = 20
	started := startRamp(t, appliers[0], long)
	for step := 1; step <= long.Steps; step++ {
		var won, lost atomic.Int32
		var race sync.WaitGroup
		for _, l := range appliers {
			race.Go(func() {
				switch err := makeStep(t, l, started, step, "default"); {
				case err == nil:
					won.Add(1)
				case errors.Is(err, ledger.ErrRampMoved) && !ledger.Unavailable(err):
					lost.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		race.Wait()
		if won.Load() != 1 || lost.Load() != 1 {
			t.Errorf("step %d: %d won, %d lost", step, won.Load(), lost.Load())
		}
	}
	if n := scalar[int](t, rig.db,
		`select count(*) from dispatcher.routing_versions`); n != long.Steps {
		t.Errorf("%d versions", n)
	}
}

func TestAStepOutOfTurnAppliesNothing(t *testing.T) {
	t.Parallel()
	l := lend(t).l
	started := startRamp(t, l, ramp("default"))
	for _, step := range []int{-1, 0, 2, 4} {
		if err := makeStep(t, l, started, step, "default"); !errors.Is(err, ledger.ErrRampMoved) {
			t.Errorf("step %d: got %v", step, err)
		}
	}
	if err := l.Ramps.Set(t.Context(), started.ID, ledger.RampRunning, ledger.RampHeld,
		ledger.RampChange{By: "steer", Why: "too many errors"}); err != nil {
		t.Fatal(err)
	}
	if err := makeStep(t, l, started, 1, "default"); !errors.Is(err, ledger.ErrRampMoved) {
		t.Errorf("held: got %v", err)
	}
	if _, err := l.Routing.Current(t.Context()); !errors.Is(err, ledger.ErrNoRouting) {
		t.Errorf("got %v", err)
	}
	expect := int64(7)
	started.Step = 1
	_, err := l.Routing.Apply(t.Context(), ledger.NewRouting{
		Author: "ramp", Expect: &expect,
		Ramp: &started,
	})
	if conflict := (*ledger.VersionConflictError)(nil); !errors.As(err, &conflict) ||
		only(t, l).Step != 0 {
		t.Errorf("a conflict moved the ramp: %v", err)
	}
}

func TestSetRampMakesLegalMovesOnceAndNoOthers(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	states := []ledger.RampState{
		ledger.RampRunning, ledger.RampHeld, ledger.RampDone,
		ledger.RampCancelled, ledger.RampSuperseded,
	}
	legal := map[ledger.RampState][]ledger.RampState{
		ledger.RampRunning: {ledger.RampHeld, ledger.RampCancelled, ledger.RampSuperseded},
		ledger.RampHeld:    {ledger.RampRunning, ledger.RampCancelled, ledger.RampSuperseded},
	}
	for _, from := range states {
		for _, to := range states {
			if _, err := db.Exec(t.Context(), `truncate dispatcher.ramps cascade`); err != nil {
				t.Fatal(err)
			}
			id := startRamp(t, l, ramp("default")).ID
			if from == ledger.RampHeld {
				if err := l.Ramps.Set(t.Context(), id, ledger.RampRunning, ledger.RampHeld,
					ledger.RampChange{By: "steer", Why: "errors"}); err != nil {
					t.Fatal(err)
				}
			}
			err := l.Ramps.Set(t.Context(), id, from, to, ledger.RampChange{By: "bob", Why: "because"})
			if allowed := slices.Contains(legal[from], to); (err == nil) != allowed {
				t.Errorf("from %s to %s: %v", from, to, err)
			} else if !allowed {
				continue
			}
			got := only(t, l)
			held := "because"
			if to == ledger.RampRunning {
				held = ""
			}
			if got.State != to || got.Held != held || got.ChangedBy != "bob" ||
				got.NextAt.IsZero() != (to != ledger.RampRunning) {
				t.Errorf("from %s to %s: %+v", from, to, got)
			}
			if err := l.Ramps.Set(t.Context(), id, from, to, ledger.RampChange{By: "bob", Why: "because"}); !errors.Is(err,
				ledger.ErrRampMoved) {
				t.Errorf("from %s to %s twice: %v", from, to, err)
			}
		}
	}
}

func TestARampThatIsResumedWaitsAWholeInterval(t *testing.T) {
	t.Parallel()
	l := lend(t).l
	id := startRamp(t, l, ramp("default")).ID
	if err := l.Ramps.Set(t.Context(), id, ledger.RampRunning, ledger.RampHeld, ledger.RampChange{By: "steer", Why: ""}); err == nil {
		t.Error("held without a reason")
	}
	for _, move := range [][2]ledger.RampState{{ledger.RampRunning, ledger.RampHeld}, {
		ledger.RampHeld, ledger.RampRunning,
	}} {
		if err := l.Ramps.Set(t.Context(), id, move[0], move[1], ledger.RampChange{By: "ann", Why: "errors"}); err != nil {
			t.Fatal(err)
		}
	}
	if r := only(t, l); !r.NextAt.Equal(r.ChangedAt.Add(time.Hour)) {
		t.Errorf("changed at %s, next at %s", r.ChangedAt, r.NextAt)
	}
}

func TestADocumentWithoutTheRouteSupersedesItsRamp(t *testing.T) {
	t.Parallel()
	l := lend(t).l
	applyRoutes(t, l, members, "default", "another")
	startRamp(t, l, ramp("default"))
	applyRoutes(t, l, members, "default")
	if r := only(t, l); r.State != ledger.RampRunning {
		t.Errorf("%s: %s", r.State, r.Held)
	}
	applyRoutes(t, l, members, "another")
	if r := only(t, l); r.State != ledger.RampSuperseded ||
		r.Held != "route removed, by routing version 3" || r.ChangedBy != "test" {
		t.Errorf("%+v", r)
	}
}

func TestADocumentThatSetsTheWeightsOtherwiseEndsTheRampAtOnce(t *testing.T) {
	t.Parallel()
	l := lend(t).l
	applyRoutes(t, l, members, "default", "another")
	startRamp(t, l, ramp("default"))
	startRamp(t, l, ramp("another"))
	n := ledger.NewRouting{
		Author: "ann", Document: "weights", Routes: rotatingRoutes(members, "default", "another"),
		EndsRamp: func(r *ledger.Ramp) string {
			if r.Route == "default" {
				return "channel a has weight 7"
			}
			return ""
		},
	}
	if _, err := l.Routing.Apply(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	open, err := l.Ramps.List(t.Context(), false)
	if err != nil || len(open) != 1 || open[0].Route != "another" {
		t.Fatalf("%v %+v", err, open)
	}
	all, err := l.Ramps.List(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	ended := all[slices.IndexFunc(all, func(r ledger.Ramp) bool { return r.Route == "default" })]
	if ended.State != ledger.RampSuperseded ||
		ended.Held != "channel a has weight 7, by routing version 2" || ended.ChangedBy != "ann" {
		t.Errorf("%+v", ended)
	}
	startRamp(t, l, ramp("default")) // nothing is in its way
}

func TestLateStepsKeepToThePlanButNeverCatchUpInABurst(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		late string
		next time.Duration // from now
	}{
		"a little late":              {"20 minutes", 40 * time.Minute},
		"late by more than a step":   {"100 minutes", time.Hour},
		"nobody ran for a whole day": {"1 day", time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig := lend(t)
			l, db := rig.l, rig.db
			applyRoutes(t, l, members, "default")
			started := startRamp(t, l, ramp("default"))
			if _, err := db.Exec(t.Context(),
				`update dispatcher.ramps set next_at = now() - $1::text::interval`,
				test.late); err != nil {
				t.Fatal(err)
			}
			if err := makeStep(t, l, started, 1, "default"); err != nil {
				t.Fatal(err)
			}
			r := only(t, l)
			if off := r.NextAt.Sub(r.ChangedAt.Add(test.next)); off.Abs() > 10*time.Second {
				t.Errorf("the next step is due %s after this one, want %s",
					r.NextAt.Sub(r.ChangedAt), test.next)
			}
		})
	}
}

func TestWhatHappenedToARampStaysOnRecord(t *testing.T) {
	t.Parallel()
	l := lend(t).l
	applyRoutes(t, l, members, "default")
	started := startRamp(t, l, ramp("default"))
	if err := makeStep(t, l, started, 1, "default"); err != nil {
		t.Fatal(err)
	}
	for _, move := range []struct {
		from, to ledger.RampState
		why, by  string
	}{
		{ledger.RampRunning, ledger.RampHeld, "errors 34 %", "dispatcher"},
		{ledger.RampHeld, ledger.RampRunning, "go on, ticket 7", "bob"},
		{ledger.RampRunning, ledger.RampCancelled, "enough", "ann"},
	} {
		if err := l.Ramps.Set(t.Context(), started.ID, move.from, move.to, ledger.RampChange{By: move.by, Why: move.why}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := l.Ramps.Moves(t.Context(), started.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := []ledger.RampMove{
		{Author: "ann", Move: "started", Reason: "new contract"},
		{Author: "ramp", Move: "step", Step: 1, Version: 2},
		{Author: "dispatcher", Move: "held", Step: 1, Version: 2, Reason: "errors 34 %"},
		{Author: "bob", Move: "resumed", Step: 1, Version: 2, Reason: "go on, ticket 7"},
		{Author: "ann", Move: "cancelled", Step: 1, Version: 2, Reason: "enough"},
	}
	ignored := cmpopts.IgnoreFields(ledger.RampMove{}, "At", "Login")
	if diff := cmp.Diff(want, got, ignored); diff != "" {
		t.Error(diff)
	}
}

func TestStartRampRefusesWhatCouldNeverMakeAStep(t *testing.T) {
	t.Parallel()
	l := lend(t).l
	for name, spoil := range map[string]func(*ledger.Ramp){
		"no route":             func(r *ledger.Ramp) { r.Route = "" },
		"no start":             func(r *ledger.Ramp) { r.From = nil },
		"no aim":               func(r *ledger.Ramp) { r.To = nil },
		"no steps":             func(r *ledger.Ramp) { r.Steps = 0 },
		"no interval":          func(r *ledger.Ramp) { r.Every = 0 },
		"more errors than all": func(r *ledger.Ramp) { r.MaxErrors = 1.5 },
		"no number":            func(r *ledger.Ramp) { r.MaxDeviation = math.NaN() },
		"negative messages":    func(r *ledger.Ramp) { r.LeastMessages = -1 },
	} {
		r := ramp("default")
		spoil(&r)
		if _, err := l.Ramps.Start(t.Context(), r, nil); err == nil || ledger.Unstorable(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
