package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/ledger"
)

func TestWeightsSetKeepsTheOthersAndShowsBothIntervals(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	got := dispatcher(t, "", env,
		withReason("a is cheaper", "weights", "set", "default", "a=40", "--format", "json")...)
	done := decoded[control.Changed](t, got)
	if got.code != exitOK || done.Version != 2 || done.Route != "default" ||
		done.Before.Size != 100 || done.After.Size != 115 {
		t.Fatalf("got %+v", got)
	}
	before, after := done.Before.Intervals[0], done.After.Intervals[0]
	if *before.High != 24 || *after.Low != 0 || *after.High != 39 ||
		after.Weight.String() != "40" || done.After.Intervals[2].Weight.String() != "60" {
		t.Errorf("got %+v", done)
	}
	if v := current(t, l); v.Document != strings.Replace(testRouting, "a: 25", "a: 40", 1) {
		t.Errorf("got %s", v.Document)
	}
	table := dispatcher(t, "", env,
		withReason("x", "weights", "set", "default", "c=0", "--dry-run")...).out
	for _, want := range []string{"0–39", "55–114", "→", "52.17 %"} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is missing in\n%s", want, table)
		}
	}
}

// shownWeights is the output of weights show.
type shownWeights struct {
	Version int64                  `json:"version"`
	Routes  []control.RouteWeights `json:"routes"`
}

func TestWeightsRampIsStoredForTheDispatchersToMake(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	began := time.Now()
	got := dispatcher(t, "", env,
		withReason("slowly", "weights", "ramp", "default", "a=40", "c=45", "--over", "30m",
			"--steps", "3",
			"--max-errors", "2.5%", "--max-deviation", "0.1", "--least", "50",
			"--format", "json")...)
	started := decoded[control.RampStarted](t, got)
	if got.code != exitOK || !started.Applied || started.Version != 1 || len(started.Plan) != 3 ||
		started.Plan[2].Weights["a"] != "40" || started.Plan[0].Weights["a"] != "30" {
		t.Fatalf("got %+v", got)
	}
	ramps, err := l.Ramps.List(t.Context(), false)
	if err != nil || len(ramps) != 1 {
		t.Fatal(ramps, err)
	}
	r := ramps[0]
	if r.Every != 10*time.Minute || r.Steps != 3 || r.State != ledger.RampRunning ||
		r.MaxErrors != 0.025 || r.MaxDeviation != 0.1 ||
		r.LeastMessages != 50 || r.Author != "ann" || r.Reason != "slowly" || r.From["b"] != "15" ||
		r.To["b"] != "15" || r.To["c"] != "45" {
		t.Errorf("got %+v", r)
	}
	if wait := r.NextAt.Sub(began); wait < 9*time.Minute || wait > 11*time.Minute {
		t.Errorf("the first step is due in %s", wait)
	}
	shown := decoded[shownWeights](t, dispatcher(t, "", env, "weights", "show", "--format", "json"))
	if shown.Version != 1 || shown.Routes[0].Ramp == nil ||
		shown.Routes[0].Ramp.State != "running" || *shown.Routes[0].Channels[2].Share != 0.6 {
		t.Errorf("got %+v", shown)
	}
	again := dispatcher(t, "", env, withReason("other", "weights", "ramp", "default", "a=1")...)
	if again.code != exitFailed ||
		!strings.Contains(again.err, `It was started by ann ("slowly")`) ||
		!strings.Contains(again.err, "--cancel") {
		t.Errorf("got %+v, want exit code %d, %q in the error and %q in the error",
			again, exitFailed, `It was started by ann ("slowly")`, "--cancel")
	}
	set := dispatcher(t, "", env, withReason("by hand", "weights", "set", "default", "b=5")...)
	if set.code != exitOK ||
		!strings.Contains(set.out, "Ramp 1 of route default ends with that, at step 0 of 3.") {
		t.Errorf("got %+v, want exit code %d and %q in the output",
			set, exitOK, "Ramp 1 of route default ends with that, at step 0 of 3.")
	}
}

