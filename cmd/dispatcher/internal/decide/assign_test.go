package decide

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/provider"
	"dispatcher/selector"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// fixture is a routing of three channels at 25/15/60, the shared state of a claim, and the state of
// this process's connections.
type fixture struct {
	routing *Routing
	seen    *ledger.Seen
	unready []string
	rows    int64 // the last one that numbered used
}

// testRouting has three channels at 25/15/60.
func testRouting(t testing.TB) *Routing {
	t.Helper()
	table, err := selector.NewTable([]selector.Entry{
		{Name: "a", Weight: selector.MustWeight("25")},
		{Name: "b", Weight: selector.MustWeight("15")},
		{Name: "c", Weight: selector.MustWeight("60")},
	})
	if err != nil {
		t.Fatal(err)
	}
	route := Route{
		Route: config.Route{Name: "default", MaxSegments: 10}, Table: table,
		Members: []int{0, 1, 2},
	}
	r := &Routing{
		Version: 7, Zone: time.UTC, Routes: []Route{route},
		Lanes: map[string]Lane{"bulk": {Lane: config.Lane{
			Name: "bulk", TTL: time.Hour,
			MaxWaiting: 100,
		}}},
	}
	for _, name := range []string{"a", "b", "c"} {
		r.Channels = append(r.Channels, Channel{
			Channel: config.Channel{Name: name, Capacity: 100},
			Price:   NewPrice("GBP", PriceList{Default: 30_000}),
		})
	}
	return r
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	w := &fixture{
		routing: testRouting(t), seen: &ledger.Seen{Now: noon, Version: 7},
		unready: make([]string, 3),
	}
	for _, c := range w.routing.Channels {
		w.seen.Channels = append(w.seen.Channels, ledger.ChannelState{Name: c.Name})
	}
	return w
}

// task returns a message whose draw picked first.
func (w *fixture) task(first string) *Task {
	route := &w.routing.Routes[0]
	return &Task{
		First: w.routing.MemberIndex(route, first),
		Row: ledger.Message{
			ID: "m", Lane: "bulk", State: ledger.Sending, ReceivedAt: noon,
			ExpiresAt: noon.Add(time.Hour),
			Plan:      ledger.Plan{Route: "default", Version: 7, FirstChoice: first, Segments: 1},
		},
		msg:    envelope.Message{ID: "m", To: "+447700900123", Text: "x"},
		to:     Destination{Number: "+447700900123"},
		Route:  route,
		common: 1,
	}
}

// testKeys is the key file of these tests.
var testKeys = []selector.Key{{1}}

func (w *fixture) assigner() *assigner {
	return newAssigner(w.routing, newDrawers(testKeys), w.seen, Snapshot{Unready: w.unready})
}

func (w *fixture) decide(t *Task) ledger.Decision {
	return w.assigner().decide(t).Decision
}

func rankingOf(t *testing.T, raw []byte) []string {
	t.Helper()
	var r Ranking
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatalf("ranking %q: %v", raw, err)
	}
	out := make([]string, len(r.Candidates))
	for i, c := range r.Candidates {
		out[i] = c.Channel + ":" + c.Reason
	}
	return out
}

func TestFirstChoiceGoesThroughWithoutARecord(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	d := w.decide(w.task("b"))
	want := ledger.Attempt{
		Number: 1, Channel: "b", Reason: ledger.ByFirstChoice, Segments: 1,
		PriceMicros: 30_000, Currency: "GBP",
	}
	if d.State != ledger.Sending || !cmp.Equal(d.Attempt, want) {
		t.Errorf("decision %+v", d)
	}
	if got := w.seen.Channels[1]; got.Gate.Active.Count != 1 || !got.LastAssigned.After(noon) {
		t.Errorf("no slot was taken: %+v", got)
	}
}

