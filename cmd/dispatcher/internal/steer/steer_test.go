package steer

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/provider"
)

func TestARampChangesNothingButItsWeights(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ramp := r.start(ledger.Ramp{To: m("a", "25", "b", "45", "c", "30"), Steps: 3, Every: time.Hour})
	s := r.steerer()
	for step, weights := range []string{
		"a: 25, b: 25, c: 50", "a: 25, b: 35, c: 40",
		"a: 25, b: 45, c: 30",
	} {
		r.round(s)
		r.round(s) // the next step is not due
		v, _ := r.current()
		want := strings.Replace(document, "a: 25, b: 15, c: 60", weights, 1)
		if diff := cmp.Diff(want, v.Document); diff != "" {
			t.Errorf("step %d: %s", step+1, diff)
		}
		reason := fmt.Sprintf("ramp %d: step %d of 3: cheaper", ramp.ID, step+1)
		if v.Version != int64(step+2) || v.Author != fmt.Sprintf("ramp %d of alice", ramp.ID) ||
			v.Reason != reason {
			t.Errorf("step %d is version %d of %q because %q", step+1, v.Version, v.Author,
				v.Reason)
		}
		if at := r.ramp(ramp.ID); at.Step != step+1 || at.Version != v.Version {
			t.Errorf("after step %d the ramp is at %d, version %d", step+1, at.Step, at.Version)
		}
		r.age(time.Hour)
	}
	r.round(s)
	if v, _ := r.current(); v.Version != 4 || r.ramp(ramp.ID).State != ledger.RampDone {
		t.Errorf("at the end: version %d, ramp %s", v.Version, r.ramp(ramp.ID).State)
	}
}

// TestInstancesTogetherMakeEachStepOnce: eight instances run over one ramp.
func TestInstancesTogetherMakeEachStepOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const steps = 12
	ramp := r.start(ledger.Ramp{
		To: m("a", "85", "b", "15", "c", "0"), Steps: steps,
		Every: time.Microsecond,
	})
	ctx, cancel := context.WithTimeout(t.Context(), tier.LongestWait)
	defer cancel()
	var group sync.WaitGroup
	for range 8 {
		s := r.steerer()
		group.Go(func() {
			for ctx.Err() == nil && r.ramp(ramp.ID).State == ledger.RampRunning {
				if err := s.round(ctx); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	v, doc := r.current()
	if v.Version != 1+steps || r.ramp(ramp.ID).State != ledger.RampDone {
		t.Errorf("version %d, ramp %+v", v.Version, r.ramp(ramp.ID))
	}
	if diff := cmp.Diff(m("a", "85", "b", "15", "c", "0"), texts(doc)); diff != "" {
		t.Error(diff)
	}
}

func TestARampHoldsByItselfAndGoesOnWhenResumed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.steerer()
	ramp := r.start(ledger.Ramp{
		To: m("a", "65", "b", "15", "c", "20"), Steps: 2, Every: time.Hour,
		MaxErrors: 0.05, LeastMessages: 50,
	})
	r.round(s)
	r.carry("a", provider.Refused, 4)
	r.carry("c", provider.Accepted, 60)
	r.age(time.Hour)
	// after the step
	r.exec(`update dispatcher.attempts set claimed_at = claimed_at + interval '59 minutes'`)
	r.round(s)
	held := r.ramp(ramp.ID)
	if held.State != ledger.RampHeld || held.Held != "channel a: errors 100 % above the band of 5 "+
		"%: 4 of 4 attempts" || held.Step != 1 {
		t.Fatalf("got %+v, want State %v, Held %v and Step %v",
			held, ledger.RampHeld, "channel a: errors 100 % above the band of 5 "+
				"%: 4 of 4 attempts", 1)
	}
	r.logged("warn", `"move":"hold","message":"channel a: errors 100 % above the band of 5 %: 4 `+
		`of 4 attempts"`)
	r.age(time.Hour)
	r.round(s)
	if v, _ := r.current(); v.Version != 2 {
		t.Errorf("a held ramp made version %d", v.Version)
	}
	if err := r.ledger.Ramps.Set(t.Context(), ramp.ID, ledger.RampHeld, ledger.RampRunning, ledger.RampChange{By: "bob", Why: ""}); err != nil {
		t.Fatal(err)
	}
	r.round(s)
	if got := r.ramp(ramp.ID); got.State != ledger.RampRunning || got.Step != 1 {
		t.Errorf("just resumed: %+v", got)
	}
	r.age(time.Hour)
	r.round(s)
	r.logged("info", `"move":"step"`)
	if got := r.ramp(ramp.ID); got.State != ledger.RampDone {
		t.Errorf("an hour later: %+v", got)
	}
}

func TestARampThatWasOverriddenIsSuperseded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.steerer()
	ramp := r.start(ledger.Ramp{To: m("a", "65", "b", "15", "c", "20"), Steps: 2, Every: time.Hour})
	r.round(s)
	r.apply(strings.Replace(document, "c: 60", "c: 70", 1))
	r.round(s)
	got := r.ramp(ramp.ID)
	if got.State != ledger.RampSuperseded || !strings.Contains(got.Held,
		"channel a has weight 25, not the 45 that the ramp left after step 1") {
		t.Errorf("got %+v", got)
	}
	if v, _ := r.current(); v.Version != 3 {
		t.Errorf("version %d", v.Version)
	}
}

// TestARampOfALaterRoutingIsNotSuperseded: a command applied new weights and started a ramp from
// them after this instance read the routing.
func TestARampOfALaterRoutingIsNotSuperseded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.steerer()
	r.round(s)
	r.apply(strings.Replace(document, "c: 60", "c: 70", 1))
	ramp := r.start(ledger.Ramp{From: m("a", "25", "b", "15", "c", "70"), To: m("a", "25", "b",
		"15", "c", "80"), Steps: 2, Every: time.Hour})
	moved, err := s.ramps(t.Context(), []ledger.Ramp{ramp}, time.Now(), failures{})
	if moved || err != nil || r.ramp(ramp.ID).State != ledger.RampRunning {
		t.Errorf("%v %v %+v", moved, err, r.ramp(ramp.ID))
	}
	// Nor is a ramp whose step this instance has not read.
	r.round(r.steerer())
	moved, err = s.ramps(t.Context(), []ledger.Ramp{r.ramp(ramp.ID)}, time.Now(), failures{})
	if moved || err != nil || r.ramp(ramp.ID).State != ledger.RampRunning {
		t.Errorf("%v %v %+v", moved, err, r.ramp(ramp.ID))
	}
}

