package scoring

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config/tier"
	"dispatcher/selector"
)

// batchHold is how long the pipeline waits for the answers to one batch.
const batchHold = 5 * time.Second

// distinct returns the n-th of many questions with pairwise different answers.
func distinct(n, candidates int) *decide.ScoreQuestion {
	q := questionOf(candidates)
	q.Labels["customer"] = selector.NumberValue(float64(n))
	return q
}

// askAll asks n distinct questions at once, as a batch of the pipeline does, and counts the answers
// by their word.
func askAll(
	t *testing.T, c *Client, f *decide.Function, questions, candidates int, hold time.Duration,
) map[string]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hold)
	defer cancel()
	words := make([]string, questions)
	var group sync.WaitGroup
	for i := range questions {
		group.Go(func() {
			got := c.Scores(ctx, f, distinct(i, candidates))
			if got.Trouble == "" && len(got.Values) != candidates {
				t.Errorf("question %d: %d values", i, len(got.Values))
			}
			words[i] = got.Trouble
		})
	}
	group.Wait()
	counts := map[string]int{}
	for _, w := range words {
		counts[w]++
	}
	return counts
}

// answerAfter is a good answer after a while, unless the caller leaves.
func answerAfter(latency time.Duration, r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(latency):
		return goodAnswer(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// load is a batch of 64 distinct questions to a healthy function.
type load struct {
	latency    time.Duration
	batch      bool
	candidates int
}

func loads() []load {
	var out []load
	for _, latency := range []time.Duration{
		5 * time.Millisecond, 20 * time.Millisecond,
		120 * time.Millisecond,
	} {
		for _, batch := range []bool{true, false} {
			for _, candidates := range []int{3, 20} {
				out = append(out, load{latency, batch, candidates})
			}
		}
	}
	return out
}

// TestAHealthyFunctionIsNeverReportedAsFailing asks over real connections. The function answers
// within the default deadline of 200 ms, so a late answer is the fault of this side: of its code,
// or of a busy machine. To tell these apart, the test is repeated at half the speed, at a quarter
// and so on: that helps a busy machine, and does not help calls that wait for each other.
//
// It is not parallel, so that other tests of this package take no CPU time from it.
func TestAHealthyFunctionIsNeverReportedAsFailing(t *testing.T) {
	for _, l := range loads() {
		if !tier.Long() && l.latency > 20*time.Millisecond {
			continue
		}
		words := map[string]int{}
		for slower := 1; slower <= 64 && words[""] != 64; slower *= 2 {
			words = askHealthy(t, l, slower)
		}
		if words[""] != 64 {
			t.Errorf("%+v: answers %v", l, words)
		}
	}
}

func askHealthy(t *testing.T, l load, slower int) map[string]int {
	t.Helper()
	f, calls := newFunction(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(time.Duration(slower) * l.latency):
			scoresByName(w, r)
		case <-r.Context().Done():
		}
	})
	f.Batch, f.Deadline, f.Cache = l.batch, time.Duration(slower)*200*time.Millisecond, 0
	began := time.Now()
	words := askAll(t, newClient(t), f, 64, l.candidates, time.Duration(slower)*batchHold)
	t.Logf("%+v: %v, %d calls in %s at 1/%d of the speed", l, words, calls.Load(),
		time.Since(began).Round(time.Millisecond), slower)
	return words
}

// TestHealthyFunctionsAreNeverLateOnTheFakeClock is the same without the effects of a busy CPU, up
// to a function that takes its deadline less a millisecond. It also counts connections.
func TestHealthyFunctionsAreNeverLateOnTheFakeClock(t *testing.T) {
	t.Parallel()
	for _, l := range append(loads(), load{199 * time.Millisecond, true, 20},
		load{199 * time.Millisecond, false, 20}) {
		synctest.Test(t, func(t *testing.T) {
			var under, most atomic.Int64
			c, f := over(t, func(r *http.Request) (*http.Response, error) {
				now := under.Add(1)
				defer under.Add(-1)
				for seen := most.Load(); now > seen && !most.CompareAndSwap(seen,
					now); seen = most.Load() {
				}
				return answerAfter(l.latency, r)
			})
			f.Batch = l.batch
			began := time.Now()
			words := askAll(t, c, f, 64, l.candidates, batchHold)
			calls := 1
			if !l.batch {
				calls = l.candidates
			}
			together := maxConnections / calls
			want := time.Duration((64+together-1)/together) * l.latency
			if took := time.Since(began); words[""] != 64 || took != want ||
				most.Load() > maxConnections {
				t.Errorf("%+v: answers %v after %s with %d calls at once, want all after %s", l,
					words, took, most.Load(), want)
			}
		})
	}
}

