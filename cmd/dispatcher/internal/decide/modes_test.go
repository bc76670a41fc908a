package decide

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
	"dispatcher/selector/score"
)

// inMode returns a fixture of channels a, b and c whose only route has the given mode and fallback.
func inMode(t testing.TB, mode Mode, fallback Ranker) *fixture {
	t.Helper()
	w := newFixture(t)
	w.routing.Routes[0].Mode, w.routing.Routes[0].Fallback = mode, fallback
	w.seen.Cursors = []ledger.Cursor{{Route: "default", Position: -1}}
	return w
}

// fresh returns a message for which no draw picked a channel.
func (w *fixture) fresh() *Task { return w.task("") }

// decoded decodes the ranking that was stored with a decision.
func decoded(t testing.TB, d ledger.Decision) Ranking {
	t.Helper()
	raw := d.Seen
	if d.State == ledger.Sending {
		raw = d.Attempt.Ranking
	}
	var r Ranking
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatalf("ranking %q of %+v: %v", raw, d, err)
	}
	return r
}

// taken returns the channels of n new messages of one claim.
func taken(t testing.TB, a *assigner, w *fixture, n int) (channels []string) {
	t.Helper()
	for range n {
		d := a.decide(w.fresh())
		if d.State != ledger.Sending || d.Attempt.Reason != ledger.ByFirstChoice ||
			d.Plan.FirstChoice != d.Attempt.Channel || d.Plan.Size != 0 {
			t.Fatalf("decision %+v", d)
		}
		channels = append(channels, d.Attempt.Channel)
	}
	return channels
}

func TestRoundRobinIsStrictlyCircularOverClaims(t *testing.T) {
	t.Parallel()
	w := inMode(t, RoundRobinMode, LoadRatio)
	w.seen.Channels[0].Gate.Active.Count = 99 // round robin ignores the load
	var got []string
	for range 5 { // each claim sees the cursor of the one before
		got = append(got, taken(t, w.assigner(), w, 4)...)
	}
	for i, channel := range got {
		if want := []string{"a", "b", "c"}[i%3]; channel != want {
			t.Fatalf("turn %d: got %s, want %s: %v", i, channel, want, got)
		}
	}
	if want := (ledger.Cursor{
		Route: "default", Channel: "b",
		Position: 1,
	}); w.seen.Cursors[0] != want {
		t.Errorf("cursor %+v, want %+v", w.seen.Cursors[0], want)
	}
}

func TestRoundRobinGoesOnBehindTheCursor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cursor ledger.Cursor
		change func(*fixture)
		chosen string
		why    []string
		after  int
	}{
		"first turn":     {ledger.Cursor{Position: -1}, nil, "a", []string{"a:"}, -1},
		"after the last": {ledger.Cursor{Channel: "c", Position: 2}, nil, "a", []string{"a:"}, 2},
		"one that cannot is passed over": {ledger.Cursor{Channel: "a"}, func(w *fixture) {
			w.unready[1] = "connecting"
		}, "c", []string{"b:connecting", "c:"}, 0},
		"only the cursor's own can": {ledger.Cursor{Channel: "b", Position: 1}, func(w *fixture) {
			w.unready[0], w.unready[2] = "connecting", Throttled
		}, "b", []string{"c:throttled", "a:connecting", "b:"}, 1},
		"it has moved within the route": {
			ledger.Cursor{Channel: "a", Position: 2},
			nil, "b",
			[]string{"b:"},
			0,
		},
		"it was removed from the middle": {
			ledger.Cursor{Channel: "gone", Position: 1},
			nil, "b",
			[]string{"b:"},
			0,
		},
		"it was removed from the front": {
			ledger.Cursor{Channel: "gone", Position: 0},
			nil, "a",
			[]string{"a:"},
			-1,
		},
		"it was removed from the end": {
			ledger.Cursor{Channel: "gone", Position: 3},
			nil, "a",
			[]string{"a:"},
			2,
		},
		"it stood far behind what is now": {
			ledger.Cursor{Channel: "gone", Position: 40},
			nil, "a",
			[]string{"a:"},
			39,
		},
	} {
		w := inMode(t, RoundRobinMode, LoadRatio)
		tc.cursor.Route = "default"
		w.seen.Cursors[0] = tc.cursor
		if tc.change != nil {
			tc.change(w)
		}
		d := w.decide(w.fresh())
		r := decoded(t, d)
		if d.Attempt.Channel != tc.chosen || !cmp.Equal(rankingOf(t, d.Attempt.Ranking), tc.why) ||
			r.By != "round_robin" || r.Cursor != tc.cursor.Channel || *r.After != tc.after {
			t.Errorf("%s: got channel %s by %+v", name, d.Attempt.Channel, r)
		}
		if w.seen.Cursors[0].Channel != tc.chosen {
			t.Errorf("%s: got cursor %+v", name, w.seen.Cursors[0])
		}
	}
}