func TestAStepThatCannotBeMadeHoldsTheRamp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ramp := r.start(ledger.Ramp{
		To: m("a", "25", "b", "15", "c", "60", "nowhere", "5"), Steps: 2,
		Every: time.Hour,
	})
	r.round(r.steerer())
	got := r.ramp(ramp.ID)
	if got.State != ledger.RampHeld || !strings.Contains(got.Held,
		`step 1 cannot be made: there is no channel "nowhere"`) {
		t.Errorf("got %+v", got)
	}
	r.logged("warn", `"move":"hold","message":"step 1 cannot be made`)
}

func TestARampBringsAChannelIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(strings.Replace(document, "c: 60}", "c: 60}", 1) +
		`  - {name: third, weights: {a: 1}}` + "\n")
	ramp := r.start(ledger.Ramp{From: m("a", "25", "b", "15", "c", "60"), To: m("a", "25", "b",
		"15", "c", "60"), Steps: 1, Every: time.Hour})
	r.exec(`update dispatcher.ramps set route = 'third', from_weights = '{"a":"1"}', to_weights ` +
		`= '{"a":"1","c":"3"}'`)
	r.round(r.steerer())
	_, doc := r.current()
	if got := doc.Routes[2].Weights; len(got) != 2 || got[1].Channel != "c" ||
		got[1].Weight.String() != "3" || r.ramp(ramp.ID).State != ledger.RampDone {
		t.Errorf("%+v, ramp %+v", got, r.ramp(ramp.ID))
	}
}

// effective returns the effective weights of route default.
func effective(doc *config.Routing) map[string]string {
	out := map[string]string{}
	for _, w := range doc.Routes[0].Weights {
		out[w.Channel] = w.Weight.String()
	}
	return out
}

func TestHealthWritesAVersionOfItsOwnForEachMove(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.carry("c", provider.Unknown, 6)
	r.carry("a", provider.Accepted, 6)
	r.round(r.steerer())
	v, doc := r.current()
	if diff := cmp.Diff(m("a", "25", "b", "15", "c", "45"), effective(doc)); diff != "" {
		t.Error(diff)
	}
	if v.Version != 2 || v.Base != 1 || v.Document != document || v.Author != "health" ||
		v.Reason != "default: c 60 -> 45: 6 errors in 1m0s" {
		t.Errorf("version %d on %d by %s: %s", v.Version, v.Base, v.Author, v.Reason)
	}
}

