package scoring

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/decide"
)

func TestABatchAsksForUpToItsSizeInOneCall(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		batch             bool
		size, candidates  int
		wantCalls, wantIn int
	}{
		{true, 20, 1, 1, 1},
		{true, 20, 20, 1, 20},
		{true, 20, 21, 2, 20},
		{true, 20, 45, 3, 20},
		{true, 1, 3, 3, 1},
		{false, 20, 5, 5, 1},
	} {
		var mu sync.Mutex
		largest := 0
		f, calls := newFunction(t, func(w http.ResponseWriter, r *http.Request) {
			b, _ := question(w, r)
			mu.Lock()
			largest = max(largest, len(b.Candidates))
			mu.Unlock()
			fmt.Fprint(w, answerTo(b))
		})
		f.Batch, f.BatchSize = tc.batch, tc.size
		got := newClient(t).Scores(t.Context(), f, questionOf(tc.candidates))
		var want []float64
		for i := range tc.candidates {
			want = append(want, float64(i)/10)
		}
		if diff := cmp.Diff(decide.Scores{Values: want}, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tc, diff)
		}
		if calls.Load() != int64(tc.wantCalls) || largest != tc.wantIn {
			t.Errorf("%+v: %d calls of up to %d candidates", tc, calls.Load(), largest)
		}
	}
}

func TestTheTokenTravelsInTheHeader(t *testing.T) {
	t.Parallel()
	var got atomic.Value
	f, _ := newFunction(t, func(w http.ResponseWriter, r *http.Request) {
		got.Store([]string{r.Method, r.Header.Get("Content-Type"), r.Header.Get("Authorization")})
		scoresByName(w, r)
	})
	f.Token = "s3cret"
	if s := newClient(t).Scores(t.Context(), f, questionOf(1)); s.Trouble != "" {
		t.Fatal(s.Trouble)
	}
	if diff := cmp.Diff([]string{"POST", "application/json", "Bearer s3cret"},
		got.Load()); diff != "" {
		t.Error(diff)
	}
}

// TestEveryTroubleEndsInItsWord has a server for each way in which a function can fail.
func TestEveryTroubleEndsInItsWord(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int64
	other, _ := newFunction(t, func(w http.ResponseWriter, r *http.Request) {
		elsewhere.Add(1)
		scoresByName(w, r)
	})
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			scoresByName(w, r)
		}
	}
	for name, tc := range map[string]struct {
		handle http.HandlerFunc
		word   string
	}{
		"nothing": {respondWith(""), decide.FunctionInvalid},
		"no JSON": {respondWith("0.5"), decide.FunctionInvalid},
		"NaN":     {respondWith(`{"scores":[{"channel":"c0","score":NaN}]}`), decide.FunctionNotFinite},
		"too few": {respondWith(`{"scores":[]}`), decide.FunctionTooFew},
		"500":     {status(500), decide.FunctionStatus},
		"201":     {status(201), decide.FunctionStatus},
		"401":     {status(401), decide.FunctionStatus},
		"400":     {status(400), decide.FunctionStatus},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, decide.FunctionStatus},
		"a broken line": {
			func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			decide.FunctionUnreachable,
		},
		"half an answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"scores":[`)
		}, decide.FunctionUnreachable},
		"a long header": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 2*maxHeader))
			scoresByName(w, r)
		}, decide.FunctionUnreachable},
	} {
		f, _ := newFunction(t, tc.handle)
		got := newClient(t).Scores(t.Context(), f, questionOf(1))
		if diff := cmp.Diff(decide.Scores{Trouble: tc.word}, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if elsewhere.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

func TestNothingListeningIsUnreachable(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"http://127.0.0.1:1", "http://127.0.0.1:bad", "gopher://127.0.0.1",
	} {
		f := &decide.Function{URL: url, AllowPrivate: true, Deadline: 10 * time.Second}
		if got := newClient(t).Scores(t.Context(), f,
			questionOf(1)); got.Trouble != decide.FunctionUnreachable {
			t.Errorf("%s: got %+v, want Trouble %v", url, got, decide.FunctionUnreachable)
		}
	}
}

// TestAnAnswerOfFiveMegabytesIsNotRead counts what the function wrote before its connection was
// closed.
func TestAnAnswerOfFiveMegabytesIsNotRead(t *testing.T) {
	t.Parallel()
	const size = 5 << 20
	for name, announce := range map[string]bool{"announced": true, "in chunks": false} {
		written := make(chan int, 1)
		f, _ := newFunction(t, func(w http.ResponseWriter, _ *http.Request) {
			if announce {
				w.Header().Set("Content-Length", fmt.Sprint(size))
			}
			n := 0
			defer func() { written <- n }()
			chunk := []byte(strings.Repeat(" ", 16<<10))
			for n < size {
				k, err := w.Write(chunk)
				if n += k; err != nil {
					return
				}
			}
		})
		if got := newClient(t).Scores(t.Context(), f,
			questionOf(1)); got.Trouble != decide.FunctionTooLarge {
			t.Errorf("%s: got %+v, want Trouble %v", name, got, decide.FunctionTooLarge)
		}
		if n := <-written; n >= size {
			t.Errorf("%s: all %d bytes were read", name, n)
		}
	}
}

func TestAnswersAboutManyCandidatesMayBeLonger(t *testing.T) {
	t.Parallel()
	f, _ := newFunction(t, scoresByName)
	f.BatchSize = 1000
	q := questionOf(1000)
	for i := range q.Candidates { // an answer longer than maxAnswer
		q.Candidates[i].Channel += strings.Repeat("0", 64)
	}
	if got := newClient(t).Scores(t.Context(), f, q); got.Trouble != "" || len(got.Values) != 1000 {
		t.Errorf("%s, %d values", got.Trouble, len(got.Values))
	}
}

func TestTheFirstFailureEndsTheQuestion(t *testing.T) {
	t.Parallel()
	f, calls := newFunction(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	})
	f.Batch = false
	c := newClient(t)
	if got := c.Scores(t.Context(), f, questionOf(200)); got.Trouble != decide.FunctionStatus {
		t.Errorf("got %+v, want Trouble %v", got, decide.FunctionStatus)
	}
	if n := calls.Load(); n > 2*maxConnections {
		t.Errorf("%d calls after the first had failed", n)
	}
}