func TestOneCursorServesModeAndFallback(t *testing.T) {
	t.Parallel()
	w := inMode(t, RoundRobinMode, RoundRobin)
	a := w.assigner()
	if got := taken(t, a, w, 2); !cmp.Equal(got, []string{"a", "b"}) {
		t.Fatalf("got channels %v", got)
	}
	again := w.task("a")
	again.Row.Attempts, again.Row.Tried = 1, []string{"a"}
	if d := a.decide(again); d.Attempt.Channel != "c" || d.Attempt.Reason != ledger.ByFallback {
		t.Errorf("got fallback %+v", d.Attempt)
	}
	if got := taken(t, a, w, 1); !cmp.Equal(got, []string{"a"}) {
		t.Errorf("after the fallback's turn: got %v", got)
	}
}

func TestDrawnFirstChoiceAndHeldMessageTakeNoTurn(t *testing.T) {
	t.Parallel()
	w := inMode(t, Weighted, RoundRobin)
	a := w.assigner()
	if d := a.decide(w.task("b")); d.Attempt.Channel != "b" || d.Attempt.Ranking != nil {
		t.Errorf("decision %+v", d)
	}
	retry := w.task("b")
	retry.Row.Attempts = 1
	if d := a.decide(retry); d.Attempt.Channel != "b" || d.Attempt.Reason != ledger.ByRetry ||
		!cmp.Equal(rankingOf(t, d.Attempt.Ranking), []string{"b:"}) {
		t.Errorf("decision %+v", d)
	}
	held := w.task("b")
	held.Row.Attempts, held.Row.Pinned = 1, "c"
	if d := a.decide(held); d.Attempt.Channel != "c" {
		t.Errorf("decision %+v", d)
	}
	if cursor := w.seen.Cursors[0]; cursor.Channel != "" {
		t.Errorf("got cursor %+v", cursor)
	}
	w.unready[1] = "connecting"
	if d := w.decide(w.task("b")); d.Attempt.Channel != "a" || w.seen.Cursors[0].Channel != "a" {
		t.Errorf("got fallback %s, cursor %+v", d.Attempt.Channel, w.seen.Cursors[0])
	}
}

// TestLongestIdleMatchesTheSource is the example of the specification of selection modes: workers A
// to D are matched in the order D, C, A, B.
func TestLongestIdleMatchesTheSource(t *testing.T) {
	t.Parallel()
	w := wideFixture(t, 4, LongestIdle, LoadRatio)
	for i, is := range []struct{ active, capacity, minutes int64 }{
		{3, 5, 5},
		{3, 4, 3},
		{3, 5, 7},
		{0, 4, 2},
	} {
		w.routing.Channels[i].Capacity = is.capacity
		w.seen.Channels[i].Gate.Active.Count = is.active
		w.seen.Channels[i].LastAssigned = noon.Add(-time.Duration(is.minutes) * time.Minute)
	}
	d := w.decide(w.fresh())
	if got, want := rankingOf(t, d.Attempt.Ranking),
		[]string{"c003:", "c002:", "c000:", "c001:"}; !cmp.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	if r := decoded(t, d); r.By != "load_ratio" || r.Candidates[1].Active != 3 ||
		r.Candidates[1].LastAssigned.Time() != noon.Add(-7*time.Minute) {
		t.Errorf("ranking %+v", r)
	}
}

