package dispatch

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/admission"
	"dispatcher/provider"
)

// departures notes when submits leave, in time since it was made.
type departures struct {
	*pacer
	began time.Time
	wait  sync.WaitGroup

	mu   sync.Mutex
	left []time.Duration // guarded by mu
	late int             // guarded by mu: submits whose turn did not come
}

func newDepartures(perSecond int64, unit admission.Unit) *departures {
	return &departures{pacer: newPacer(perSecond, unit), began: time.Now()}
}

// submit sends n of so many segments, each from a goroutine of its own.
func (d *departures) submit(ctx context.Context, n, segments int, patience time.Duration) {
	for range n {
		d.wait.Go(func() {
			inTurn := d.pacer.wait(ctx, time.Now().Add(patience), segments)
			d.mu.Lock()
			defer d.mu.Unlock()
			if inTurn {
				d.left = append(d.left, time.Since(d.began))
			} else {
				d.late++
			}
		})
	}
	synctest.Wait()
}

func (d *departures) times() []time.Duration {
	d.wait.Wait()
	slices.Sort(d.left)
	return d.left
}

// TestANewLimitIsPacedAtOnce: four submits of two segments, of which one leaves at once and three wait.
func TestANewLimitIsPacedAtOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before, after int64
		unit          admission.Unit
		want          []time.Duration
	}{
		"a higher one": {1, 10, admission.Messages, []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond}},
		"a lower one":  {10, 1, admission.Messages, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}},
		"none":         {1, 0, admission.Messages, []time.Duration{0, 0, 0, 0}},
		"by segments":  {1, 1, admission.Segments, []time.Duration{0, time.Second, 3 * time.Second, 5 * time.Second}},
		"the same one": {1, 1, admission.Messages, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDepartures(tc.before, admission.Messages)
			d.submit(t.Context(), 4, 2, time.Minute)
			d.set(time.Now(), tc.after, tc.unit)
			if got := d.times(); !cmp.Equal(got, tc.want) {
				t.Errorf("%s: left at %v, want %v", name, got, tc.want)
			}
		})
	}
}

func TestASubmitWhoseTurnComesTooLateNeverLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDepartures(1, admission.Messages)
		d.submit(t.Context(), 3, 1, 1500*time.Millisecond)
		if got := d.times(); !cmp.Equal(got, []time.Duration{0, time.Second}) || d.late != 1 || time.Since(d.began) != 1500*time.Millisecond {
			t.Errorf("left at %v, %d did not, after %s", got, d.late, time.Since(d.began))
		}
		ctx, stop := context.WithCancel(t.Context())
		d.next = time.Now().Add(time.Second)
		d.submit(ctx, 1, 1, time.Minute)
		stop()
		if d.wait.Wait(); d.late != 2 {
			t.Error("a stop did not end the wait")
		}
	})
}

// TestANewLimitKeepsTheConnectionAndWhatItLearned: an edited limit paces the living worker. What
// the provider asked for holds on, and no channel is closed.
func TestANewLimitKeepsTheConnectionAndWhatItLearned(t *testing.T) {
	t.Parallel()
	p := setup(t, func(r *Routing) { r.Channels[0].PerSecond = 1 })
	before := p.worker("a")
	before.heed(&provider.Result{Outcome: provider.Throttled, RetryAfter: time.Minute})
	next := *p.routing
	next.Channels = slices.Clone(p.routing.Channels)
	next.Channels[0].PerSecond, next.Channels[0].PaceUnit = 50, admission.Segments
	if err := p.Apply(&next, nil); err != nil {
		t.Fatal(err)
	}
	w := p.worker("a")
	if w != before || w.ready(time.Now()) != throttled || p.channels["a"].closed {
		t.Errorf("the worker was replaced or forgot: ready %q", w.ready(time.Now()))
	}
	now := time.Now()
	first, _ := w.pace.reserve(now, 5)
	if second, _ := w.pace.reserve(now, 1); second.Sub(first) != 100*time.Millisecond {
		t.Errorf("five segments at 50 a second take %s", second.Sub(first))
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
		Ledger: setup(t, nil).ledger, Keys: testKeys, MaxUnsettled: 10, SendTimeout: time.Second, DeadAfter: time.Minute,
		Metrics: NewMetrics(prometheus.NewRegistry()), Trouble: func(string, error) {}, Reload: func(context.Context) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	r := newWorld(t).routing
	if err := d.Apply(r, map[string]provider.Channel{"a": &scriptedChannel{answer: accepts}}); err == nil {
		t.Error("a routing without connections was applied")
	}
	if err := d.Stop(t.Context()); err != nil { // TestMain finds senders that were started
		t.Error(err)
	}
}