func TestFallbackGoesToTheLowestLoadRatioAndSaysWhy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*fixture, *Task)
		chosen string
		why    []string
	}{
		"at its limit": {func(w *fixture, _ *Task) {
			w.seen.Channels[0].Gate.Counters = []admission.Counter{{
				Limit: admission.Limit{Window: admission.Minute, Max: 0},
			}}
		}, "c", []string{"a:no_slot", "c:", "b:"}},
		"active full": {func(w *fixture, _ *Task) {
			w.seen.Channels[0].Gate.Active = admission.Active{Max: 90, Count: 90}
		}, "c", []string{"a:no_active", "c:", "b:"}},
		"open breaker": {func(w *fixture, _ *Task) {
			w.unready[0] = "breaker_open"
		}, "c", []string{"a:breaker_open", "c:", "b:"}},
		"throttled": {func(w *fixture, _ *Task) {
			w.unready[0] = Throttled
		}, "c", []string{"a:throttled", "c:", "b:"}},
		"disabled": {func(w *fixture, _ *Task) {
			w.routing.Channels[0].State = Disabled
		}, "c", []string{"a:disabled", "c:", "b:"}},
		"draining": {func(w *fixture, _ *Task) {
			w.routing.Channels[0].State = Draining
		}, "c", []string{"a:draining", "c:", "b:"}},
		"already tried": {func(_ *fixture, t *Task) {
			t.Row.Attempts, t.Row.Tried = 1, []string{"a"}
		}, "c", []string{"a:already_tried", "c:", "b:"}},
		"price cap": {func(w *fixture, t *Task) {
			w.routing.Channels[0].Price = NewPrice("GBP", PriceList{Default: 50_000})
			t.msg.MaxPrice = new(int64(40_000))
		}, "c", []string{"a:price_cap", "c:", "b:"}},
		"failed selector": {func(w *fixture, t *Task) {
			w.routing.Channels[1].Labels = map[string]selector.Value{
				"quality": selector.NumberValue(9),
			}
			t.msg.Selectors = []selector.Selector{{
				Key: "quality", Operator: selector.GreaterThan,
				Value: selector.NumberValue(5),
			}}
		}, "b", []string{"a:selector", "c:selector", "b:"}},
		"next one down too": {func(w *fixture, _ *Task) {
			w.unready[0], w.unready[2] = "breaker_open", "connecting"
		}, "b", []string{"a:breaker_open", "c:connecting", "b:"}},
	} {
		w := newFixture(t)
		// b has 80 of 100 in flight, c 40 of 100.
		w.seen.Channels[1].Gate.Active.Count, w.seen.Channels[2].Gate.Active.Count = 80, 40
		task := w.task("a")
		tc.change(w, task)
		d := w.decide(task)
		if d.State != ledger.Sending || d.Attempt.Channel != tc.chosen ||
			d.Attempt.Reason != ledger.ByFallback {
			t.Errorf("%s: decision %+v, want channel %s by fallback", name, d, tc.chosen)
			continue
		}
		if got := rankingOf(t, d.Attempt.Ranking); !cmp.Equal(got, tc.why) {
			t.Errorf("%s: ranking %v, want %v", name, got, tc.why)
		}
	}
}

func TestEachTakeCountsAtOnceInTheLoadRatio(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.unready[0] = "breaker_open"
	w.routing.Channels[1].Capacity, w.routing.Channels[2].Capacity = 10, 30
	a := w.assigner()
	got := map[string]int{}
	for range 40 {
		d := a.decide(w.task("a"))
		got[d.Attempt.Channel]++
	}
	if want := map[string]int{"b": 10, "c": 30}; !cmp.Equal(got, want) {
		t.Errorf("40 fallbacks over capacities 10 and 30: got %v, want %v", got, want)
	}
}

func TestMessagesBeyondTheLimitWaitForWindowsToCome(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for i := range w.seen.Channels {
		w.seen.Channels[i].Gate.Counters = []admission.Counter{{
			Limit: admission.Limit{Window: admission.Second, Max: 2},
		}}
	}
	a := w.assigner()
	sent, waits := 0, map[time.Duration]int{}
	for range 18 {
		switch d := a.decide(w.task("a")); d.State {
		case ledger.Sending:
			sent++
		case ledger.Waiting:
			if d.Reason != NoSlot {
				t.Errorf("waits for %s", d.Reason)
			}
			waits[d.NextAt.Sub(noon)]++
		default:
			t.Errorf("decision %+v", d)
		}
	}
	if sent != 6 {
		t.Errorf("got %d sent in the window, want 3 channels x 2", sent)
	}
	if waits[950*time.Millisecond] == 0 || waits[1450*time.Millisecond] == 0 || len(waits) > 7 {
		t.Errorf("waits were not spread over the next windows: %v", waits)
	}
}