// TestHealthKeepsItsIntervalOverRestartsAndInstances: eight instances see the same errors.
func TestHealthKeepsItsIntervalOverRestartsAndInstances(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.carry("c", provider.Unknown, 6)
	r.carry("a", provider.Accepted, 6)
	var group sync.WaitGroup
	for range 8 {
		s := r.steerer()
		group.Go(func() {
			for range 5 {
				if err := s.round(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if v, _ := r.current(); v.Version != 2 {
		t.Fatalf("version %d after one interval", v.Version)
	}
	r.age(59 * time.Second) // the errors are still within the window
	r.round(r.steerer())
	if v, _ := r.current(); v.Version != 2 {
		t.Errorf("version %d before the interval is over", v.Version)
	}
	r.age(time.Second)
	r.carry("c", provider.Unknown, 6)
	r.round(r.steerer())
	if v, doc := r.current(); v.Version != 3 || effective(doc)["c"] != "30" {
		t.Errorf("version %d after it: c at %s", v.Version, effective(doc)["c"])
	}
}

func TestHealthReturnsToRestAndLeavesNoEffect(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.carry("c", provider.Refused, 6)
	r.round(r.steerer())
	r.age(time.Minute)
	r.carry("c", provider.Refused, 6)
	r.round(r.steerer())
	r.logged("warn", "health: default: c 45 -> 30")
	var seen []string
	for range 10 {
		r.age(time.Minute)
		r.round(r.steerer())
		_, doc := r.current()
		seen = append(seen, effective(doc)["c"])
	}
	r.logged("info", "health: default: c 45 -> 60") // recovery is not a warning
	// Two minutes without errors, then a step a minute.
	want := []string{"30", "45", "60", "60", "60", "60", "60", "60", "60", "60"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	if v, _ := r.current(); v.Version != 5 || v.Effects != nil || v.Base != 1 {
		t.Errorf("version %d with effects %s", v.Version, v.Effects)
	}
}

// TestRoutesHaveIntervalsOfTheirOwn: the errors of channel a concern both routes, and each makes
// its own move at once.
func TestRoutesHaveIntervalsOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.carry("a", provider.Refused, 6)
	s := r.steerer()
	r.round(s)
	r.round(s)
	v, doc := r.current()
	if v.Version != 3 || doc.Routes[0].Weights[0].Weight.String() != "18.75" ||
		doc.Routes[1].Weights[0].Weight.String() != "0.5" {
		t.Errorf("version %d: %s", v.Version, v.Effects)
	}
}

func TestANewDocumentKeepsEffectsAndIntervals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.carry("c", provider.Refused, 6)
	s := r.steerer()
	r.round(s)
	r.apply(strings.Replace(document, "c: 60", "c: 80", 1))
	r.round(s)
	if v, doc := r.current(); v.Version != 3 ||
		effective(doc)["c"] != "60" { // three quarters, as before
		t.Errorf("version %d: c at %s", v.Version, effective(doc)["c"])
	}
	r.age(time.Minute)
	r.carry("c", provider.Refused, 6)
	r.round(r.steerer())
	if v, doc := r.current(); v.Version != 4 || effective(doc)["c"] != "40" {
		t.Errorf("version %d: c at %s", v.Version, effective(doc)["c"])
	}
}

// parts returns the effective weights as parts of the configured ones, by route and channel.
func parts(t *testing.T, v *ledger.RoutingVersion) map[string]string {
	t.Helper()
	_, doc, err := config.ParseVersion(1, v.Document, v.Effects)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, route := range doc.Routes {
		for _, w := range route.Weights {
			if part := new(big.Rat).Quo(w.Weight.Rat(), w.Configured.Rat()); w.Weight != w.Configured {
				out[route.Name+" "+w.Channel] = part.FloatString(6)
			}
		}
	}
	return out
}

// TestNoDocumentMovesWhatHealthHasLowered: c fails for ten minutes while a ramp takes weight from
// it, b is drained and comes back, and the second route gets other weights. Then c recovers during
// further changes. Over all versions: a document leaves every effective part as it was, and health
// weighting moves one channel of a route by one step, at most once an interval.
func TestNoDocumentMovesWhatHealthHasLowered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ramp := r.start(ledger.Ramp{
		To: m("a", "55", "b", "15", "c", "30"), Steps: 6,
		Every: 2 * time.Minute,
	})
	edits := []func(string) string{
		func(d string) string {
			return strings.Replace(d, "b: {provider: sandbox}",
				"b: {provider: sandbox, state: draining}", 1)
		},
		func(d string) string { return strings.Replace(d, "{a: 1, b: 1}", "{a: 2, b: 1}", 1) },
		func(d string) string { return strings.Replace(d, ", state: draining", "", 1) },
		func(d string) string { return strings.Replace(d, "{a: 2, b: 1}", "{a: 1, b: 1}", 1) },
	}
	s := r.steerer()
	for minute := range 24 {
		if minute < 10 {
			r.carry("c", provider.Refused, 6)
		}
		r.round(s)
		v, _ := r.current()
		r.apply(edits[minute%len(edits)](v.Document))
		r.round(s)
		r.age(30 * time.Second) // half an interval
		clear(s.history)        // it holds the times of versions
		r.round(r.steerer())
		r.age(30 * time.Second)
		clear(s.history)
	}
	if got := r.ramp(ramp.ID); got.State != ledger.RampDone {
		t.Errorf("the ramp is %s at step %d: %s", got.State, got.Step, got.Held)
	}
	current, _ := r.current()
	var versions []ledger.RoutingVersion
	for n := range current.Version {
		v, err := r.ledger.Routing.Version(t.Context(), n+1)
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, v)
	}
	lowest, moves := "1", 0
	lastMove := map[string]time.Time{}
	for i := 1; i < len(versions); i++ {
		v := &versions[i]
		before, after := parts(t, &versions[i-1]), parts(t, v)
		if part, lowered := after["default c"]; lowered {
			lowest = min(lowest, part)
		}
		if v.Author != "health" {
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("version %d by %s (%s) moved effective weights: %s", v.Version, v.Author,
					v.Reason, diff)
			}
			continue
		}
		moves++
		route, _, _ := strings.Cut(v.Reason, ":")
		// The database's ages are exact; the test takes some time, too.
		if since := v.CreatedAt.Sub(lastMove[route]); since < time.Minute-time.Second {
			t.Errorf("version %d moves route %s %s after its last move", v.Version, route, since)
		}
		lastMove[route] = v.CreatedAt
	}
	if lowest != "0.100000" || moves != 8 || len(parts(t, &versions[len(versions)-1])) != 0 {
		t.Errorf("c was lowered to %s in %d moves and restored to %v", lowest, moves,
			parts(t, &versions[len(versions)-1]))
	}
}

func TestWithoutARoutingThereIsNothingToSteer(t *testing.T) {
	t.Parallel()
	r := emptyRig(t)
	r.round(r.steerer())
}

func TestMetricsShowWhatIsInForce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.carry("c", provider.Refused, 6)
	s := r.steerer()
	registry := prometheus.NewRegistry()
	s.metrics = newMetrics(registry)
	r.round(s)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "dispatcher_steer_")
			for _, l := range metric.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = fmt.Sprintf("%.3f",
				metric.GetGauge().GetValue()+metric.GetCounter().GetValue())
		}
	}
	want := map[string]string{
		"guard_trips_total pause calling_code": "0.000", "guard_trips_total pause tenant": "0.000",
		"guard_trips_total warn calling_code": "0.000", "guard_trips_total warn tenant": "0.000",
		"guard_trips_total pause prefix": "0.000", "guard_trips_total warn prefix": "0.000",
		"agreed_share a default": "0.250", "agreed_share b default": "0.150",
		"agreed_share c default": "0.600",
		"agreed_share a second":  "0.500", "agreed_share b second": "0.500",
		"effective_share a default": "0.294", "effective_share b default": "0.176",
		"effective_share c default": "0.529",
		"effective_share a second":  "0.500", "effective_share b second": "0.500",
		"moves_total health_down": "1.000",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestTheCarriedShareIsCountedForMetrics once a minute, for routes with enough messages.
func TestTheCarriedShareIsCountedForMetrics(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.steerer()
	registry := prometheus.NewRegistry()
	s.metrics = newMetrics(registry)
	shares := func() map[string]float64 {
		t.Helper()
		r.round(s)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, metric := range f.GetMetric() {
				if f.GetName() == "dispatcher_steer_carried_share" {
					name := metric.GetLabel()[1].GetValue() + " " + metric.GetLabel()[0].GetValue()
					got[name] = metric.GetGauge().GetValue()
				}
			}
		}
		return got
	}
	r.carry("a", provider.Accepted, 60)
	if got := shares(); len(got) > 0 {
		t.Errorf("of too few messages: %v", got)
	}
	r.carry("c", provider.Accepted, 60)
	r.carry("b", provider.Refused, 5)
	if got := shares(); len(got) > 0 {
		t.Errorf("counted again within a minute: %v", got)
	}
	s.countedAt = s.countedAt.Add(-carriedEvery)
	want := map[string]float64{"default a": 0.5, "default b": 0, "default c": 0.5}
	if got := shares(); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestRunContinuesUntilItIsStopped: the loop itself makes a ramp's steps until it is stopped.
func TestRunContinuesUntilItIsStopped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ramp := r.start(ledger.Ramp{
		To: m("a", "65", "b", "15", "c", "20"), Steps: 2,
		Every: time.Microsecond,
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	s := r.steerer()
	go func() { s.Run(ctx); close(ended) }()
	defer func() { cancel(); <-ended }()
	tier.Eventually(t, "the ramp is done", func() bool {
		return r.ramp(ramp.ID).State == ledger.RampDone
	})
}

func TestASteererNeedsAllItsParts(t *testing.T) {
	t.Parallel()
	r := emptyRig(t)
	good := Config{
		Ledger: r.ledger, NewRouting: asRouting, Every: time.Second, SendTimeout: time.Second,
		Awaits:   func(*config.Channel) time.Duration { return 0 },
		Registry: prometheus.NewRegistry(), Trouble: func(string, error) {},
	}
	for name, spoil := range map[string]func(*Config){
		"ledger":  func(c *Config) { c.Ledger = nil },
		"routing": func(c *Config) { c.NewRouting = nil },
		"awaits":  func(c *Config) { c.Awaits = nil },
		"metrics": func(c *Config) { c.Registry = nil },
		"trouble": func(c *Config) { c.Trouble = nil },
		"every":   func(c *Config) { c.Every = 0 },
		"timeout": func(c *Config) { c.SendTimeout = 0 },
	} {
		c := good
		spoil(&c)
		if _, err := New(c); err == nil {
			t.Errorf("made without %s", name)
		}
	}
}

// TestTimeoutsCountHoweverLongTheyTake: in health weighting, and in a ramp with steps shorter than
// the send timeout. They count for no longer than that.
func TestTimeoutsCountHoweverLongTheyTake(t *testing.T) {
	t.Parallel()
	for timeout, counts := range map[time.Duration]bool{
		10 * time.Minute: true,
		7 * time.Minute:  false,
	} {
		t.Run(timeout.String(), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			s := r.withSendTimeout(timeout)
			ramp := r.start(ledger.Ramp{
				To: m("a", "65", "b", "15", "c", "20"), Steps: 2,
				Every: time.Minute, NextAt: time.Now().Add(time.Hour), MaxErrors: 0.05,
				LeastMessages: 6,
			})
			r.carry("c", provider.Unknown, 6)
			r.exec(`update dispatcher.attempts set claimed_at = claimed_at - interval '10 minutes'`)
			r.round(s)
			if got, want := r.ramp(ramp.ID), map[bool]string{true: "channel c: errors 100 % " +
				"above " +
				"" +
				"the band of 5 %: 6 of 6 attempts"}[counts]; got.Held != want {
				t.Errorf("got %+v, want Held %v", got, want)
			}
			if _, doc := r.current(); (effective(doc)["c"] == "45") != counts {
				t.Errorf("c at %s", effective(doc)["c"])
			}
		})
	}
}

// TestOldFiguresRaiseNothing: figures of a long time without errors are cached for a while, and
// errors since then still count.
func TestOldFiguresRaiseNothing(t *testing.T) {
	t.Parallel()
	r := emptyRig(t)
	r.apply(strings.ReplaceAll(strings.ReplaceAll(document, "quiet: 2m", "quiet: 24h"),
		"interval: 1m", "interval: 1s"))
	s := r.steerer()
	r.round(s) // reads that there were no errors in 24 hours
	r.carry("c", provider.Refused, 6)
	delete(s.failed, period{window: time.Minute}) // otherwise read again half a second later
	r.round(s)
	if _, doc := r.current(); effective(doc)["c"] != "45" {
		t.Fatalf("c at %s", effective(doc)["c"])
	}
	r.age(2 * time.Minute) // the errors have left the window
	clear(s.history)       // it holds the times of versions
	delete(s.failed, period{window: time.Minute})
	// without errors, as they were at first
	s.failed[period{window: 24 * time.Hour}] = counted[ledger.Fault]{at: time.Now()}
	r.round(s)
	if _, doc := r.current(); effective(doc)["c"] != "45" {
		t.Errorf("c at %s after two minutes of 24 hours", effective(doc)["c"])
	}
}
