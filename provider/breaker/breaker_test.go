package breaker_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/breaker"
)

func TestMain(m *testing.M) {
	tier.Parallel(8)
	goleak.VerifyTestMain(m)
}

// scriptedChannel gives the answers of its script and counts the submissions.
type scriptedChannel struct {
	answer func(ctx context.Context) provider.Result
	sends  atomic.Int64
	closes atomic.Int64
	down   atomic.Bool
}

func (c *scriptedChannel) Send(ctx context.Context, _ provider.Submission) provider.Result {
	c.sends.Add(1)
	return c.answer(ctx)
}

func (c *scriptedChannel) Ready() (bool, string) {
	if c.down.Load() {
		return false, "connecting"
	}
	return true, ""
}

func (c *scriptedChannel) Close(context.Context) error {
	c.closes.Add(1)
	return errors.New("closed badly")
}

// outcomes returns a channel whose answer can be changed between sends.
func outcomes(o *atomic.Int32) *scriptedChannel {
	return &scriptedChannel{answer: func(context.Context) provider.Result {
		return provider.Result{Outcome: provider.Outcome(o.Load())}
	}}
}

// sendAll sends one message per outcome and returns the codes.
func sendAll(t *testing.T, b *breaker.Breaker, o *atomic.Int32, script ...provider.Outcome) {
	t.Helper()
	for i, want := range script {
		o.Store(int32(want))
		if r := b.Send(t.Context(), provider.Submission{ID: "m"}); r.Outcome != want ||
			r.Code != "" {
			t.Fatalf("send %d = %v %q, want %v from the channel", i, r.Outcome, r.Code, want)
		}
	}
}

func repeat(n int, script ...provider.Outcome) []provider.Outcome {
	var out []provider.Outcome
	for range n {
		out = append(out, script...)
	}
	return out
}

func TestOnlyUnknownAndRefusedOpenTheBreaker(t *testing.T) {
	t.Parallel()
	const (
		unknown, accepted, rejected = provider.Unknown, provider.Accepted, provider.Rejected
		refused, throttled          = provider.Refused, provider.Throttled
	)
	for _, c := range []struct {
		name   string
		script []provider.Outcome
		want   breaker.State
	}{
		{"four refusals are not enough", repeat(4, refused), breaker.Closed},
		{"five refusals in a row", repeat(5, refused), breaker.Open},
		{"five without an answer in a row", repeat(5, unknown), breaker.Open},
		{
			"a mixture in a row",
			[]provider.Outcome{refused, unknown, refused, unknown, refused},
			breaker.Open,
		},
		{"throttling never", repeat(100, throttled), breaker.Closed},
		{"rejections never", repeat(100, rejected), breaker.Closed},
		{
			"a throttled one does not end a row",
			[]provider.Outcome{refused, refused, refused, refused, throttled, refused},
			breaker.Open,
		},
		{
			"a rejection ends a row",
			[]provider.Outcome{refused, refused, refused, refused, rejected, refused},
			breaker.Closed,
		},
		{"half of eighteen is too small a sample", repeat(9, refused, accepted), breaker.Closed},
		{
			"half of twenty", append([]provider.Outcome{accepted},
				append(repeat(9, refused, accepted), refused)...), breaker.Open,
		},
		{
			"throttled ones do not fill the sample",
			append(repeat(9, refused, accepted), repeat(50, throttled)...), breaker.Closed,
		},
		{"a third of thirty", repeat(10, refused, accepted, accepted), breaker.Closed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var o atomic.Int32
			b := breaker.New(outcomes(&o), breaker.Config{Name: "a"})
			sendAll(t, b, &o, c.script...)
			if got := b.State(); got != c.want {
				t.Errorf("state %v, want %v", got, c.want)
			}
		})
	}
}

// TestWhatSaysNothingAboutTheChannelIsNoFailure: a submission that is too late, that the channel
// cannot write, or that the vendor refuses as unfit neither opens the breaker nor ends a series of
// failures. The next submission is then the probe.
func TestWhatSaysNothingAboutTheChannelIsNoFailure(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]provider.Result{
		"late": {Code: provider.Late}, "expired": {Code: provider.DeadlinePassed},
		"uncomposed": {Code: provider.Uncomposed}, "unfit": {Code: "sender", Unfit: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r.Outcome = provider.Refused
			checkNotCounted(t, r)
		})
	}
}