func TestNoChannelCanTakeIt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change   func(*fixture, *Task)
		state    ledger.State
		reason   string
		next     time.Duration
		newRound bool
	}{
		"no channel is connected": {func(w *fixture, _ *Task) {
			w.unready = []string{"connecting", "connecting", "breaker_open"}
		}, ledger.Waiting, "connecting", time.Second, false},
		"all have refused": {func(_ *fixture, t *Task) {
			t.Row.Attempts, t.Row.Rounds, t.Row.Tried = 3, 2, []string{"a", "b", "c"}
		}, ledger.Waiting, reasonTried, 4 * time.Second, true},
		"one has refused, the others are switched off": {func(w *fixture, t *Task) {
			w.routing.Channels[1].State, w.routing.Channels[2].State = Draining, Disabled
			t.Row.Attempts, t.Row.Rounds, t.Row.Tried = 1, 1, []string{"a"}
		}, ledger.Waiting, reasonTried, 2 * time.Second, true},
		"one has refused, the others are not ready": {func(w *fixture, t *Task) {
			w.unready[1], w.unready[2] = "breaker_open", "connecting"
			t.Row.Attempts, t.Row.Rounds, t.Row.Tried = 1, 3, []string{"a"}
		}, ledger.Waiting, reasonTried, 8 * time.Second, true},
		"one has refused, the others are full until midnight": {func(w *fixture, t *Task) {
			for i := range 2 {
				w.seen.Channels[1+i].Gate.Counters = []admission.Counter{{
					Limit: admission.Limit{Window: admission.Day, Max: 1}, Max: 1, Granted: 1,
					Start: noon.Add(-12 * time.Hour),
				}}
			}
			t.Row.Attempts, t.Row.Rounds, t.Row.Tried = 1, 0, []string{"a"}
			t.Row.ExpiresAt = noon.Add(24 * time.Hour)
		}, ledger.Waiting, reasonTried, time.Second, true},
		"one has refused, the others have no limit left at all": {func(w *fixture, t *Task) {
			for i := range 2 {
				w.seen.Channels[1+i].Gate.Counters = []admission.Counter{{
					Limit: admission.Limit{Window: admission.Day, Max: 0},
				}}
			}
			t.Row.Attempts, t.Row.Tried = 1, []string{"a"}
		}, ledger.Waiting, reasonTried, time.Second, true},
		"one has refused, another has room before the next round": {func(w *fixture, t *Task) {
			w.seen.Channels[1].Gate.Counters = []admission.Counter{{
				Limit: admission.Limit{Window: admission.Second, Max: 1}, Max: 1, Granted: 1,
				Start: noon,
			}}
			w.unready[2] = "connecting"
			t.Row.Attempts, t.Row.Rounds, t.Row.Tried = 1, 3, []string{"a"}
		}, ledger.Waiting, NoSlot, 950 * time.Millisecond, false},
		"all are switched off": {func(w *fixture, _ *Task) {
			for i := range w.routing.Channels {
				w.routing.Channels[i].State = Disabled
			}
		}, ledger.Waiting, SwitchedOff, lookForRoute, false},
		"none satisfies the selectors": {func(_ *fixture, t *Task) {
			t.msg.Selectors = []selector.Selector{{
				Key: "k", Operator: selector.Equal,
				Value: selector.TextValue("v"),
			}}
		}, ledger.Failed, reasonNoChannel, 0, false},
		"one is full until midnight, one may be ready soon": {func(w *fixture, _ *Task) {
			w.seen.Channels[0].Gate.Counters = []admission.Counter{{
				Limit: admission.Limit{Window: admission.Day, Max: 0},
			}}
			w.unready[1], w.unready[2] = "breaker_open", Throttled
		}, ledger.Waiting, "breaker_open", time.Second, false},
		"it was tried a thousand times": {func(_ *fixture, t *Task) {
			t.Row.Attempts = maxAttempts
		}, ledger.Failed, reasonAttempts, 0, false},
		"its route allows fewer segments now": {func(_ *fixture, t *Task) {
			t.problem = envelope.TooManySegments
		}, ledger.Failed, "too_many_segments", 0, false},
		"its deadline has passed": {func(_ *fixture, t *Task) {
			t.Row.ExpiresAt = noon
		}, ledger.Failed, reasonExpired, 0, false},
		"its deadline comes first": {func(w *fixture, t *Task) {
			w.unready = []string{"connecting", "connecting", "connecting"}
			t.Row.ExpiresAt = noon.Add(300 * time.Millisecond)
		}, ledger.Waiting, "connecting", 300 * time.Millisecond, false},
		"its route is gone": {func(_ *fixture, t *Task) {
			t.Route = nil
		}, ledger.Waiting, reasonNoRoute, lookForRoute, false},
		"its tenant is paused": {func(w *fixture, t *Task) {
			w.routing.Paused.Tenants = []string{t.Row.Tenant}
			t.Row.ExpiresAt = noon.Add(24 * time.Hour)
		}, ledger.Waiting, reasonPaused, lookWhenPaused, false},
		"its route is paused": {func(w *fixture, t *Task) {
			w.routing.Paused.Routes = []string{t.Route.Name}
			t.Row.ExpiresAt = noon.Add(24 * time.Hour)
		}, ledger.Waiting, reasonPaused, lookWhenPaused, false},
		"another route is paused": {func(w *fixture, _ *Task) {
			w.routing.Paused.Routes = []string{"other"}
		}, ledger.Sending, "", 0, false},
		"its number is paused": {func(w *fixture, t *Task) {
			t.msg.To, w.routing.Paused.Prefixes = "+447700900123", []string{"+33", "+4477"}
			t.Row.ExpiresAt = noon.Add(24 * time.Hour)
		}, ledger.Waiting, reasonPaused, lookWhenPaused, false},
		"another number is paused": {func(w *fixture, t *Task) {
			t.msg.To, w.routing.Paused.Prefixes = "+447700900123", []string{"+4478"}
		}, ledger.Sending, "", 0, false},
		"it is paused and its deadline has passed": {func(w *fixture, t *Task) {
			w.routing.Paused.All = true
			t.Row.ExpiresAt = noon
		}, ledger.Failed, reasonExpired, 0, false},
		"another lane is paused": {func(w *fixture, _ *Task) {
			w.routing.Paused.Lanes = []string{"other"}
		}, ledger.Sending, "", 0, false},
	} {
		w := newFixture(t)
		task := w.task("a")
		tc.change(w, task)
		d := w.decide(task)
		next := time.Duration(0)
		if !d.NextAt.IsZero() {
			next = d.NextAt.Sub(noon)
		}
		if d.State != tc.state || d.Reason != tc.reason || next != tc.next ||
			d.NewRound != tc.newRound {
			t.Errorf("%s: %s %s after %s, new round %v; want %s %s after %s, %v", name, d.State,
				d.Reason, next, d.NewRound, tc.state, tc.reason, tc.next, tc.newRound)
		}
	}
}

