package simulate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config/tier"
)

func replay(t *testing.T, s *Scenario) map[string]Outcome {
	t.Helper()
	out := map[string]Outcome{}
	for _, p := range s.Policies() {
		out[p.String()] = s.Replay(p, s.Events())
	}
	return out
}

func TestExamplesOfTheSource(t *testing.T) {
	t.Parallel()
	type row struct{ Admitted, Early, Over, Unused int64 }
	two := `{"limit": 10, "utilisation": 0.1, "history": {"a": 10}, "workers": {"a": 2}, ` +
		`"region": "a", "curve_factor": 0.204, "arrivals": `
	for arrivals, want := range map[string]map[string]row{
		`[7, 1]}`: {
			"even": {6, 2, 0, 4}, "curve": {8, 0, 0, 2}, "counter": {8, 0, 0, 2},
			"exact": {8, 0, 0, 2},
		},
		`[8, 7]}`: {
			"even": {10, 0, 0, 0}, "curve": {15, 0, 5, 0}, "counter": {10, 0, 0, 0},
			"exact": {10, 0, 0, 0},
		},
		`[15]}`: {
			"even": {5, 5, 0, 5}, "curve": {8, 2, 0, 2}, "counter": {10, 0, 0, 0},
			"exact": {10, 0, 0, 0},
		},
	} {
		for policy, o := range replay(t, read(t, two+arrivals)) {
			if diff := cmp.Diff(want[policy], row{
				o.Admitted, o.Early, o.Over,
				o.Unused,
			}); diff != "" {
				t.Errorf("%s of %s (-want +got):\n%s", policy, arrivals, diff)
			}
		}
	}
}

func TestPercentagesAreOfWhatTheySay(t *testing.T) {
	t.Parallel()
	s := read(t, `{"limit": 20, "active": 10, "utilisation": 0.1, "history": {"a": 10}, "workers": {"a": 2}, "region": "a", "curve_factor": 0.204,
		"arrivals": [10, 8]}`)
	all := replay(t, s)
	if o := all["even"]; o.EarlyPercent != 0 || o.UnusedPercent != 0 {
		t.Errorf("even: %+v", o.Traffic)
	}
	if o := all["curve"]; o.Admitted != 16 || o.OverPercent != 30 {
		t.Errorf("curve: %+v, want 6 beyond a limit of 20", o.Traffic)
	}
	s.Arrivals[1].Count = 1
	if o := replay(t, s)["even"]; o.Early != 4 || o.EarlyPercent != 100*4.0/11 ||
		o.UnusedPercent != 40 || o.StrandedPercent != 40 {
		t.Errorf("even: %+v, want 4 early of 11, and 4 of 10 unused", o.Traffic)
	}
}

// TestNoMoreAreEarlyThanSlotsStayedUnused: ten slots, five for each of two workers. Of the messages
// refused at one worker, as many are early as the other leaves unused, and as many overtaken as it
// admits out of order.
func TestNoMoreAreEarlyThanSlotsStayedUnused(t *testing.T) {
	t.Parallel()
	type row struct{ Early, Overtaken, Unused, Stranded int64 }
	for others, want := range map[string]row{
		`0`: {5, 0, 5, 5}, `1`: {4, 1, 4, 4}, `4`: {1, 4, 1, 1}, `5`: {0, 5, 0, 0},
		`9`: {0, 5, 0, 0},
	} {
		s := read(t, `{"limit": 10, "history": {"a": 10}, "workers": {"a": 2}, "region": "a", "arrivals": [
			{"worker": 1, "count": 30, "at": "0s"}, {"worker": 2, "count": `+others+`, "at": "5s"}]}`)
		all := replay(t, s)
		o := all["even"]
		if diff := cmp.Diff(want, row{o.Early, o.Overtaken, o.Unused, o.Stranded}); diff != "" {
			t.Errorf("30 and then %s (-want +got):\n%s", others, diff)
		}
		if o.Early+o.Admitted != all["exact"].Admitted {
			t.Errorf("30 and then %s: %d early beside %d admitted, and exact admits %d", others,
				o.Early, o.Admitted, all["exact"].Admitted)
		}
		if o.OvertakenPercent != percent(o.Overtaken, o.Arrived) {
			t.Errorf("30 and then %s: %v %%", others, o.OvertakenPercent)
		}
	}
}

// TestOneThatLaterOnesWentBeyondTheLimitForIsOvertaken: both workers of curve may take 8 of 10. The
// tenth message, which the first worker refused, would have had room.
func TestOneThatLaterOnesWentBeyondTheLimitForIsOvertaken(t *testing.T) {
	t.Parallel()
	s := read(t, `{"limit": 10, "utilisation": 0.1, "history": {"a": 10}, "workers": {"a": 2}, "region": "a", "curve_factor": 0.204,
		"arrivals": [{"worker": 1, "count": 9, "at": "0s"}, {"worker": 2, "count": 8, "at": "0.5s"}]}`)
	if o := replay(t, s)["curve"]; o.Admitted != 16 || o.Over != 6 || o.Early != 0 ||
		o.Overtaken != 1 {
		t.Errorf("got %+v", o.Traffic)
	}
}