// checkNotCounted checks that a result neither opens the breaker nor ends a series of failures.
func checkNotCounted(t *testing.T, uncounted provider.Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var r provider.Result
		ch := &scriptedChannel{answer: func(context.Context) provider.Result { return r }}
		b := breaker.New(ch, breaker.Config{Name: "a", Failures: 2, OpenFor: time.Second})
		send := func(answer provider.Result, want breaker.State) {
			t.Helper()
			r = answer
			if got := b.Send(t.Context(), provider.Submission{ID: "m"}); !cmp.Equal(got, answer) {
				t.Fatalf("passed on as %+v", got)
			}
			if got := b.State(); got != want {
				t.Fatalf("%+v leaves it %v, want %v", answer, got, want)
			}
		}
		down, up := provider.Result{Outcome: provider.Refused, Code: "down"},
			provider.Result{Outcome: provider.Accepted}
		for range 20 {
			send(uncounted, breaker.Closed)
		}
		send(down, breaker.Closed)
		send(uncounted, breaker.Closed)
		send(down, breaker.Open)
		for _, end := range []provider.Result{down, up} {
			time.Sleep(time.Second + 1)
			for range 20 { // each takes the slot of the probe and frees it
				send(uncounted, breaker.HalfOpen)
				if ok, why := b.Ready(); !ok || why != provider.Probing {
					t.Fatalf("ready %v %q, want a probe to be allowed", ok, why)
				}
			}
			send(end, map[provider.Outcome]breaker.State{
				provider.Refused: breaker.Open, provider.Accepted: breaker.Closed,
			}[end.Outcome])
		}
	})
}

func TestOpenBreakerRefusesBeforeAnyByte(t *testing.T) {
	t.Parallel()
	var o atomic.Int32
	ch := outcomes(&o)
	b := breaker.New(ch, breaker.Config{Name: "a", Failures: 1})
	sendAll(t, b, &o, provider.Unknown)
	r := b.Send(t.Context(), provider.Submission{ID: "m"})
	if r.Outcome != provider.Refused || r.Code != "breaker_open" ||
		!errors.Is(r.Err, breaker.ErrOpen) {
		t.Errorf("got %+v, want Refused breaker_open", r)
	}
	if n := ch.sends.Load(); n != 1 {
		t.Errorf("%d sends reached the channel, want the first only", n)
	}
	if ok, why := b.Ready(); ok || why != "breaker_open" {
		t.Errorf("Ready = %v %q, want false breaker_open", ok, why)
	}
}

func TestBreakerProbesAfterOpenForAndClosesOnSuccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o atomic.Int32
		var changes []string
		b := breaker.New(outcomes(&o), breaker.Config{
			Name: "a", Failures: 2, OpenFor: 3 * time.Second,
			OnChange: func(c breaker.Change) {
				changes = append(changes, c.From.String()+">"+c.To.String())
			},
		})
		sendAll(t, b, &o, provider.Refused, provider.Refused)
		time.Sleep(3 * time.Second)
		if got := b.State(); got != breaker.Open {
			t.Errorf("after exactly OpenFor: %v, want open", got)
		}
		time.Sleep(time.Nanosecond)
		if ok, _ := b.Ready(); !ok || b.State() != breaker.HalfOpen {
			t.Errorf("after OpenFor: ready %v, state %v; want true, half_open", ok, b.State())
		}
		sendAll(t, b, &o, provider.Refused) // the probe fails
		if got := b.State(); got != breaker.Open {
			t.Errorf("after a failed probe: %v, want open", got)
		}
		time.Sleep(3*time.Second + 1)
		sendAll(t, b, &o, provider.Throttled) // does not count: the next one is the probe
		if got := b.State(); got != breaker.HalfOpen {
			t.Errorf("after a throttled probe: %v, want half_open", got)
		}
		sendAll(t, b, &o, provider.Accepted, provider.Refused)
		if got := b.State(); got != breaker.Closed {
			t.Errorf("after a good probe and one failure: %v, want closed", got)
		}
		want := []string{
			"closed>open", "open>half_open", "half_open>open", "open>half_open", "half_open>closed",
		}
		if diff := cmp.Diff(want, changes); diff != "" {
			t.Error(diff)
		}
	})
}

