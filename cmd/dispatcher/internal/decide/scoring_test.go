package decide

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/selector"
)

// scoredByEndpoint makes the only route rank by the scores of a function.
func scoredByEndpoint(r *Routing) {
	r.Routes[0].Mode = BestWorkerMode
	r.Routes[0].Scoring = Scoring{Function: &Function{
		URL:      "http://127.0.0.1/score",
		Deadline: 200 * time.Millisecond,
	}}
}

func TestFunctionScoresTheCandidates(t *testing.T) {
	t.Parallel()
	w := inMode(t, BestWorkerMode, LoadRatio)
	scoredByEndpoint(w.routing)
	for _, ascending := range []bool{false, true} {
		w.routing.Routes[0].Scoring.Ascending = ascending
		task := w.fresh()
		task.Scores = &Scores{Values: []float64{2, -1.5, 3}}
		d := w.decide(task)
		want, order := "c", []float64{3, 2, -1.5}
		if ascending {
			want, order = "b", []float64{-1.5, 2, 3}
		}
		r := decoded(t, d)
		got := []float64{*r.Candidates[0].Score, *r.Candidates[1].Score, *r.Candidates[2].Score}
		if d.Attempt.Channel != want || !cmp.Equal(got, order) || r.Scoring != "function" ||
			r.Trouble != "" {
			t.Errorf("ascending %v: %s by %+v", ascending, d.Attempt.Channel, r)
		}
	}
}

func TestEveryTroubleOfAFunctionLeavesTheDefaultAndItsWord(t *testing.T) {
	t.Parallel()
	three := func(values ...float64) *Scores { return &Scores{Values: values} }
	for name, tc := range map[string]struct {
		scores *Scores
		want   string
	}{
		"nobody to ask": {nil, FunctionUnreachable},
		"timeout":       {&Scores{Trouble: FunctionTimeout}, FunctionTimeout},
		"status":        {&Scores{Trouble: FunctionStatus}, FunctionStatus},
		"invalid":       {&Scores{Trouble: FunctionInvalid}, FunctionInvalid},
		"5 MB":          {&Scores{Trouble: FunctionTooLarge}, FunctionTooLarge},
		"unreachable":   {&Scores{Trouble: FunctionUnreachable}, FunctionUnreachable},
		"too few":       {three(1, 2), FunctionTooFew},
		"too many":      {three(1, 2, 3, 4), FunctionTooFew},
		"nothing":       {three(), FunctionTooFew},
		"NaN":           {three(1, math.NaN(), 3), FunctionNotFinite},
		"infinite":      {three(1, math.Inf(-1), 3), FunctionNotFinite},
		"trouble and values": {
			&Scores{Values: []float64{9, 0, 0}, Trouble: FunctionStatus},
			FunctionStatus,
		},
	} {
		q := testQuestion(t)
		scoredByEndpoint(q.Routing)
		// of the function; the best match goes first all the same
		q.Routing.Routes[0].Scoring.Ascending = true
		q.Routing.Channels[2].Labels = map[string]selector.Value{
			"language": selector.TextValue("en"),
		}
		q.Job.Message.Labels = map[string]selector.Value{"language": selector.TextValue("en")}
		q.Scores = tc.scores
		if function, about := q.Function(); function == nil || len(about.Candidates) != 3 {
			t.Fatalf("%s: no function is to be asked about %+v", name, about)
		}
		got := Explain(q)
		if got.Trouble != tc.want || got.Scoring != "" || got.Decision.Attempt.Channel != "c" ||
			*got.Candidates[0].Score != 1 {
			t.Errorf("%s: got %+v", name, got)
		}
		if r := decoded(t, got.Decision); r.Trouble != tc.want || r.Scoring != "" {
			t.Errorf("%s: stored %+v", name, r)
		}
	}
}

func TestEqualQuestionsOfABatchAreAskedOnce(t *testing.T) {
	t.Parallel()
	w := inMode(t, BestWorkerMode, LoadRatio)
	scoredByEndpoint(w.routing)
	w.routing.Channels[0].Price = NewPrice("GBP",
		PriceList{Default: 30_000, Prefixes: map[string]int64{"+33": 50_000}})
	base := func() *Task {
		task := w.fresh()
		task.msg.Labels = map[string]selector.Value{
			"k": selector.TextValue("1"),
			"l": selector.NumberValue(2),
		}
		task.msg.Selectors = []selector.Selector{qualityAbove(5, time.Minute)}
		return task
	}
	r := &ScoreRequest{Routing: w.routing, Now: noon}
	first := r.Add(base())
	for name, tc := range map[string]struct {
		change func(*Task)
		same   bool
	}{
		"another id, text and number": {func(t *Task) {
			t.Row.ID, t.msg.Text, t.msg.To = "n", "y", "+447700900124"
		}, true},
		"a number of another price": {func(t *Task) { t.to.Number = "+33612345678" }, false},
		"another lane":              {func(t *Task) { t.Row.Lane = "otp" }, false},
		"another label": {func(t *Task) {
			t.msg.Labels["k"] = selector.TextValue("2")
		}, false},
		"a number in place of a text": {func(t *Task) {
			t.msg.Labels["k"] = selector.NumberValue(1)
		}, false},
		"no selector": {func(t *Task) { t.msg.Selectors = nil }, false},
		"its selector has expired": {func(t *Task) {
			t.Row.ReceivedAt = noon.Add(-time.Minute)
		}, false},
		"its selector expires later": {func(t *Task) {
			t.msg.Selectors[0].ExpiresAfter = time.Hour
		}, true},
		"a twin of its selector": {func(t *Task) {
			t.msg.Selectors = append(t.msg.Selectors, t.msg.Selectors[0])
		}, false},
		"labels that read as one text": {func(t *Task) {
			t.msg.Labels = map[string]selector.Value{"kt": selector.TextValue("1")}
		}, false},
	} {
		task := base()
		tc.change(task)
		if same := r.Add(task) == first; same != tc.same {
			t.Errorf("%s: the same question %v, want %v", name, same, tc.same)
		}
	}
	got := first.Question
	want := ScoreQuestion{
		Route: "default", Lane: "bulk", Labels: base().msg.Labels, Selectors: base().msg.Selectors,
		Candidates: []ScoreCandidate{
			{Channel: "a", Price: 0.03, Currency: "GBP"},
			{Channel: "b", Price: 0.03, Currency: "GBP"},
			{Channel: "c", Price: 0.03, Currency: "GBP"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
