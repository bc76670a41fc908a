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
		p.beat(time.Now())
		if !p.holds(claimed, time.Now()) {
			t.Error("a heartbeat in time takes slots away")
		}
		time.Sleep(5 * time.Second)
		if p.holds(claimed, time.Now()) || p.alive(time.Now()) {
			t.Error("a process without a heartbeat for nearly DeadAfter sends")
		}
		p.beat(time.Now())
		switch now := time.Now(); {
		case !p.alive(now):
			t.Error("the process does not continue after a heartbeat")
		case p.holds(claimed, now):
			t.Error("the process sends what it claimed before the gap")
		case !p.holds(now, now):
			t.Error("the process does not send what it claims now")
		}
		time.Sleep(2 * time.Second)
		p.beat(time.Now())
		if p.holds(claimed, time.Now()) {
			t.Error("a further heartbeat brings the old slots back")
		}
	})
}