// TestLongestIdleKeepsExactLoadRatioOrderAsCountsChange compares each choice with the lowest
// fraction, computed in the test.
func TestLongestIdleKeepsExactLoadRatioOrderAsCountsChange(t *testing.T) {
	t.Parallel()
	w := inMode(t, LongestIdle, LoadRatio)
	capacities := []int64{7, 11, 13}
	for i, capacity := range capacities {
		w.routing.Channels[i].Capacity = capacity
	}
	// never assigned: all alike, then configured order
	counts, last := make([]int64, 3), []int{-3, -3, -3}
	a := w.assigner()
	for turn := range 310 {
		want := 0
		for i := 1; i < 3; i++ {
			left, right := counts[i]*capacities[want], counts[want]*capacities[i]
			if left < right || left == right && last[i] < last[want] {
				want = i
			}
		}
		got := a.decide(w.fresh()).Attempt.Channel
		if name := w.routing.Channels[want].Name; got != name {
			t.Fatalf("turn %d with counts %v went to %s, want %s", turn, counts, got, name)
		}
		counts[want]++
		last[want] = turn
	}
	if want := []int64{70, 110, 130}; !cmp.Equal(counts, want) {
		t.Errorf("counts %v, want %v", counts, want)
	}
}

// TestBestWorkerMatchesTheSource is the third example of the specification of selection modes:
// workers G, H and I score 0.667, 0.707 and 0.675.
func TestBestWorkerMatchesTheSource(t *testing.T) {
	t.Parallel()
	w := inMode(t, BestWorkerMode, LoadRatio)
	w.routing.Routes[0].BypassSelectors = true
	for i, is := range []struct{ sales, cost float64 }{{10, 10}, {15, 10}, {10, 9}} {
		w.routing.Channels[i].Labels = map[string]selector.Value{
			"language": selector.TextValue("french"), "sales": selector.NumberValue(is.sales),
			"cost": selector.NumberValue(is.cost),
		}
	}
	task := w.fresh()
	task.msg.Selectors = []selector.Selector{
		{Key: "language", Operator: selector.Equal, Value: selector.TextValue("french")},
		{Key: "sales", Operator: selector.GreaterThanEqual, Value: selector.NumberValue(10)},
		{Key: "cost", Operator: selector.LessThanEqual, Value: selector.NumberValue(10)},
	}
	d := w.decide(task)
	var got []string
	for _, c := range decoded(t, d).Candidates {
		got = append(got, fmt.Sprintf("%s %.3f", c.Channel, *c.Score))
	}
	if want := []string{"b 0.707", "c 0.675", "a 0.667"}; !cmp.Equal(got, want) {
		t.Errorf("scores %v, want %v", got, want)
	}
	if d.Attempt.Channel != "b" || d.Attempt.Reason != ledger.ByFirstChoice {
		t.Errorf("decision %+v", d)
	}
}

