package pipeline

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/provider"
)

// timedChannel records when submits arrive, and answers after a while.
type timedChannel struct {
	takes time.Duration

	mu   sync.Mutex
	at   []time.Time   // guarded by mu
	ids  []string      // guarded by mu
	slow time.Duration // guarded by mu: the pause that it asks for, unless 0
}

func (c *timedChannel) Send(ctx context.Context, s provider.Submission) provider.Result {
	c.mu.Lock()
	now := time.Now()
	if s.TooLate(now) { // the process was not scheduled for a while
		c.mu.Unlock()
		return provider.Result{Outcome: provider.Refused, Code: provider.Late}
	}
	c.at, c.ids = append(c.at, now), append(c.ids, s.ID)
	slow := c.slow
	c.mu.Unlock()
	select {
	case <-time.After(c.takes):
	case <-ctx.Done():
		return provider.Result{Outcome: provider.Unknown, Code: "timeout"}
	}
	if slow > 0 {
		return provider.Result{Outcome: provider.Throttled, RetryAfter: slow}
	}
	return provider.Result{Outcome: provider.Accepted}
}

// submits returns the submits so far, in the order of their arrival.
func (c *timedChannel) submits() (at []time.Time, ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.at), slices.Clone(c.ids)
}

func (c *timedChannel) slowDown(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow = by
}

func (*timedChannel) Ready() (ok bool, why string) { return true, "" }
func (*timedChannel) Close(context.Context) error  { return nil }

// testWorker is a process's worker for one channel. The test controls its ledger and its clock.
type testWorker struct {
	*worker
	answers chan answered
}

// newTestWorker starts a worker in a bubble; it is closed at the end of the test.
func newTestWorker(t *testing.T, channel provider.Channel, concurrency int) *testWorker {
	t.Helper()
	cfg := Config{
		MaxUnsettled: 2000, SendTimeout: 10 * time.Second, DeadAfter: time.Hour,
		Metrics: NewMetrics(prometheus.NewRegistry()),
	}
	answers := make(chan answered, cfg.MaxUnsettled)
	w := newWorker(&decide.Channel{Channel: config.Channel{Name: "a"}, Concurrency: concurrency},
		channel, &cfg, newHeartbeat(cfg.DeadAfter), &load{},
		func(a answered) { answers <- a })
	l := &testWorker{worker: w, answers: answers}
	t.Cleanup(func() {
		if !l.closed() {
			l.end(t)
		}
	})
	return l
}

func (l *testWorker) closed() bool { return l.stop.Err() != nil }

// end closes the worker.
func (l *testWorker) end(t *testing.T) {
	t.Helper()
	if err := l.close(context.Background()); err != nil {
		t.Error(err)
	}
}

// codes returns the codes of all answers so far, with their number; "" is an answer of the channel.
func (l *testWorker) codes() map[string]int {
	out := map[string]int{}
	for {
		select {
		case a := <-l.answers:
			if decide.Unsent(&a.result) {
				out[a.result.Code]++
			} else {
				out[""]++
			}
		default:
			return out
		}
	}
}

// limiter assigns release times as a claim does, from a counter that all processes share.
type limiter struct {
	counter admission.Counter
	latency time.Duration // of commits
}

func perSecond(n int64) *limiter {
	return &limiter{counter: admission.Counter{Limit: admission.Limit{
		Window: admission.Second,
		Max:    n,
	}, Max: n}, latency: 5 * time.Millisecond}
}

// claim assigns release times to up to n attempts; the others wait.
func (l *limiter) claim(n int) []*openAttempt {
	now := time.Now()
	m := admission.Moment{Now: now, Earliest: now.Add(l.latency), Zone: time.UTC}
	m.Roll(&l.counter)
	accounts := []admission.Account{{Counter: &l.counter, Rate: 1}}
	var out []*openAttempt
	for range n {
		need := admission.Need{Segments: 1}
		at, exclusion := admission.Fit(&m, accounts, &need)
		if exclusion != nil {
			break
		}
		admission.Take(&m, accounts, &need, at)
		out = append(out, &openAttempt{
			Attempt: &decide.Attempt{Segments: 1}, claimed: now,
			leave: at.At, latest: at.Latest,
		})
	}
	return out
}

