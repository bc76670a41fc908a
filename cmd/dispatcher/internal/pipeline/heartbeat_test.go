package pipeline

import (
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/ledger"
)

// beatAt is a heartbeat at an instant of all clocks.
func beatAt(at time.Time) *ledger.Heartbeat {
	return &ledger.Heartbeat{Sent: at, At: at, Unbroken: at}
}

// TestWhatWasClaimedBeforeAGapNeverLeaves: a process was stopped for longer than the others'
// timeout. It continues with its next heartbeat, but its earlier slots have been given to others.
func TestWhatWasClaimedBeforeAGapNeverLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newHeartbeat(6 * time.Second)
		claimed := time.Now()
		time.Sleep(2 * time.Second)
		p.beat(beatAt(time.Now()))
		if !p.holds(claimed, time.Now()) {
			t.Error("a heartbeat in time takes slots away")
		}
		time.Sleep(5 * time.Second)
		if p.holds(claimed, time.Now()) || p.alive(time.Now()) {
			t.Error("a process without a heartbeat for nearly DeadAfter sends")
		}
		p.beat(beatAt(time.Now()))
		switch now := time.Now(); {
		case !p.alive(now):
			t.Error("the process does not continue after a heartbeat")
		case p.holds(claimed, now):
			t.Error("the process sends what it claimed before the gap")
		case !p.holds(now, now):
			t.Error("the process does not send what it claims now")
		}
		time.Sleep(2 * time.Second)
		p.beat(beatAt(time.Now()))
		if p.holds(claimed, time.Now()) {
			t.Error("a further heartbeat brings the old slots back")
		}
	})
}

// TestReceiptsCouldNotComeInDuringAGap of all processes. Between gaps a later Unbroken, as after a
// heartbeat that was a little late, changes nothing.
func TestReceiptsCouldNotComeInDuringAGap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, began := newHeartbeat(6*time.Second), time.Now()
		if !h.receiptsSince().IsZero() {
			t.Errorf("before the first heartbeat since %s", h.receiptsSince())
		}
		for _, beat := range []struct {
			pause, unbroken, want time.Duration
		}{
			{time.Second, -time.Hour, -time.Hour}, // another process has run for an hour
			{3 * time.Second, 4 * time.Second, -time.Hour},
			{time.Minute, 64 * time.Second, 64 * time.Second},
			{time.Second, 64 * time.Second, 64 * time.Second},
		} {
			time.Sleep(beat.pause)
			now := time.Now()
			h.beat(&ledger.Heartbeat{Sent: now, At: now, Unbroken: began.Add(beat.unbroken)})
			if got := h.receiptsSince().Sub(began); got != beat.want {
				t.Errorf("at %s since %s, want %s", time.Since(began), got, beat.want)
			}
		}
	})
}

// TestWhatWasClaimedBeforeASuspensionNeverLeaves: the monotonic clock stands still while a machine
// is suspended. The wall clock of the machine shows the gap at once, that of the database with the
// next heartbeat, even if the machine's was wrong too.
func TestWhatWasClaimedBeforeASuspensionNeverLeaves(t *testing.T) {
	t.Parallel()
	const suspended = 10 * time.Minute
	h, began := newHeartbeat(6*time.Second), time.Now()
	h.beat(beatAt(began))
	h.wall.Add(-int64(suspended)) // as if the wall clock had gone on since then
	if h.alive(time.Now()) {
		t.Error("by the wall clock the last heartbeat is too old, and the process sends")
	}
	h = newHeartbeat(6 * time.Second)
	h.beat(beatAt(began))
	now := time.Now()
	h.beat(&ledger.Heartbeat{Sent: now, At: now.Add(suspended), Unbroken: now})
	switch {
	case h.holds(began, time.Now()):
		t.Error("by the database's clock a heartbeat was missing, and the slots are kept")
	case !h.holds(time.Now(), time.Now()):
		t.Error("the process does not send what it claims after the heartbeat")
	}
	h.beat(&ledger.Heartbeat{Sent: now, At: now, Unbroken: now}) // that clock was set back
	if !h.holds(time.Now(), time.Now()) {
		t.Error("the process does not send after the database's clock was set back")
	}
}