func TestLabelsAndSelectorsScoreTogetherAsThePureRuleSays(t *testing.T) {
	t.Parallel()
	w := wideFixture(t, 20, BestWorkerMode, LoadRatio)
	task := w.fresh()
	task.msg.Labels = map[string]selector.Value{
		"language":   selector.TextValue("fr"),
		"department": selector.TextValue("sales"), "quality": selector.TextValue("3"),
	}
	task.msg.Selectors = []selector.Selector{
		{Key: "quality", Operator: selector.GreaterThan, Value: selector.NumberValue(0.5)},
		// a key twice is two terms
		{Key: "quality", Operator: selector.GreaterThan, Value: selector.NumberValue(0.5)},
		{Key: "department", Operator: selector.NotEqual, Value: selector.NumberValue(3)},
	}
	for range 2 { // without and with the index that Apply makes
		for _, c := range decoded(t, w.decide(task)).Candidates {
			labels := w.routing.Channels[w.routing.Channel(c.Channel)].Labels
			if want := selector.Match(task.msg.Labels, task.msg.Selectors,
				labels); *c.Score != want {
				t.Errorf("%s scores %v, want %v", c.Channel, *c.Score, want)
			}
		}
		w.routing.Prepare()
	}
}

func TestEqualScoresGoToWhoHasWaitedLongerThenInConfiguredOrder(t *testing.T) {
	t.Parallel()
	w := inMode(t, BestWorkerMode, LoadRatio)
	w.seen.Channels[0].LastAssigned, w.seen.Channels[1].LastAssigned,
		w.seen.Channels[2].LastAssigned = noon, noon.Add(-time.Minute), noon.Add(-time.Minute)
	if got := taken(t, w.assigner(), w, 6); !cmp.Equal(got,
		[]string{"b", "c", "a", "b", "c", "a"}) {
		t.Errorf("got channels %v", got)
	}
}

func TestSelectorsDecideUnlessTheRouteBypassesThem(t *testing.T) {
	t.Parallel()
	for _, bypass := range []bool{false, true} {
		w := inMode(t, BestWorkerMode, LoadRatio)
		w.routing.Routes[0].BypassSelectors = bypass
		w.routing.Channels[1].Labels = map[string]selector.Value{"quality": selector.NumberValue(9)}
		task := w.fresh()
		task.msg.Selectors = []selector.Selector{{
			Key: "quality", Operator: selector.GreaterThan,
			Value: selector.NumberValue(5),
		}}
		w.unready[1] = "connecting"
		d := w.decide(task)
		if bypass && d.Attempt.Channel != "a" || !bypass && d.State != ledger.Waiting {
			t.Errorf("bypass %v: %+v", bypass, d)
		}
	}
}

func expression(t testing.TB, source string) Scoring {
	t.Helper()
	e, err := score.Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	return Scoring{Expression: e}
}

func TestExpressionScoresEachCandidate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		source    string
		ascending bool
		want      []string
	}{
		"cheapest":     {`price`, true, []string{"c 0.01", "a 0.03", "b 0.05"}},
		"dearest":      {`price`, false, []string{"b 0.05", "a 0.03", "c 0.01"}},
		"least loaded": {`0 - load_ratio`, false, []string{"a 0", "c -0.25", "b -0.5"}},
		"by label and priority": {
			`channel.labels["quality"] * 10 + priority`, false,
			[]string{"b 91", "c 81", "a 71"},
		},
		"by name and lane": {
			`channel.name == "c" && lane == "bulk" ? 1 : 0`, false,
			[]string{"c 1", "a 0", "b 0"},
		},
	} {
		w := inMode(t, BestWorkerMode, LoadRatio)
		w.routing.Lanes["later"] = Lane{Lane: config.Lane{Name: "later"}, Order: 1}
		// of an older document
		w.routing.Lanes["former"] = Lane{Lane: config.Lane{Name: "former"}, Order: 2, former: true}
		w.routing.Routes[0].Scoring = expression(t, tc.source)
		w.routing.Routes[0].Scoring.Ascending = tc.ascending
		for i, is := range []struct{ price, active, quality int64 }{
			{30_000, 0, 7},
			{50_000, 50, 9},
			{10_000, 25, 8},
		} {
			w.routing.Channels[i].Price = NewPrice("GBP", PriceList{Default: is.price})
			w.routing.Channels[i].Labels = map[string]selector.Value{
				"quality": selector.NumberValue(float64(is.quality)),
			}
			w.seen.Channels[i].Gate.Active.Count = is.active
		}
		task := w.fresh()
		task.Lane = w.routing.Lanes["bulk"]
		r := decoded(t, w.decide(task))
		var got []string
		for _, c := range r.Candidates {
			got = append(got, fmt.Sprintf("%s %v", c.Channel, *c.Score+0))
		}
		if !cmp.Equal(got, tc.want) || r.Scoring != "expression" || r.Trouble != "" {
			t.Errorf("%s: %v (scoring %q, trouble %q), want %v", name, got, r.Scoring,
				r.Trouble, tc.want)
		}
	}
}