// TestSubmitsAreSpreadEvenlyOverTheSecondWhoeverSends: two processes alternately claim from one
// counter as much as it has, for five seconds.
func TestSubmitsAreSpreadEvenlyOverTheSecondWhoeverSends(t *testing.T) {
	t.Parallel()
	for _, rate := range []int64{10, 100, 1000, 5000} {
		synctest.Test(t, func(t *testing.T) {
			channel, shared := &timedChannel{takes: 30 * time.Millisecond}, perSecond(rate)
			processes := []*testWorker{newTestWorker(t, channel, 200), newTestWorker(t, channel, 200)}
			began, late := time.Now(), 0
			for i := range 600 { // the last second gets what is free
				for _, a := range shared.claim(200) {
					processes[i%2].put(a)
				}
				time.Sleep(10 * time.Millisecond)
				late += processes[i%2].codes()[decide.CodeLate]
			}
			time.Sleep(time.Second)
			if late > 0 {
				t.Errorf("%d a second: got %d late", rate, late)
			}
			at, _ := channel.submits()
			inSeconds(t, at, began, rate)
			// Ten milliseconds hold their even part, one more at either end, and those of the tick that ends
			// in them.
			most := int(rate/100*20/19) + 1 + int(rate/1000)
			if got := densest(at, 10*time.Millisecond); got > most {
				t.Errorf("%d a second: %d left within 10 ms, want at most %d", rate, got, most)
			}
		})
	}
}

// inSeconds checks that each of the first five calendar seconds had exactly want submits: not one
// more, and no slot unused while messages waited.
func inSeconds(t *testing.T, at []time.Time, began time.Time, want int64) {
	t.Helper()
	in := map[time.Time]int64{}
	for _, a := range at {
		in[a.Truncate(time.Second)]++
	}
	end := began.Add(5 * time.Second)
	for second := began.Truncate(time.Second); second.Before(end); second = second.Add(
		time.Second) {
		if in[second] != want {
			t.Errorf("%d a second: %d submits in second %d", want, in[second],
				second.Sub(began)/time.Second)
		}
	}
}

// densest returns the largest number of submits within any interval of a length.
func densest(at []time.Time, span time.Duration) int {
	slices.SortFunc(at, time.Time.Compare)
	most, from := 0, 0
	for to := range at {
		for at[to].Sub(at[from]) >= span {
			from++
		}
		most = max(most, to-from+1)
	}
	return most
}

func TestNoAttemptLeavesBeforeItsReleaseTimeNorAfterTheLatest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		channel, now := &timedChannel{takes: time.Millisecond}, time.Now()
		w := newTestWorker(t, channel, 1)
		for i, release := range []admission.Release{
			{At: now.Add(300 * time.Millisecond), Latest: now.Add(time.Second)},
			{At: now.Add(100 * time.Millisecond), Latest: now.Add(time.Second)},
			{At: now.Add(200 * time.Millisecond)},
			{},                              // at once
			{Latest: now},                   // too late from the beginning
			{Latest: now.Add(time.Hour)},    // at once as well, behind the fourth
			{At: now.Add(11 * time.Second)}, // beyond the send deadline
		} {
			id := string(rune('1' + i))
			w.put(&openAttempt{
				Attempt: &decide.Attempt{Submission: provider.Submission{ID: id}},
				claimed: now, leave: release.At, latest: release.Latest,
			})
		}
		time.Sleep(12 * time.Second)
		got := map[string]time.Duration{}
		at, ids := channel.submits()
		for i, id := range ids {
			got[id] = at[i].Sub(now)
		}
		want := map[string]time.Duration{
			"1": 300 * time.Millisecond, "2": 100 * time.Millisecond, "3": 200 * time.Millisecond,
			"4": 0, "6": time.Millisecond,
		}
		for id, at := range want {
			if left, sent := got[id]; !sent || left < at || left > at+3*time.Millisecond {
				t.Errorf("attempt %s left after %s (%v), want %s", id, left, sent, at)
			}
		}
		if codes := w.codes(); len(got) != len(want) || codes[decide.CodeLate] != 1 ||
			codes[decide.CodeStale] != 1 || codes[""] != 5 {
			t.Errorf("%d left; %v", len(got), codes)
		}
	})
}

