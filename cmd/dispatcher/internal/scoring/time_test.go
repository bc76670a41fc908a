package scoring

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/cmd/dispatcher/internal/decide"
)

func TestTheDeadlineIsForAllCallsTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, f := over(t, noAnswer)
		f.Batch = false
		began := time.Now()
		got := c.Scores(t.Context(), f, questionOf(40))
		if took := time.Since(began); took != f.Deadline || got.Trouble != decide.FunctionTimeout {
			t.Errorf("%+v after %s", got, took)
		}
	})
}

func TestCallsOfOneQuestionRunTogetherUpToTheBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var under, most atomic.Int64
		c, f := over(t, func(r *http.Request) (*http.Response, error) {
			most.Store(max(most.Load(), under.Add(1)))
			defer under.Add(-1)
			time.Sleep(10 * time.Millisecond) // on the fake clock
			return goodAnswer(r)
		})
		f.Batch = false
		began := time.Now()
		got := c.Scores(t.Context(), f, questionOf(3*maxConnections))
		if took := time.Since(began); took != 30*time.Millisecond || got.Trouble != "" ||
			most.Load() != maxConnections {
			t.Errorf("%+v after %s with %d calls together", got, took, most.Load())
		}
	})
}

func TestEqualQuestionsAtTheSameTimeAreAskedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const askers = 30
		var calls atomic.Int64
		c, f := over(t, func(r *http.Request) (*http.Response, error) {
			calls.Add(1)
			time.Sleep(10 * time.Millisecond)
			return goodAnswer(r)
		})
		f.Cache = 0 // they share the call, not the cache
		var group sync.WaitGroup
		answers := make([]decide.Scores, askers)
		for i := range askers {
			group.Go(func() { answers[i] = c.Scores(t.Context(), f, questionOf(2)) })
		}
		group.Wait()
		for i, a := range answers {
			if diff := cmp.Diff(decide.Scores{Values: []float64{0, 0.1}}, a); diff != "" {
				t.Errorf("caller %d: %s", i, diff)
			}
		}
		if calls.Load() != 1 {
			t.Errorf("%d calls", calls.Load())
		}
	})
}

func TestACallerThatGivesUpAffectsNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		c, f := over(t, func(r *http.Request) (*http.Response, error) {
			if calls.Add(1) == 1 {
				return noAnswer(r)
			}
			return goodAnswer(r)
		})
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			if got := c.Scores(ctx, f, questionOf(1)); got.Trouble != decide.FunctionTimeout {
				t.Errorf("the caller that gave up: %+v", got)
			}
		})
		synctest.Wait() // its call is running
		group.Go(func() {
			if got := c.Scores(t.Context(), f, questionOf(1)); got.Trouble != "" {
				t.Errorf("the caller with the same question: %+v", got)
			}
		})
		synctest.Wait() // it waits for that call
		cancel()
		group.Wait()
		if calls.Load() != 2 {
			t.Errorf("%d calls", calls.Load())
		}
	})
}

func TestWhoOnlyFollowsMayGiveUpToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, f := over(t, noAnswer)
		var group sync.WaitGroup
		group.Go(func() { c.Scores(t.Context(), f, questionOf(1)) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), f.Deadline/4)
		defer cancel()
		began := time.Now()
		got := c.Scores(ctx, f, questionOf(1))
		if took := time.Since(began); took != f.Deadline/4 ||
			got.Trouble != decide.FunctionTimeout {
			t.Errorf("%+v after %s", got, took)
		}
		group.Wait()
	})
}

// TestADeadFunctionCostsOneDeadlineASecond asks a thousand different questions one after another
// for ten seconds.
func TestADeadFunctionCostsOneDeadlineASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls int
		c, f := over(t, func(r *http.Request) (*http.Response, error) {
			calls++
			return noAnswer(r)
		})
		began := time.Now()
		var waited time.Duration
		for i := 0; time.Since(began) < 10*time.Second; i++ {
			q := questionOf(1)
			q.Candidates[0].Price = float64(i)
			asked := time.Now()
			if got := c.Scores(t.Context(), f, q); got.Trouble != decide.FunctionTimeout {
				t.Fatalf("got %+v, want Trouble %v", got, decide.FunctionTimeout)
			}
			waited += time.Since(asked)
			time.Sleep(10 * time.Millisecond)
		}
		if want := 9; calls > want || waited > time.Duration(want)*f.Deadline {
			t.Errorf("%d calls took %s of ten seconds", calls, waited)
		}
		c.public.Transport = fakeNetwork(goodAnswer)
		time.Sleep(pauseTime)
		if got := c.Scores(t.Context(), f, questionOf(1)); got.Trouble != "" {
			t.Errorf("after it has recovered: %+v", got)
		}
	})
}

func TestAfterTheRestOneQuestionTriesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		c, f := over(t, func(r *http.Request) (*http.Response, error) {
			calls.Add(1)
			return noAnswer(r)
		})
		f.BatchSize = 100 // one call for each question
		c.Scores(t.Context(), f, questionOf(1))
		time.Sleep(pauseTime)
		var group sync.WaitGroup
		for i := range 50 {
			group.Go(func() { c.Scores(t.Context(), f, questionOf(i+2)) })
		}
		group.Wait()
		if calls.Load() != 2 {
			t.Errorf("%d calls, want the first and one trial", calls.Load())
		}
	})
}

// TestATrialThatIsGivenUpLetsAnotherTry: the caller that makes the trial call gives up.
func TestATrialThatIsGivenUpLetsAnotherTry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, f := over(t, noAnswer)
		c.Scores(t.Context(), f, questionOf(1))
		time.Sleep(pauseTime)
		ctx, cancel := context.WithTimeout(t.Context(), f.Deadline/4)
		defer cancel()
		c.Scores(ctx, f, questionOf(1))
		c.public.Transport = fakeNetwork(goodAnswer)
		if got := c.Scores(t.Context(), f, questionOf(1)); got.Trouble != "" {
			t.Errorf("got %+v, want Trouble %v", got, "")
		}
	})
}

// TestACallerWithoutTimeSaysNothingAboutTheFunction: a caller gives up a moment before the
// function's own deadline, as the last questions of a batch with no more time do.
func TestACallerWithoutTimeSaysNothingAboutTheFunction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, f := over(t, noAnswer)
		ctx, cancel := context.WithTimeout(t.Context(), f.Deadline-time.Millisecond)
		defer cancel()
		if got := c.Scores(ctx, f, questionOf(1)); got.Trouble != decide.FunctionTimeout {
			t.Errorf("got %+v, want Trouble %v", got, decide.FunctionTimeout)
		}
		c.public.Transport = fakeNetwork(goodAnswer)
		for _, candidates := range []int{1, 2} {
			if got := c.Scores(t.Context(), f, questionOf(candidates)); got.Trouble != "" {
				t.Errorf("the next question, about %d: %+v", candidates, got)
			}
		}
	})
}

func TestAnAnswerHoldsForItsTimeAndNoLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls int
		c, f := over(t, func(r *http.Request) (*http.Response, error) {
			calls++
			return goodAnswer(r)
		})
		for _, step := range []struct {
			pause time.Duration
			want  int
		}{{0, 1}, {f.Cache - 1, 1}, {1, 2}, {f.Cache, 3}} {
			time.Sleep(step.pause)
			c.Scores(t.Context(), f, questionOf(1))
			if calls != step.want {
				t.Errorf("%d calls %s later, want %d", calls, step.pause, step.want)
			}
		}
		f.Cache = 0
		f.Token = "another function"
		c.Scores(t.Context(), f, questionOf(1))
		c.Scores(t.Context(), f, questionOf(1))
		if calls != 5 {
			t.Errorf("%d calls; cache 0 keeps nothing", calls)
		}
	})
}

func TestAFailedCallCutsOffTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		c, f := over(t, func(r *http.Request) (*http.Response, error) {
			if calls.Add(1) < 8 {
				return noAnswer(r)
			}
			return &http.Response{
				StatusCode: http.StatusInternalServerError,
				Body:       http.NoBody,
			}, nil
		})
		f.Batch = false
		began := time.Now()
		got := c.Scores(t.Context(), f, questionOf(40))
		if took := time.Since(began); took != 0 || got.Trouble != decide.FunctionStatus {
			t.Errorf("%+v after %s", got, took)
		}
	})
}