func TestRouteMayHoldAMessageForItsFirstChoice(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.routing.Routes[0].Wait = 3 * time.Second
	full := admission.Counter{
		Limit: admission.Limit{Window: admission.Minute, Max: 1},
		Start: noon.Add(-59 * time.Second), Granted: 1, Max: 1,
	}
	full.Start = admission.Minute.Start(full.Start, time.UTC)
	w.seen.Now = noon.Add(-time.Second)
	w.seen.Channels[0].Gate.Counters = []admission.Counter{full}
	early := w.task("a")
	early.Row.ReceivedAt = w.seen.Now
	if d := w.decide(early); d.State != ledger.Waiting || !d.NextAt.Equal(noon) ||
		d.WaitsFor != "a 1m messages" {
		t.Errorf("no wait for a full first choice: %+v", d)
	}
	w.seen.Channels[0].Gate.Counters = []admission.Counter{{Limit: full.Limit}}
	w.seen.Channels[0].Gate.Counters[0].Limit.Max = 0
	if d := w.decide(early); d.State != ledger.Sending || d.Attempt.Channel == "a" {
		t.Errorf("a wait for a closed first choice: %+v", d)
	}
	w.seen.Channels[0].Gate.Counters = []admission.Counter{full}
	early.Row.ReceivedAt = w.seen.Now.Add(-4 * time.Second)
	if d := w.decide(early); d.State != ledger.Sending || d.Attempt.Channel == "a" {
		t.Errorf("no fallback after the wait: %+v", d)
	}
}