// TestASleepingCampaignHoldsNoSender: all attempts of the only sender have later release times. An
// otp message that comes then leaves at once, and one that waits for the sender beside others is
// sent first.
func TestASleepingCampaignHoldsNoSender(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		channel, now := &timedChannel{takes: 10 * time.Millisecond}, time.Now()
		w := newTestWorker(t, channel, 1)
		for i := range 5 {
			w.put(&openAttempt{
				Attempt: &decide.Attempt{Submission: provider.Submission{ID: "bulk"}},
				claimed: now, leave: now.Add(time.Duration(100+i) * time.Millisecond),
			})
		}
		synctest.Wait()
		w.put(&openAttempt{Attempt: &decide.Attempt{
			FirstLane:  true,
			Submission: provider.Submission{ID: "code"},
		}, claimed: now})
		w.put(&openAttempt{
			Attempt: &decide.Attempt{
				FirstLane:  true,
				Submission: provider.Submission{ID: "code"},
			}, claimed: now,
			leave: now.Add(104 * time.Millisecond),
		})
		time.Sleep(time.Second)
		at, ids := channel.submits()
		if want := []string{
			"code", "bulk", "code", "bulk", "bulk", "bulk",
			"bulk",
		}; !slices.Equal(ids, want) {
			t.Errorf("left as %v", ids)
		}
		if first := at[0].Sub(now); first != 0 {
			t.Errorf("the otp message left after %s", first)
		}
	})
}

// TestWhatNoSenderComesForGoesBackInTime: the senders wait for answers. Attempts that are due are
// returned when their time is over, and until then the channel is busy.
func TestWhatNoSenderComesForGoesBackInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, now := newTestWorker(t, &timedChannel{takes: 5 * time.Second}, 2), time.Now()
		for i := range 5 {
			w.put(&openAttempt{
				Attempt: &decide.Attempt{}, claimed: now,
				latest: now.Add(500 * time.Millisecond),
			})
			synctest.Wait()
			want := ""
			if i >= 3 { // two with the senders and two that wait for them
				want = decide.Busy
			}
			if got := w.unready(time.Now()); got != want {
				t.Errorf("with %d flights: ready %q, want %q", i+1, got, want)
			}
		}
		time.Sleep(520 * time.Millisecond)
		if codes := w.codes(); codes[decide.CodeLate] != 3 || len(codes) != 1 {
			t.Errorf("got returned codes %v", codes)
		}
		if got := w.unready(time.Now()); got != "" {
			t.Errorf("ready %q with an empty queue", got)
		}
	})
}

// TestAQueueThatIsSoonSentDoesNotMakeAChannelBusy: as long as answers come, as much may wait for a
// sender as leaves in time.
func TestAQueueThatIsSoonSentDoesNotMakeAChannelBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		channel := &timedChannel{takes: time.Millisecond}
		w := newTestWorker(t, channel, 2)
		put := func(n int) {
			now := time.Now()
			for range n {
				w.put(&openAttempt{
					Attempt: &decide.Attempt{}, claimed: now, latest: now.Add(spareTime + time.Millisecond),
				})
			}
			synctest.Wait()
		}
		for range 16 * answersRecalled { // until the average is the answer time
			put(2)
			time.Sleep(channel.takes)
		}
		put(2 + 19) // two with the senders
		if got := w.unready(time.Now()); got != "" {
			t.Errorf("ready %q with a queue of 9.5 ms", got)
		}
		put(1)
		if got := w.unready(time.Now()); got != decide.Busy {
			t.Errorf("ready %q with a queue of 10 ms", got)
		}
		time.Sleep(200 * time.Millisecond)
		if codes := w.codes(); len(codes) != 1 || codes[""] == 0 {
			t.Errorf("got returned codes %v", codes)
		}
		put(4)
		if got := w.unready(time.Now()); got != decide.Busy {
			t.Errorf("ready %q when no answer has come for a while", got)
		}
		time.Sleep(time.Second)
	})
}