func TestExpressionThatFailsForOneCandidateLeavesAllToTheDefault(t *testing.T) {
	t.Parallel()
	for _, source := range []string{`1 / (0 * price)`, `channel.labels["quality"] + 1`} {
		w := inMode(t, BestWorkerMode, LoadRatio)
		w.routing.Routes[0].Scoring = expression(t, source)
		// of the expression; the best match goes first all the same
		w.routing.Routes[0].Scoring.Ascending = true
		w.routing.Channels[1].Labels = map[string]selector.Value{
			"language": selector.TextValue("en"), "quality": selector.NumberValue(1),
		}
		task := w.fresh()
		task.msg.Labels = map[string]selector.Value{"language": selector.TextValue("en")}
		a := w.assigner()
		r := decoded(t, a.decide(task).Decision)
		if r.Trouble != "expression_failed" || r.Scoring != "" || r.Candidates[0].Channel != "b" ||
			*r.Candidates[0].Score != 1 || *r.Candidates[1].Score != 0 {
			t.Errorf("%s: got %+v", source, r)
		}
		if a.troubles["expression_failed"] != 1 {
			t.Errorf("%s: counted %v", source, a.troubles)
		}
	}
}

func TestBestWorkerMayBeTheFallbackOfADraw(t *testing.T) {
	t.Parallel()
	w := inMode(t, Weighted, BestWorker)
	w.unready[0] = "breaker_open"
	w.routing.Channels[2].Labels = map[string]selector.Value{"language": selector.TextValue("en")}
	task := w.task("a")
	task.msg.Labels = map[string]selector.Value{"language": selector.TextValue("en")}
	d := w.decide(task)
	if got := rankingOf(t, d.Attempt.Ranking); !cmp.Equal(got,
		[]string{"a:breaker_open", "c:", "b:"}) || d.Attempt.Reason != ledger.ByFallback {
		t.Errorf("ranking %v", got)
	}
}

func TestRedrawFollowsTheDrawsOfTheMessage(t *testing.T) {
	t.Parallel()
	w := inMode(t, Weighted, Redraw)
	w.unready[2] = "breaker_open"
	drawer := selector.NewDrawer(testKeys[0])
	a := w.assigner()
	counts := map[string]int{}
	for i := range 2000 {
		task := w.task("c")
		task.Row.ID = fmt.Sprint("m-", i)
		w.seen.Channels[0].Gate.Active.Count = 0
		d := a.decide(task)
		r := decoded(t, d.Decision)
		want := []string{"c"}
		for _, place := range w.routing.Routes[0].Table.Redraw(drawer, task.Row.ID, 2) {
			want = append(want, w.routing.Channels[place].Name)
		}
		got := []string{r.Candidates[0].Channel, r.Candidates[1].Channel}
		if !cmp.Equal(got, want[:2]) || r.More != 1 || r.By != "redraw" ||
			r.KeyID != drawer.KeyID() || d.Attempt.Channel != want[1] {
			t.Fatalf("%s: %v by %+v, want %v", task.Row.ID, got, r, want)
		}
		counts[d.Attempt.Channel]++
	}
	// a and b share by 25 and 15: 1250 of 2000 for a, within four standard deviations of 21.7.
	if n := counts["a"]; n < 1163 || n > 1337 {
		t.Errorf("redraws went %v", counts)
	}
}