func TestRestOfAPartlyAcceptedMessageStaysOnItsChannel(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	task := w.task("a")
	task.common = 3
	task.Row.Attempts, task.Row.Pinned, task.Row.PartsLeft = 1, "b", []int{1, 2}
	if d := w.decide(task); d.State != ledger.Sending || d.Attempt.Channel != "b" ||
		d.Attempt.Segments != 2 || d.Attempt.Reason != ledger.ByRetry {
		t.Errorf("decision %+v", d)
	}
	w.unready[1] = "breaker_open"
	if d := w.decide(task); d.State != ledger.Waiting {
		t.Errorf("the rest was sent over another channel: %+v", d)
	}
}

func TestSegmentsOfAMessageAreTakenWhole(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for i := range w.seen.Channels {
		w.seen.Channels[i].Gate.Counters = []admission.Counter{{
			Limit: admission.Limit{Window: admission.Minute, Max: 5, Unit: admission.Segments},
		}}
	}
	w.routing.Channels[1].Segments = func(string) int { return 4 }
	task := w.task("b")
	task.common = 3
	a := w.assigner()
	if d := a.decide(task); d.Attempt.Channel != "b" || d.Attempt.Segments != 4 ||
		d.Attempt.PriceMicros != 4*30_000 {
		t.Errorf("decision %+v", d)
	}
	if d := a.decide(task); d.Attempt.Channel == "b" {
		t.Error("4 more segments were admitted with one free slot")
	}
}

func TestChannelUnderProbeGetsOneMessageOfAClaim(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.unready[0] = provider.Probing
	a := w.assigner()
	got := map[string]int{}
	for range 10 {
		d := a.decide(w.task("a"))
		got[d.Attempt.Channel]++
	}
	if got["a"] != 1 || got["b"]+got["c"] != 9 {
		t.Errorf("of ten first choices of a probed channel: got %v", got)
	}
}

func TestResendIsCalledOneHoweverLongItTook(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	task := w.task("a")
	task.Row.Attempts, task.Row.PossibleDuplicate, task.Row.Tried, task.Row.Reason = 2, true,
		[]string{"a"}, NoSlot
	if d := w.decide(task); d.Attempt.Reason != ledger.ByResend {
		t.Errorf("got stored reason %s", d.Attempt.Reason)
	}
}

// wideFixture returns a fixture of this many channels, named c000, c001 and so on, of equal weight,
// with labels for language, department, quality and region.
func wideFixture(t testing.TB, channels int, mode Mode, fallback Ranker) *fixture {
	t.Helper()
	w := newFixture(t)
	w.routing.Channels, w.seen.Channels, w.unready = nil, nil, make([]string, channels)
	var entries []selector.Entry
	route := Route{Route: config.Route{
		Name: "default", Mode: mode, Fallback: fallback,
		MaxSegments: 10,
	}}
	for c := range channels {
		name := fmt.Sprintf("c%03d", c)
		w.routing.Channels = append(w.routing.Channels,
			Channel{Price: NewPrice("GBP", PriceList{Default: 30_000}), Channel: config.Channel{
				Name: name, Capacity: 1000,
				Labels: map[string]selector.Value{
					"language":   selector.TextValue([]string{"en", "fr", "de"}[c%3]),
					"department": selector.TextValue([]string{"sales", "support"}[c%2]),
					"quality":    selector.NumberValue(float64(c%5 + 1)),
					"region":     selector.TextValue("uk"),
				},
			}})
		w.seen.Channels = append(w.seen.Channels,
			ledger.ChannelState{
				Name:         name,
				LastAssigned: noon.Add(-time.Duration(c%11) * time.Second),
			})
		route.Members = append(route.Members, c)
		entries = append(entries, selector.Entry{Name: name, Weight: selector.MustWeight("1")})
	}
	var err error
	if route.Table, err = selector.NewTable(entries); err != nil {
		t.Fatal(err)
	}
	w.routing.Routes = []Route{route}
	w.seen.Cursors = []ledger.Cursor{{Route: "default", Position: -1}}
	return w
}

// jobsNamed returns n records with the ids prefix-0, prefix-1, ...
func jobsNamed(prefix string, n int) []Job {
	jobs := make([]Job, n)
	for i := range jobs {
		m := envelope.Message{
			ID: fmt.Sprintf("%s-%d", prefix, i), To: "+447700900123",
			Text: "Your code is 123456",
		}
		jobs[i] = Job{
			Lane: "bulk", Produced: time.Now(), Message: m, Raw: m.Append(nil),
			Origin: Origin{Topic: "sms.bulk", Offset: int64(i)},
		}
	}
	return jobs
}