// TestAQueueWithTimeDoesNotMakeAChannelBusy: messages of a channel without narrow limits may wait
// for their turn.
func TestAQueueWithTimeDoesNotMakeAChannelBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, now := newTestWorker(t, &timedChannel{takes: time.Second}, 2), time.Now()
		for range 5 {
			w.put(&openAttempt{
				Attempt: &decide.Attempt{}, claimed: now,
				latest: now.Add(time.Hour),
			})
			w.put(&openAttempt{Attempt: &decide.Attempt{}, claimed: now})
		}
		synctest.Wait()
		if got := w.unready(time.Now()); got != "" {
			t.Errorf("ready %q", got)
		}
		time.Sleep(6 * time.Second)
		if codes := w.codes(); codes[""] != 10 {
			t.Errorf("got returned codes %v", codes)
		}
	})
}

// TestAThrottledChannelSendsNothingDuringThePause: attempts whose time comes in the pause are
// returned at once, later ones leave.
func TestAThrottledChannelSendsNothingDuringThePause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		channel, now := &timedChannel{takes: 10 * time.Millisecond, slow: 300 * time.Millisecond},
			time.Now()
		w := newTestWorker(t, channel, 1)
		for i := range 10 {
			w.put(&openAttempt{
				Attempt: &decide.Attempt{}, claimed: now,
				leave: now.Add(time.Duration(i) * 50 * time.Millisecond),
			})
		}
		time.Sleep(20 * time.Millisecond)
		if got := w.unready(time.Now()); got != decide.Throttled {
			t.Errorf("ready %q after the provider throttled", got)
		}
		channel.slowDown(0)
		time.Sleep(time.Second)
		var left []time.Duration
		all, _ := channel.submits()
		for _, at := range all {
			left = append(left, at.Sub(now).Round(10*time.Millisecond))
		}
		want := []time.Duration{
			0, 350 * time.Millisecond, 400 * time.Millisecond,
			450 * time.Millisecond,
		}
		if codes := w.codes(); !slices.Equal(left, want) || codes[decide.CodeLate] != 6 ||
			codes[""] != 4 {
			t.Errorf("left at %v, returned %v", left, codes)
		}
	})
}

// TestAProcessThatMayCountAsDeadSendsNothing: it stops a second before the others' timeout.
func TestAProcessThatMayCountAsDeadSendsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		channel, now := &timedChannel{}, time.Now()
		w := newTestWorker(t, channel, 1)
		w.heartbeat.deadAfter = 6 * time.Second
		w.heartbeat.beat(beatAt(now.Add(time.Second)))
		for _, at := range []time.Duration{
			0, 5999 * time.Millisecond, 6001 * time.Millisecond,
			7 * time.Second, 8 * time.Second,
		} {
			w.put(&openAttempt{Attempt: &decide.Attempt{}, claimed: now, leave: now.Add(at)})
		}
		time.Sleep(7500 * time.Millisecond)
		if got := w.unready(time.Now()); got != decide.Busy {
			t.Errorf("ready %q without a heartbeat", got)
		}
		w.heartbeat.beat(beatAt(time.Now()))
		time.Sleep(time.Second)
		if codes := w.codes(); codes[""] != 2 || codes[decide.CodeLate] != 3 {
			t.Errorf("got returned codes %v", codes)
		}
		if got := w.unready(time.Now()); got != "" {
			t.Errorf("ready %q after a heartbeat", got)
		}
	})
}