func TestHalfOpenLetsOnlyTheAllowedProbesThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan provider.Result)
		ch := &scriptedChannel{answer: func(context.Context) provider.Result { return <-answer }}
		b := breaker.New(
			ch, breaker.Config{Name: "a", Failures: 1, OpenFor: time.Second, HalfOpenMax: 2})
		var wg sync.WaitGroup
		results := make(chan provider.Result, 10)
		send := func() { wg.Go(func() { results <- b.Send(t.Context(), provider.Submission{}) }) }
		send()
		answer <- provider.Result{Outcome: provider.Refused}
		wg.Wait()
		<-results
		time.Sleep(time.Second + 1)

		for range 10 {
			send()
		}
		synctest.Wait()
		if ok, why := b.Ready(); ok || why != breaker.CodeOpen {
			t.Errorf("with both probes in flight Ready = %v %q", ok, why)
		}
		if n := ch.sends.Load(); n != 3 {
			t.Errorf("%d sends reached the channel, want 1 + 2 probes", n)
		}
		answer <- provider.Result{Outcome: provider.Accepted}
		answer <- provider.Result{Outcome: provider.Accepted}
		wg.Wait()
		if got := b.State(); got != breaker.Closed {
			t.Errorf("after two good probes: %v, want closed", got)
		}
		held := 0
		for range 10 {
			if r := <-results; r.Code == breaker.CodeOpen {
				held++
			}
		}
		if held != 8 {
			t.Errorf("%d were refused, want 8", held)
		}
	})
}

func TestOldFailuresAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o atomic.Int32
		b := breaker.New(outcomes(&o), breaker.Config{Name: "a", Window: 10 * time.Second})
		sendAll(t, b, &o, repeat(9, provider.Refused, provider.Accepted)...)
		time.Sleep(11 * time.Second)
		sendAll(t, b, &o, provider.Accepted, provider.Refused)
		if got := b.State(); got != breaker.Closed {
			t.Errorf("state %v, want closed: the failures are older than the window", got)
		}
	})
}

func TestTheWindowRollsAndDoesNotStartAfresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o atomic.Int32
		b := breaker.New(outcomes(&o), breaker.Config{Name: "a", Window: 10 * time.Second})
		time.Sleep(9 * time.Second)
		sendAll(t, b, &o, repeat(9, provider.Refused, provider.Accepted)...)
		time.Sleep(2 * time.Second)
		sendAll(t, b, &o, provider.Accepted, provider.Refused)
		if got := b.State(); got != breaker.Open {
			t.Errorf("state %v, want open: the failures are two seconds old", got)
		}
	})
}

func TestEndedContextReachesNeitherChannelNorCounts(t *testing.T) {
	t.Parallel()
	var o atomic.Int32
	ch := outcomes(&o)
	b := breaker.New(ch, breaker.Config{Name: "a", Failures: 1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := b.Send(ctx, provider.Submission{})
	if r.Outcome != provider.Refused || r.Code != breaker.CodeEnded ||
		!errors.Is(r.Err, context.Canceled) {
		t.Errorf("got %+v, want Refused context_ended", r)
	}
	if ch.sends.Load() != 0 || b.State() != breaker.Closed {
		t.Errorf("%d sends, state %v; want none, closed", ch.sends.Load(), b.State())
	}
}

func TestOurOwnDeadlinesDoNotCountAgainstTheChannel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		outcome provider.Outcome
		cancel  bool // we cancel; otherwise the deadline passes
		want    breaker.State
	}{
		{"cancelled without an answer", provider.Unknown, true, breaker.Closed},
		{"cancelled before a byte", provider.Refused, true, breaker.Closed},
		{"deadline before a byte", provider.Refused, false, breaker.Closed},
		{"deadline without an answer", provider.Unknown, false, breaker.Open},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				b := breaker.New(&scriptedChannel{answer: func(ctx context.Context) provider.Result {
					if c.cancel {
						cancel()
					}
					<-ctx.Done()
					return provider.Result{Outcome: c.outcome}
				}}, breaker.Config{Name: "a", Failures: 1})
				if r := b.Send(ctx, provider.Submission{}); r.Outcome != c.outcome {
					t.Errorf("outcome %v, want the channel's own %v", r.Outcome, c.outcome)
				}
				if got := b.State(); got != c.want {
					t.Errorf("state %v, want %v", got, c.want)
				}
			})
		})
	}
}

