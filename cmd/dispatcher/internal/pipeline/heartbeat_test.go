package pipeline

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestWhatWasClaimedBeforeAGapNeverLeaves: a process was stopped for longer than the others'
// timeout. It continues with its next heartbeat, but its earlier slots have been given to others.
func TestWhatWasClaimedBeforeAGapNeverLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newHeartbeat(6 * time.Second)
		claimed := time.Now()
		time.Sleep(2 * time.Second)
		p.beat(time.Now(), time.Now())
		if !p.holds(claimed, time.Now()) {
			t.Error("a heartbeat in time takes slots away")
		}
		time.Sleep(5 * time.Second)
		if p.holds(claimed, time.Now()) || p.alive(time.Now()) {
			t.Error("a process without a heartbeat for nearly DeadAfter sends")
		}
		p.beat(time.Now(), time.Now())
		switch now := time.Now(); {
		case !p.alive(now):
			t.Error("the process does not continue after a heartbeat")
		case p.holds(claimed, now):
			t.Error("the process sends what it claimed before the gap")
		case !p.holds(now, now):
			t.Error("the process does not send what it claims now")
		}
		time.Sleep(2 * time.Second)
		p.beat(time.Now(), time.Now())
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
			h.beat(time.Now(), began.Add(beat.unbroken))
			if got := h.receiptsSince().Sub(began); got != beat.want {
				t.Errorf("at %s since %s, want %s", time.Since(began), got, beat.want)
			}
		}
	})
}