func TestRedrawOfARouteThatDoesNotDrawTakesAllMembers(t *testing.T) {
	t.Parallel()
	w := inMode(t, RoundRobinMode, Redraw)
	task := w.task("b")
	task.Row.Attempts, task.Row.Tried = 1, []string{"b"}
	r := decoded(t, w.decide(task))
	var want []string
	for _, place := range w.routing.Routes[0].Table.Redraw(selector.NewDrawer(testKeys[0]),
		"m", -1) {
		want = append(want, w.routing.Channels[place].Name)
	}
	var got []string
	for _, c := range r.Candidates {
		got = append(got, c.Channel)
	}
	if n := len(want); len(got) == 0 || len(got) > n || !cmp.Equal(got, want[:len(got)]) ||
		r.More != n-len(got) || r.KeyID == "" {
		t.Errorf("order %v, want %v", got, want)
	}
}

func TestRedrawNeverPicksAWeightOfZero(t *testing.T) {
	t.Parallel()
	w := inMode(t, Weighted, Redraw)
	var err error
	w.routing.Routes[0].Table, err = selector.NewTable([]selector.Entry{
		{
			Name:   "a",
			Weight: selector.MustWeight("1"),
		},
		{Name: "b"},
		{Name: "c", Weight: selector.MustWeight("1")},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.unready[0] = "breaker_open"
	if got := rankingOf(t, w.decide(w.task("a")).Attempt.Ranking); !cmp.Equal(got,
		[]string{"a:breaker_open", "c:"}) {
		t.Errorf("ranking %v", got)
	}
	w.unready[2] = "breaker_open"
	d := w.decide(w.task("a"))
	if got := rankingOf(t, d.Seen); d.State != ledger.Waiting ||
		!cmp.Equal(got, []string{"a:breaker_open", "c:breaker_open", "b:weight_zero"}) {
		t.Errorf("decision %+v, ranking %v", d, got)
	}
	task := w.task("a")
	task.tried("a", "c")
	if d := w.decide(task); d.Reason != reasonTried || !d.NewRound {
		t.Errorf("both drawn channels have refused it: got %+v", d)
	}
}

func TestMessageKeepsTheKeyItWasFirstDrawnUnder(t *testing.T) {
	t.Parallel()
	before, after := selector.Key{1}, selector.Key{2}
	w := inMode(t, Weighted, Redraw)
	job := testJob(envelope.Message{})
	row := (&planner{
		routing: w.routing, keys: newDrawers([]selector.Key{before}),
		now: noon,
	}).plan(&job).Row
	row.Envelope, row.State = job.Message.Append(nil), ledger.Waiting

	for name, tc := range map[string]struct {
		keys []selector.Key
		want selector.Key
	}{
		"rotated, the old one still there": {[]selector.Key{after, before}, before},
		"rotated, the old one gone":        {[]selector.Key{after}, after},
	} {
		keys := newDrawers(tc.keys)
		got := (&planner{routing: w.routing, keys: keys, now: noon}).planDue(row)
		want := selector.NewDrawer(tc.want)
		if got.Row.Plan.KeyID != want.KeyID() ||
			got.Row.Plan.Draw != int64(want.Draw(row.ID, 1, 100)) {
			t.Errorf("%s: plan %+v", name, got.Row.Plan)
		}
		got.Row.Attempts, got.Row.Tried = 1, []string{got.Row.Plan.FirstChoice}
		a := newAssigner(w.routing, keys, w.seen, Snapshot{Unready: w.unready})
		if r := decoded(t, a.decide(&got).Decision); r.KeyID != want.KeyID() {
			t.Errorf("%s: redrawn under %s", name, r.KeyID)
		}
	}
}

func TestLaterAttemptsUseTheFallbackOfTheRoute(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{RoundRobinMode, LongestIdle, BestWorkerMode} {
		w := inMode(t, mode, LoadRatio)
		w.seen.Channels[0].Gate.Active.Count, w.seen.Channels[1].Gate.Active.Count = 10, 5
		task := w.task("c")
		task.Row.Attempts, task.Row.Tried = 1, []string{"c"}
		d := w.decide(task)
		if got := rankingOf(t, d.Attempt.Ranking); !cmp.Equal(got,
			[]string{"c:already_tried", "b:", "a:"}) || decoded(t, d).By != "load_ratio" {
			t.Errorf("%s: ranking %v", mode, got)
		}
		if d.Attempt.Reason != ledger.ByFallback || d.Plan.FirstChoice != "c" ||
			d.Attempt.Number != 2 {
			t.Errorf("%s: decision %+v", mode, d)
		}
		task.Row.Tried = nil // it was only throttled
		if d := w.decide(task); d.Attempt.Channel != "c" || d.Attempt.Reason != ledger.ByRetry {
			t.Errorf("%s: decision %+v", mode, d)
		}
		task.Row.PossibleDuplicate = true
		if d := w.decide(task); d.Attempt.Reason != ledger.ByResend {
			t.Errorf("%s: decision %+v", mode, d)
		}
	}
}

func TestMessageThatWaitsOnAStateModeHasNoFirstChoiceYet(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{RoundRobinMode, LongestIdle, BestWorkerMode} {
		w := inMode(t, mode, LoadRatio)
		// of no meaning here: there is no first choice to hold for
		w.routing.Routes[0].Wait = time.Hour
		w.unready = []string{"connecting", "connecting", "connecting"}
		p := &planner{routing: w.routing, keys: newDrawers(testKeys), now: noon}
		job := testJob(envelope.Message{})
		planned := p.plan(&job)
		if plan := planned.Row.Plan; plan.FirstChoice != "" || plan.Size != 0 || plan.KeyID != "" ||
			plan.Route != "default" || planned.Row.State != ledger.Sending {
			t.Errorf("%s: plan %+v", mode, plan)
		}
		planned.Row.ReceivedAt = noon
		d := w.decide(&planned)
		if d.State != ledger.Waiting || d.Reason != "connecting" ||
			!d.NextAt.Equal(noon.Add(readyRetry)) || d.Plan.FirstChoice != "" ||
			len(rankingOf(t, d.Seen)) != 3 {
			t.Errorf("%s: decision %+v", mode, d)
		}
		if cursor := w.seen.Cursors[0]; cursor.Channel != "" {
			t.Errorf("%s: no channel was chosen, but the cursor moved to %+v", mode, cursor)
		}
	}
}

func TestLimitsHoldInEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{RoundRobinMode, LongestIdle, BestWorkerMode} {
		w := inMode(t, mode, LoadRatio)
		for i := range w.seen.Channels {
			w.seen.Channels[i].Gate.Counters = []admission.Counter{{
				Limit: admission.Limit{Window: admission.Second, Max: 4},
			}}
		}
		// of the second's four release times three lie within the next half
		got := taken(t, w.assigner(), w, 9)
		d := w.decide(w.fresh())
		if d.State != ledger.Waiting || d.Reason != NoSlot ||
			!d.NextAt.Before(noon.Add(time.Second/2)) {
			t.Errorf("%s: the tenth was %+v", mode, d)
		}
		w.seen.Now = d.NextAt
		a := w.assigner()
		got = append(got, taken(t, a, w, 3)...)
		slices.Sort(got)
		if want := []string{
			"a", "a", "a", "a", "b", "b", "b", "b", "c", "c", "c",
			"c",
		}; !cmp.Equal(got, want) {
			t.Errorf("%s: got channels %v", mode, got)
		}
		if d := a.decide(w.fresh()); d.State != ledger.Waiting || d.Reason != NoSlot ||
			d.NextAt.Sub(noon) != 950*time.Millisecond {
			t.Errorf("%s: the thirteenth was %+v", mode, d)
		}
	}
}