func TestAnAnswerIsKeptForEqualQuestions(t *testing.T) {
	t.Parallel()
	f, calls := newFunction(t, scoresByName)
	c := newClient(t)
	for range 5 {
		again := *f // a reload of the routing creates a new value
		if got := c.Scores(t.Context(), &again, questionOf(2)); got.Trouble != "" {
			t.Fatal(got.Trouble)
		}
	}
	if calls.Load() != 1 {
		t.Errorf("%d calls for five equal questions", calls.Load())
	}
	q := questionOf(2)
	q.Lane = "bulk"
	c.Scores(t.Context(), f, q)
	if calls.Load() != 2 {
		t.Errorf("%d calls after another question", calls.Load())
	}
}

func TestOneOddQuestionDoesNotSilenceTheFunction(t *testing.T) {
	t.Parallel()
	f, calls := newFunction(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := question(w, r)
		switch b.Lane {
		case "bulk":
			fmt.Fprint(w, `{"scores":[{"channel":"c0","score":null}]}`)
		case "transactional":
			w.WriteHeader(http.StatusUnprocessableEntity)
		default:
			fmt.Fprint(w, answerTo(b))
		}
	})
	c := newClient(t)
	for lane, word := range map[string]string{
		"bulk":          decide.FunctionNotFinite,
		"transactional": decide.FunctionStatus,
	} {
		odd := questionOf(1)
		odd.Lane = lane
		for range 3 {
			if got := c.Scores(t.Context(), f, odd); got.Trouble != word {
				t.Errorf("%s: got %+v, want Trouble %v", lane, got, word)
			}
		}
	}
	if got := c.Scores(t.Context(), f, questionOf(1)); got.Trouble != "" {
		t.Errorf("a good question: %+v", got)
	}
	if calls.Load() != 3 {
		t.Errorf("%d calls; each trouble is remembered for its question", calls.Load())
	}
}

func TestCallsAreCountedByWhatCameOfThem(t *testing.T) {
	t.Parallel()
	f, _ := newFunction(t, scoresByName)
	bad, _ := newFunction(t, respondWith(""))
	registry := prometheus.NewRegistry()
	c, err := New(Config{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Scores(t.Context(), f, questionOf(45))
	c.Scores(t.Context(), f, questionOf(45))
	c.Scores(t.Context(), bad, questionOf(1))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	want := map[string]float64{
		"dispatcher_scoring_calls_total ok default":               3,
		"dispatcher_scoring_calls_total function_invalid default": 1,
		"dispatcher_scoring_questions_total function default":     2,
		"dispatcher_scoring_questions_total cache default":        1,
		"dispatcher_scoring_queue_seconds default":                2,
		"dispatcher_scoring_seconds default":                      2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAClientNeedsItsRegistry(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}); err == nil {
		t.Error("a call was made without candidates")
	}
	if got := newClient(t).Scores(t.Context(), &decide.Function{},
		&decide.ScoreQuestion{}); got.Trouble != "" || len(got.Values) != 0 {
		t.Errorf("without candidates: %+v", got)
	}
}
