package pipeline

import (
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/provider"
)

// TestWhatComesLateAgainAndAgainMakesAChannelBusyForLonger: a single late message does not, and one
// message sent in time ends it.
func TestWhatComesLateAgainAndAgainMakesAChannelBusyForLonger(t *testing.T) {
	t.Parallel()
	var s lateBackoff
	now := noon
	for i, want := range []time.Duration{
		0, 100 * time.Millisecond, 200 * time.Millisecond,
		400 * time.Millisecond, 800 * time.Millisecond,
	} {
		for range 50 { // all of one claim
			s.missed(now)
		}
		pause := time.Duration(0)
		for s.active(now.Add(pause)) {
			pause += 10 * time.Millisecond
		}
		if pause != want {
			t.Errorf("time %d: a pause of %s, want %s", i+1, pause, want)
		}
		now = now.Add(max(pause, lateSpan))
	}
	s.sent(now)
	if s.missed(now); s.active(now) {
		t.Error("got a pause, although a message was in time in between")
	}
}

func TestALongPauseIsBoundedAndExpires(t *testing.T) {
	t.Parallel()
	var s lateBackoff
	now := noon
	for range 40 {
		s.missed(now)
		now = now.Add(maxBackoff)
	}
	if s.missed(now); !s.active(now.Add(maxBackoff-1)) || s.active(now.Add(maxBackoff)) {
		t.Error("the pause is not as long as the longest")
	}
	now = now.Add(maxBackoff + lateMemory + 1)
	if s.missed(now); s.active(now) {
		t.Error("a miss of long ago counts")
	}
}

// lateWire finds that the latest moment passed before it could begin.
type lateWire struct{ latest chan time.Time }

func (c *lateWire) send(s provider.Submission) provider.Result {
	c.latest <- s.Latest
	time.Sleep(time.Until(s.Latest))
	return provider.Result{Outcome: provider.Refused, Code: provider.Late}
}

// TestAnAdapterKnowsTheLatestMomentAndItsLateIsOurs: such an attempt is not an answer of the
// channel, and is tried again.
func TestAnAdapterKnowsTheLatestMomentAndItsLateIsOurs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		carrier := lateWire{latest: make(chan time.Time, 1)}
		w, now := newTestWorker(t, &scriptedChannel{answer: carrier.send}, 1), time.Now()
		for range 2 {
			latest := time.Now().Add(time.Second)
			w.put(&openAttempt{Attempt: &decide.Attempt{}, claimed: now, latest: latest})
			time.Sleep(1050 * time.Millisecond)
			if got := <-carrier.latest; !got.Equal(latest) {
				t.Errorf("the adapter got %s, want %s", got, latest)
			}
		}
		if got := w.unready(time.Now()); got != decide.Busy {
			t.Errorf("ready %q after the second time", got)
		}
		if codes := w.codes(); codes[decide.CodeLate] != 2 || len(codes) != 1 {
			t.Errorf("got returned codes %v", codes)
		}
	})
	a := &decide.Attempt{
		Channel: "a", Submission: provider.Submission{ID: "m", Attempt: 1},
		Expires: noon.Add(time.Hour), Segments: 1,
	}
	if s := decide.Settle(a, &provider.Result{Outcome: provider.Refused, Code: provider.Late},
		noon); s.Tried || s.State != "retry" || !s.NextAt.IsZero() {
		t.Errorf("got %+v", s)
	}
}

// TestAnUntimedSlowDownDoesNotShortenAnAnnouncedPause: in any order of the answers.
func TestAnUntimedSlowDownDoesNotShortenAnAnnouncedPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestWorker(t, &timedChannel{}, 1)
		w.applyThrottle(&provider.Result{Outcome: provider.Throttled, RetryAfter: 30 * time.Second})
		w.applyThrottle(&provider.Result{Outcome: provider.Throttled})
		time.Sleep(29 * time.Second)
		if got := w.unready(time.Now()); got != decide.Throttled {
			t.Errorf("ready %q before the time that was named", got)
		}
		time.Sleep(2 * time.Second)
		if got := w.unready(time.Now()); got != "" {
			t.Errorf("ready %q after it", got)
		}
	})
}

// TestABurstOfSlowDownsDoublesThePauseOnce: they answer the same burst of submits.
func TestABurstOfSlowDownsDoublesThePauseOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTestWorker(t, &timedChannel{}, 1)
		for i, want := range []time.Duration{
			decide.PauseWhenUntimed, 2 * decide.PauseWhenUntimed,
			4 * decide.PauseWhenUntimed,
		} {
			for range 20 {
				w.applyThrottle(&provider.Result{Outcome: provider.Throttled})
			}
			time.Sleep(want - time.Millisecond)
			if got := w.unready(time.Now()); got != decide.Throttled {
				t.Errorf("burst %d: ready %q before %s", i+1, got, want)
			}
			time.Sleep(time.Millisecond)
			if got := w.unready(time.Now()); got != "" {
				t.Errorf("burst %d: ready %q after %s", i+1, got, want)
			}
			time.Sleep(time.Second)
		}
	})
}