func TestReadyAsksTheChannelWhileClosed(t *testing.T) {
	t.Parallel()
	var o atomic.Int32
	ch := outcomes(&o)
	b := breaker.New(ch, breaker.Config{Name: "a"})
	if ok, why := b.Ready(); !ok || why != "" {
		t.Errorf("Ready = %v %q, want true", ok, why)
	}
	ch.down.Store(true)
	if ok, why := b.Ready(); ok || why != "connecting" {
		t.Errorf("Ready = %v %q, want false connecting", ok, why)
	}
}

func TestCloseReachesTheChannelAndItsRefusalsOpenNothing(t *testing.T) {
	t.Parallel()
	var o atomic.Int32
	ch := outcomes(&o)
	b := breaker.New(ch, breaker.Config{Name: "a", Failures: 1})
	if err := b.Close(t.Context()); err == nil || ch.closes.Load() != 1 {
		t.Errorf("Close = %v after %d calls, want the channel's own error after one", err,
			ch.closes.Load())
	}
	sendAll(t, b, &o, repeat(10, provider.Refused, provider.Unknown)...)
	if got := b.State(); got != breaker.Closed {
		t.Errorf("state %v, want closed", got)
	}
}

func TestConcurrentSendsEachReachTheChannelOnce(t *testing.T) {
	t.Parallel()
	var o atomic.Int32
	o.Store(int32(provider.Accepted))
	ch := outcomes(&o)
	b := breaker.New(ch, breaker.Config{Name: "a"})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 500 {
				b.Send(t.Context(), provider.Submission{})
				b.Ready()
			}
		})
	}
	wg.Wait()
	if n := ch.sends.Load(); n != 16*500 {
		t.Errorf("%d sends reached the channel, want %d", n, 16*500)
	}
}

func TestPanicOfTheChannelIsAFailureAndGoesOn(t *testing.T) {
	t.Parallel()
	b := breaker.New(&scriptedChannel{
		answer: func(context.Context) provider.Result { panic("adapter bug") },
	},
		breaker.Config{Name: "a", Failures: 1})
	defer func() {
		if recover() == nil || b.State() != breaker.Open {
			t.Errorf("state %v, want open, and the panic passed on", b.State())
		}
	}()
	b.Send(t.Context(), provider.Submission{})
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]breaker.Config{
		"breaker: name is empty": {},
		"breaker a: percent 101 is above 100": {
			Name: "a", Percent: 101,
		},
		"breaker a: window, open-for and answer-within must not be negative": {
			Name: "a", OpenFor: -1,
		},
		"breaker a: window 5ns is too short": {Name: "a", Window: 5},
	} {
		if err := c.Validate(); err == nil || err.Error() != want {
			t.Errorf("Validate = %v, want %s", err, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("New accepted an invalid Config")
		}
	}()
	breaker.New(nil, breaker.Config{})
}

func TestStateWords(t *testing.T) {
	t.Parallel()
	got := []string{
		breaker.Closed.String(), breaker.HalfOpen.String(), breaker.Open.String(),
		breaker.State(7).String(),
	}
	if diff := cmp.Diff([]string{"closed", "half_open", "open", "State(7)"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestHotPathDoesNotAllocate(t *testing.T) { // AllocsPerRun must not run in parallel with other tests
	for name, r := range map[string]provider.Result{
		"accepted": {Outcome: provider.Accepted}, "unfit": {Outcome: provider.Refused, Unfit: true},
	} {
		b := breaker.New(
			&scriptedChannel{answer: func(context.Context) provider.Result { return r }},
			breaker.Config{Name: "a"})
		ctx, s := t.Context(), provider.Submission{ID: "m"}
		if n := testing.AllocsPerRun(100, func() { b.Send(ctx, s) }); n > 0 {
			t.Errorf("%s: %v allocations a send, want none", name, n)
		}
	}
}

func BenchmarkSend(b *testing.B) {
	var o atomic.Int32
	o.Store(int32(provider.Accepted))
	br := breaker.New(outcomes(&o), breaker.Config{Name: "a"})
	ctx, s := b.Context(), provider.Submission{ID: "m"}
	b.ReportAllocs()
	for b.Loop() {
		br.Send(ctx, s)
	}
}
