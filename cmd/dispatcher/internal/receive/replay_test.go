package receive

import (
	"fmt"
	"testing"
	"time"
)

func TestAStoredCallbackIsRememberedForTwiceTheTolerance(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for _, later := range []time.Duration{
		0, time.Minute, replayMemory - time.Second,
		replayMemory,
	} {
		r := newReplays()
		r.begin("a", "other", now)
		r.end("a", "other", true, now)
		stored := now.Add(replayMemory - 2*time.Second) // just before a generation ends
		if got := r.begin("a", "once", stored); got != seenNever {
			t.Fatalf("new one is %d", got)
		}
		r.end("a", "once", true, stored)
		if got := r.begin("a", "once", stored.Add(later)); got != seenRecorded {
			t.Errorf("%s later it is %d, want stored", later, got)
		}
	}
	r := newReplays()
	r.begin("a", "once", now)
	r.end("a", "once", true, now)
	if got := r.begin("a", "once", now.Add(2*replayMemory)); got != seenNever {
		t.Errorf("after twice the memory it is %d: it must not be kept for ever", got)
	}
}

func TestReplaysAreKnownPerChannelAndOnlyOnceStored(t *testing.T) {
	t.Parallel()
	r, now := newReplays(), time.Unix(1_800_000_000, 0)
	if r.begin("a", "x", now) != seenNever || r.begin("a", "x", now) != seenUnderWay {
		t.Error("want the first as new and the second as in progress")
	}
	if r.begin("b", "x", now) != seenNever {
		t.Error("a callback of another channel must be new")
	}
	r.end("a", "x", false, now)
	if r.begin("a", "x", now) != seenNever {
		t.Error("a callback that was not stored must be new again")
	}
	for range 3 {
		if r.begin("a", "", now) != seenNever {
			t.Error("a callback without an id must be new")
		}
		r.end("a", "", true, now)
	}
}

// TestReplaysAreBounded: the oldest are dropped first.
func TestReplaysAreBounded(t *testing.T) {
	t.Parallel()
	r, now := newReplays(), time.Unix(1_800_000_000, 0)
	const n = 2*maxReplays + 10
	for i := range n {
		once := fmt.Sprint(i)
		r.begin("a", once, now)
		r.end("a", once, true, now)
	}
	g := r.channels["a"]
	if kept := len(g.younger) + len(g.older); kept > 2*maxReplays {
		t.Errorf("%d are kept", kept)
	}
	if r.begin("a", fmt.Sprint(n-1), now) != seenRecorded || r.begin("a", "0", now) != seenNever {
		t.Error("the last must be known and the first forgotten")
	}
}