func TestCallsAndWhatTheyTake(t *testing.T) {
	t.Parallel()
	s := read(t, `{"limit": 100, "history": {"a": 50, "Anywhere": 50}, "region": "a", `+
		`"call_ms": {"near": 2, "far": 50}, "arrivals": [80]}`)
	type row struct{ Calls, Mean, P95 float64 }
	for policy, o := range replay(t, s) {
		want := map[string]row{
			"even": {}, "curve": {}, "exact": {1, 50, 50},
			"counter": {110.0 / 80, (80*2 + 30*50) / 80.0, 52}, // for 30 their region's 50 are used
		}[policy]
		if diff := cmp.Diff(want, row{o.CallsPerMessage, o.LatencyMs, o.LatencyP95Ms}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", policy, diff)
		}
	}
	s.Home = "a"
	if o := replay(t, s)["exact"]; o.LatencyMs != 2 {
		t.Errorf("a counter of the own region takes %v ms", o.LatencyMs)
	}
}

// TestStateIsAsOldAsItsInterval: curve exceeds the limit until the spike is in the gathered state.
func TestStateIsAsOldAsItsInterval(t *testing.T) {
	t.Parallel()
	text := `{"limit": 100, "utilisation": 0.01, "history": {"a": 100}, "workers": {"a": 10}, "region": "a", "state_interval": "INTERVAL",
		"arrivals": [{"count": 5000, "at": "0s", "for": "10s"}]}`
	var before int64 = -1
	for _, interval := range []string{"100ms", "1s", "5s"} {
		s := read(t, strings.Replace(text, "INTERVAL", interval, 1))
		got := replay(t, s)["curve"].Over
		if got <= before {
			t.Errorf("%d over with a state every %s, %d with a fresher one", got, interval, before)
		}
		before = got
	}
}

// TestHistoryFollowsTheTraffic: a region without a history gets its share in the next window.
func TestHistoryFollowsTheTraffic(t *testing.T) {
	t.Parallel()
	s := read(t, `{"limit": 100, "history": {"a": 90, "Anywhere": 10}, "workers": {"a": 1, "b": 1}, "region": "a", "windows": 3,
		"arrivals": [{"region": "b", "count": 100}]}`)
	var admitted []int64
	for _, w := range replay(t, s)["counter"].Windows {
		admitted = append(admitted, w.Admitted)
	}
	if diff := cmp.Diff([]int64{10, 100, 100}, admitted); diff != "" {
		t.Error(diff)
	}
}

// TestStateStaysUntilItIsGatheredAgain: every 150 s, so before windows 4 and 6 of a minute each. Of
// 100 arrivals the one worker of b admits its region's share and a tenth of the unassigned part.
func TestStateStaysUntilItIsGatheredAgain(t *testing.T) {
	t.Parallel()
	s := read(t, `{"limit": 100, "history": {"a": 90, "Anywhere": 10}, "workers": {"a": 9, "b": 1}, "region": "a", "windows": 6,
		"state_interval": "150s", "arrivals": [{"region": "b", "count": 100, "at": "0s"}]}`)
	var admitted []int64
	for _, w := range replay(t, s)["even"].Windows {
		admitted = append(admitted, w.Admitted)
	}
	if diff := cmp.Diff([]int64{1, 1, 1, 1 + 9, 1 + 9, 10 + 9}, admitted); diff != "" {
		t.Error(diff)
	}
}

func TestEveryMessageIsAdmittedOrQueued(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		events := s.Events()
		exact := s.Replay(admission.Exact{}, events)
		for _, p := range s.Policies() {
			o := s.Replay(p, events)
			if o.Arrived != int64(len(events)) || o.Admitted+o.Queued != o.Arrived ||
				o.Early+o.Overtaken > o.Queued {
				t.Fatalf("%s: got %+v", p, o.Traffic)
			}
			// The messages that a policy queues early are those that exact admits in addition.
			if o.Early != exact.Admitted-(o.Admitted-o.Over) || o.Stranded != o.Early {
				t.Fatalf("%s: %+v, and exact: %+v", p, o.Traffic, exact.Traffic)
			}
			switch p.(type) {
			case admission.Exact:
				if o.Over != 0 || o.Early != 0 || o.Overtaken != 0 || o.Stranded != 0 {
					t.Fatalf("exact: %+v", o.Traffic)
				}
			case admission.Even, admission.CounterPolicy:
				if o.Over != 0 {
					t.Fatalf("%s: got %+v", p, o.Traffic)
				}
			case admission.Curve:
			}
			for _, w := range o.Windows {
				if w.Early > w.Unused || w.Overtaken < 0 {
					t.Fatalf("%s: got %+v", p, w)
				}
				if free := s.Free(); w.Admitted-w.Over+w.Unused != free && w.Over == 0 ||
					w.Admitted > free && w.Over != w.Admitted-free {
					t.Fatalf("%s: %+v of %d", p, w, free)
				}
			}
		}
	})
}

func BenchmarkReplay(b *testing.B) {
	s, err := Read("s.json", []byte(`{"limit": 200000, "history": {"a": 100000, "b": 90000, "Anywhere": 10000}, "workers": {"a": 25, "b": 25}, "region": "a",
		"arrivals": [{"count": 110000, "random": true}, {"region": "b", "count": 90000, "random": true}]}`))
	if err != nil {
		b.Fatal(err)
	}
	events := s.Events()
	for _, p := range s.Policies() {
		b.Run(p.String(), func(b *testing.B) {
			for b.Loop() {
				s.Replay(p, events)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(events)),
				"ns/decision")
		})
	}
}