// TestEverythingIsReturnedWhenAWorkerIsClosed: submitted attempts with their answers, all others
// unsent and at once.
func TestEverythingIsReturnedWhenAWorkerIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, now := newTestWorker(t, &timedChannel{takes: 2 * time.Second}, 2), time.Now()
		for i := range 20 {
			a := &openAttempt{Attempt: &decide.Attempt{FirstLane: i%3 == 0}, claimed: now}
			if i%2 == 0 {
				a.leave = now.Add(time.Duration(i) * time.Second)
			}
			w.put(a)
		}
		synctest.Wait()
		closed := make(chan struct{})
		go func() { w.end(t); close(closed) }()
		synctest.Wait()
		if codes := w.codes(); codes[decide.CodeStopping] != 18 || len(codes) != 1 {
			t.Errorf("returned at once: %v", codes)
		}
		<-closed
		if codes := w.codes(); codes[""] != 2 || len(codes) != 1 ||
			time.Since(now) != 2*time.Second {
			t.Errorf("returned after %s: %v", time.Since(now), codes)
		}
	})
}

// TestANewRoutingKeepsTheConnectionAndWhatItLearned: the pause of the provider continues, and no
// channel is closed.
func TestANewRoutingKeepsTheConnectionAndWhatItLearned(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	before := p.worker("a")
	before.applyThrottle(&provider.Result{Outcome: provider.Throttled, RetryAfter: time.Minute})
	next := *p.routing
	next.Channels = slices.Clone(p.routing.Channels)
	next.Channels[0].Limits = []admission.Limit{{Window: admission.Second, Max: 50}}
	if err := p.Apply(&next, nil); err != nil {
		t.Fatal(err)
	}
	w := p.worker("a")
	if w != before || w.unready(time.Now()) != decide.Throttled || p.channels["a"].closed {
		t.Errorf("the worker was replaced or lost its pause: ready %q", w.unready(time.Now()))
	}
}

func (p *pipeline) worker(name string) *worker {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.workers[name]
}

func TestARoutingWithAChannelThatHasNoConnectionStartsNothing(t *testing.T) {
	t.Parallel()
	d, err := New(Config{
		Ledger: setup(t, nil).ledger, Keys: testKeys, MaxUnsettled: 10, SendTimeout: time.Second,
		DeadAfter: time.Minute,
		Metrics:   NewMetrics(prometheus.NewRegistry()), Trouble: func(string, error) {},
		Reload: func(context.Context) error {
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := testRouting(t)
	if err := d.Apply(r,
		map[string]provider.Channel{"a": &scriptedChannel{answer: accepts}}); err == nil {
		t.Error("a routing without connections was applied")
	}
	if err := d.Stop(t.Context()); err != nil { // TestMain reports senders that still run
		t.Error(err)
	}
}

// BenchmarkWorker measures a hundred attempts in a worker, with their release times and answers.
func BenchmarkWorker(b *testing.B) {
	cfg := Config{
		MaxUnsettled: 500, SendTimeout: time.Minute, DeadAfter: time.Hour,
		Metrics: NewMetrics(prometheus.NewRegistry()),
	}
	answers := make(chan answered, cfg.MaxUnsettled)
	w := newWorker(&decide.Channel{Channel: config.Channel{Name: "a"}, Concurrency: 200},
		&scriptedChannel{answer: accepts}, &cfg, newHeartbeat(cfg.DeadAfter), &load{},
		func(a answered) { answers <- a })
	defer func() { _ = w.close(context.Background()) }()
	attempts := make([]*openAttempt, 100) // of one claim
	for i := range attempts {
		attempts[i] = &openAttempt{Attempt: &decide.Attempt{Submission: provider.Submission{
			ID: "m", Attempt: 2,
		}}}
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, a := range attempts {
			a.claimed = time.Now()
		}
		w.put(attempts...)
		for range attempts {
			<-answers
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N*len(attempts)), "ns/attempt")
}