func TestWeightsRampIsHeldResumedAndCancelled(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	steer := func(args ...string) result {
		return dispatcher(t, "", env,
			withReason("as agreed", append([]string{"weights", "ramp", "default"}, args...)...)...)
	}
	got := steer("--hold")
	if got.code != exitFailed ||
		!strings.Contains(got.err, "no ramp of route default runs or is held") {
		t.Errorf("got %+v, want exit code %d and %q in the error",
			got, exitFailed, "no ramp of route default runs or is held")
	}
	if got := steer("a=40"); got.code != exitOK {
		t.Fatalf("got %+v, want exit code %d", got, exitOK)
	}
	for _, step := range []struct {
		flag, says string
		state      ledger.RampState
	}{
		{"--resume", "is running already", ledger.RampRunning},
		{"--hold", "is held at step 0 of 6 (as agreed).", ledger.RampHeld},
		{"--hold", "is held already", ledger.RampHeld},
		{"--resume", "is running at step 0 of 6, the next step is due", ledger.RampRunning},
		{"--cancel", "is cancelled at step 0 of 6", ledger.RampCancelled},
	} {
		got := steer(step.flag)
		ramps, err := l.Ramps.List(t.Context(), true)
		if err != nil || got.code != exitOK || !strings.Contains(got.out, step.says) ||
			ramps[0].State != step.state || ramps[0].ChangedBy != "ann" {
			t.Errorf("%s: %+v %+v %v", step.flag, got, ramps, err)
		}
	}
	if got := steer("--cancel"); got.code != exitFailed {
		t.Errorf("got %+v, want exit code %d", got, exitFailed)
	}
	history := dispatcher(t, "", env, "routing", "history").out
	for _, want := range []string{"cancelled", "0/6", "resumed at step 0", "held at step 0"} {
		if !strings.Contains(history, want) {
			t.Errorf("the history does not say %q:\n%s", want, history)
		}
	}
	if n := strings.Count(history, "held at step 0"); n != 1 {
		t.Errorf("held %d times in\n%s", n, history)
	}
	// A change of weights ends a ramp at once, also without a running dispatcher.
	if got := steer("a=40"); got.code != exitOK {
		t.Fatalf("got %+v, want exit code %d", got, exitOK)
	}
	got = dispatcher(t, "", env, withReason("another way", "weights", "set", "default", "a=7")...)
	if got.code != exitOK {
		t.Fatalf("got %+v, want exit code %d", got, exitOK)
	}
	if open, err := l.Ramps.List(t.Context(), false); err != nil || len(open) != 0 {
		t.Errorf("%v: got %+v", err, open)
	}
}

func TestWeightsRampRefusesWhatCouldNeverBeMade(t *testing.T) {
	t.Parallel()
	_, env := seeded(t)
	for want, args := range map[string][]string{
		"name the weights to go to":             {},
		"--steps is 0":                          {"a=1", "--steps", "0"},
		"leaves less than a second":             {"a=1", "--over", "2s", "--steps", "5"},
		`--max-errors "5" is not part`:          {"a=1", "--max-errors", "5"},
		`--max-deviation "101%" is not part`:    {"a=1", "--max-deviation", "101%"},
		"all weights are 0":                     {"a=0", "b=0", "c=0"},
		"--hold, --resume and --cancel take no": {"a=1", "--hold"},
	} {
		args = withReason("x", append([]string{"weights", "ramp", "default"}, args...)...)
		got := dispatcher(t, "", env, args...)
		if got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
	}
	got := dispatcher(t, "", env,
		withReason("x", "weights", "ramp", "default", "--hold", "--cancel")...)
	if got.code != exitUsage {
		t.Errorf("got %+v, want exit code %d", got, exitUsage)
	}
}

func TestChannelsAreDrainedAndListed(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	claimed(t, l, drawn("m-1", 17, "a"))
	got := dispatcher(t, "", env, withReason("maintenance", "channel", "drain", "b")...)
	if got.code != exitOK || !strings.Contains(got.out, "channels.b.state") {
		t.Errorf("got %+v, want exit code %d and %q in the output", got, exitOK, "channels.b.state")
	}
	type listed struct {
		Version  int64           `json:"version"`
		Channels []status.Detail `json:"channels"`
	}
	list := decoded[listed](t, dispatcher(t, "", env, "channel", "list", "--format", "json"))
	if list.Version != 2 || len(list.Channels) != 3 {
		t.Fatalf("got %+v, want Version %v and %d in Channels", list, 2, 3)
	}
	a, b := list.Channels[0], list.Channels[1]
	if a.Active != 1 || a.LoadRatio != 0.01 || a.Capacity != 100 || a.Provider != "sandbox" ||
		!slices.Equal(a.Routes, []string{"default"}) || a.Limits == nil {
		t.Errorf("got %+v", a)
	}
	if b.State != "draining" || b.LastAssigned != nil || b.Active != 0 {
		t.Errorf("got %+v, want State %v, no LastAssigned and Active %v", b, "draining", 0)
	}
	for _, args := range [][]string{{"channel", "disable", "a"}, {"channel", "disable", "c"}} {
		got := dispatcher(t, "", env, withReason("all of it", args...)...)
		warned := strings.Contains(got.out, "Route default has no channel left")
		if got.code != exitOK || warned != (args[2] == "c") {
			t.Errorf("%v: got %+v", args, got)
		}
	}
	got = dispatcher(t, "", env, withReason("done", "channel", "enable", "b")...)
	if got.code != exitOK {
		t.Errorf("got %+v, want exit code %d", got, exitOK)
	}
}