// TestABatchOutOfTimeReportsNoFailureOfTheFunction has more questions than the function can answer
// in the time of a batch.
func TestABatchOutOfTimeReportsNoFailureOfTheFunction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, f := over(t, func(r *http.Request) (*http.Response, error) {
			return answerAfter(150*time.Millisecond, r)
		})
		f.Batch = false
		began := time.Now()
		words := askAll(t, c, f, 500, 20, batchHold)
		if took := time.Since(began); took != batchHold {
			t.Errorf("the batch was held up for %s", took)
		}
		if rounds := int(batchHold / (150 * time.Millisecond)); words[""] != rounds*(maxConnections/20) ||
			words[""]+words[decide.FunctionTimeout] != 500 {
			t.Errorf("answers: %v", words)
		}
		if got := c.Scores(t.Context(), f, questionOf(1)); got.Trouble != "" {
			t.Errorf("the next question: %+v", got)
		}
	})
}

// TestOneLateAnswerAmongGoodOnesIsThatQuestionsOwn: a function that answers other questions is
// healthy.
func TestOneLateAnswerAmongGoodOnesIsThatQuestionsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var late atomic.Int64
		c, f := over(t, func(r *http.Request) (*http.Response, error) {
			time.Sleep(50 * time.Millisecond)
			if late.Add(1) == 10 {
				return noAnswer(r)
			}
			return goodAnswer(r)
		})
		words := askAll(t, c, f, 500, 3, batchHold)
		if words[""] != 499 || words[decide.FunctionTimeout] != 1 {
			t.Errorf("answers: %v", words)
		}
		began, calls := time.Now(), late.Load()
		if again := askAll(t, c, f, 500, 3, batchHold); again[decide.FunctionTimeout] != 1 ||
			late.Load() != calls || time.Since(began) != 0 {
			t.Errorf("asked again: %v after %d calls and %s; the late one is remembered for its "+
				"question", again, late.Load()-calls, time.Since(began))
		}
	})
}

// TestADeadFunctionCostsABatchOneDeadline: the questions in the queue are not sent to it.
func TestADeadFunctionCostsABatchOneDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, f := over(t, noAnswer)
		began := time.Now()
		words := askAll(t, c, f, 500, 3, batchHold)
		if took := time.Since(began); took != f.Deadline || words[decide.FunctionTimeout] != 500 {
			t.Errorf("%v after %s", words, took)
		}
	})
}

// TestOneFunctionDoesNotQueueForAnother has a function that does not answer and a good one.
func TestOneFunctionDoesNotQueueForAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, dead := over(t, func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/dead" {
				return noAnswer(r)
			}
			return goodAnswer(r)
		})
		good := *dead
		good.URL += "good"
		dead.URL, dead.Deadline = dead.URL+"dead", 5*time.Second
		var group sync.WaitGroup
		group.Go(func() { askAll(t, c, dead, 300, 3, batchHold) })
		synctest.Wait()
		began := time.Now()
		if words := askAll(t, c, &good, 300, 3, batchHold); words[""] != 300 ||
			time.Since(began) != 0 {
			t.Errorf("%v after %s", words, time.Since(began))
		}
		group.Wait()
	})
}

// TestSingleFlightHoldsUnderLoad: many callers ask few questions without a cache, and some give up.
// No caller gets the answer to another question, and each that waits gets one.
func TestSingleFlightHoldsUnderLoad(t *testing.T) {
	t.Parallel()
	const questions, askers = 5, 40
	rounds := tier.Size(5, 30)
	f, calls := newFunction(t, func(w http.ResponseWriter, r *http.Request) {
		b, ok := question(w, r)
		if !ok {
			return
		}
		// The score of each candidate is the customer's number, so that an answer shows its question.
		fmt.Fprintf(w, `{"scores":[{"channel":"c0","score":%v}]}`, b.Labels["customer"])
	})
	f.Cache, f.Batch, f.Deadline = 0, false, time.Minute
	c := newClient(t)
	var group sync.WaitGroup
	var gaveUp atomic.Int64
	for a := range askers {
		group.Go(func() {
			for n := range rounds {
				customer := (a + n) % questions
				ctx, cancel := context.WithCancel(t.Context())
				if (a+n)%7 == 0 {
					ctx, cancel = context.WithTimeout(t.Context(),
						time.Duration(rand.IntN(500))*time.Microsecond)
				}
				got := c.Scores(ctx, f, distinct(customer, 1))
				switch {
				case got.Trouble == decide.FunctionTimeout && ctx.Err() != nil:
					gaveUp.Add(1)
				case got.Trouble != "" || got.Values[0] != float64(customer):
					t.Errorf("customer %d: %+v", customer, got)
				}
				cancel()
			}
		})
	}
	group.Wait()
	t.Logf("%d questions, %d calls, %d gave up", askers*rounds, calls.Load(), gaveUp.Load())
	if calls.Load() > askers*int64(rounds) {
		t.Errorf("%d calls for %d questions", calls.Load(), askers*rounds)
	}
	if len(c.questions.byKey) != 0 || len(c.gates.of) != 0 {
		t.Errorf("%d questions and %d gates are left", len(c.questions.byKey), len(c.gates.of))
	}
}