func TestARouteIsPausedAndResumedByName(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	pause := func(want int, use, route string) string {
		t.Helper()
		got := dispatcher(t, "", env, withReason("wrong text", use, "--route", route)...)
		if got.code != want {
			t.Fatalf("%s %s: got %+v, want exit code %d", use, route, got, want)
		}
		return got.out + got.err
	}
	if said := pause(exitUsage, "pause", "other"); !strings.Contains(said,
		`there is no route "other"; choose one of default`) {
		t.Error(said)
	}
	prefix := dispatcher(t, "", env, "pause", "--prefix", "44", "--reason", "r")
	if prefix.code != exitUsage || !strings.HasPrefix(prefix.err,
		"dispatcher: the prefix does not begin a number: write a plus and digits") {
		t.Errorf("got %+v", prefix)
	}
	number := dispatcher(t, "", env, "pause", "--prefix", "+447700900123", "--reason", "r")
	if number.code != exitUsage || strings.Contains(number.err, "0900") ||
		!strings.HasPrefix(number.err, "dispatcher: a prefix in match, blocked, paused or limits is as long as a whole number") {
		t.Errorf("got %+v", number)
	}
	pause(exitOK, "pause", "default")
	if v := current(t, l); !strings.Contains(v.Document, "routes: [default]") {
		t.Errorf("got %s", v.Document)
	}
	pause(exitOK, "resume", "default")
	if v := current(t, l); strings.Contains(v.Document, "routes: [default]") {
		t.Errorf("got %s", v.Document)
	}
}

func TestChannelListShowsWhatLimitsLeave(t *testing.T) {
	t.Parallel()
	_, env := seeded(t)
	file := write(t, "limits.yaml",
		strings.Replace(testRouting, "a: {provider: sandbox,",
			"a: {provider: sandbox, limits: [{window: 1d, max: 500}], active: {max: 20},", 1))
	applyRouting(t, env, file)
	listed := dispatcher(t, "", env, "channel", "list").out
	if !strings.Contains(listed, " 0/500 ") || !strings.Contains(listed, " messages/1d ") {
		t.Error(listed)
	}
}

// lowered returns a database with testRouting and health weighting, whose version 3 lowers c from
// 60 to 15.
func lowered(t *testing.T) (l *ledger.Ledger, env []string) {
	t.Helper()
	l, env = seeded(t)
	file := write(t, "health.yaml",
		strings.Replace(testRouting, "c: 60}}", "c: 60}, health: {errors: 5}}", 1))
	applyRouting(t, env, file)
	_, err := l.Routing.ApplyEffects(t.Context(),
		ledger.NewEffects{
			Expect: 2, Author: "health", Overrides: []byte(`{"weights":{"default":{"c":"15"}}}`),
		})
	if err != nil {
		t.Fatal(err)
	}
	return l, env
}

// TestEditorsOfWeightsAreShownHealthEffects: the draws use 25, 15 and 15, so the intervals shown
// are those.
func TestEditorsOfWeightsAreShownHealthEffects(t *testing.T) {
	t.Parallel()
	l, env := lowered(t)
	dry := dispatcher(t, "", env, "weights", "set", "default", "a=31", "--dry-run")
	for _, want := range []string{
		"60 (15)", "40–54", "46–60",
		"health weighting keeps c at the effective weight 15 instead of 60",
	} {
		text := strings.Join(strings.Fields(dry.out), " ")
		if dry.code != exitOK || !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, dry.out)
		}
	}
	done := decoded[control.Changed](t,
		dispatcher(t, "", env,
			withReason("more", "weights", "set", "default", "a=31", "--format", "json")...))
	c := done.After.Intervals[2]
	if done.Before.Size != 55 || done.After.Size != 61 || c.Weight.String() != "15" ||
		c.Configured.String() != "60" || len(done.Warnings) != 1 {
		t.Errorf("got %+v", done)
	}
	v := current(t, l)
	doc, err := control.StoredRouting(&v)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := report.PreviewRoute(&doc.Routes[0])
	if err != nil || stored.Size != done.After.Size {
		t.Errorf("the message has %d, the draws use %d, %v", done.After.Size, stored.Size, err)
	}
}

func TestARampMayLastDays(t *testing.T) {
	t.Parallel()
	_, env := seeded(t)
	got := dispatcher(t, "", env, "weights", "ramp", "default", "a=40", "--over", "400d",
		"--steps", "4", "--dry-run", "--format", "json")
	if started := decoded[control.RampStarted](t, got); started.Ramp.EverySeconds != 100*24*3600 {
		t.Errorf("got %+v", got)
	}
	var f overFlag
	for text, want := range map[string]string{"2d": "2d", "48h": "2d", "90m": "1h30m0s"} {
		if err := f.Set(text); err != nil || f.String() != want {
			t.Errorf("%s: %s %v", text, &f, err)
		}
	}
	for _, bad := range []string{"d", "-1d", "1.5d", "999999999d", "x", ""} {
		if err := f.Set(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
