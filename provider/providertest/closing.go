package providertest

import (
	"context"
	"testing"
	"time"

	"dispatcher/provider"
)

func closeWaits(t testing.TB, h Harness) {
	hold := make(chan struct{})
	in := start(t, h, func(int, Submit) Answer { return Answer{Reply: Accept, Hold: hold} })
	s := submission(30)
	ctx, cancel := context.WithTimeout(t.Context(), h.timeout())
	defer cancel()
	sent := async(ctx, in, s)
	eventually(t, h, "the peer has the message", func() bool { return len(in.Submits()) == 1 })
	closed := make(chan error, 1)
	go func() { closed <- in.Channel.Close(ctx) }()
	select {
	case err := <-closed:
		t.Errorf("Close returned %v while a message was in flight", err)
		closed <- err
	case <-time.After(pause):
	}
	ok, why := in.Channel.Ready()
	for deadline := time.Now().Add(h.deadline()); ok && time.Now().Before(deadline); ok,
		why = in.Channel.Ready() {
		// Close has been called, but may not have run yet on a busy machine
		<-time.After(time.Millisecond)
	}
	if ok || !provider.Unready(why) {
		t.Errorf("Ready = %v %q while closing, want false and a word of package provider", ok, why)
	}
	close(hold)
	wantOutcome(t, checked(t, h, s, await(t, h, "the result", sent)), provider.Accepted)
	if err := await(t, h, "Close", closed); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// closeIsBounded closes while an answer never comes. The message is Unknown, because it may have
// been taken.
func closeIsBounded(t testing.TB, h Harness) {
	in, s := start(t, h, Always(Lose)), submission(31)
	ctx, cancel := context.WithTimeout(t.Context(), 2*h.timeout())
	defer cancel()
	sent := async(ctx, in, s)
	eventually(t, h, "the peer has the message", func() bool { return len(in.Submits()) == 1 })
	short, cancel := context.WithTimeout(t.Context(), pause)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- in.Channel.Close(short) }()
	_ = await(t, h, "Close after its context ended", closed) // nil or an error: both are allowed
	wantOutcome(t, checked(t, h, s, await(t, h, "the result after Close", sent)), provider.Unknown)
	wantLogged(t, in, s, 1)
}

func closeTwice(t testing.TB, h Harness) {
	in, s, late := start(t, h, Always(Accept)), submission(32), submission(33)
	wantOutcome(t, send(t, h, in, s), provider.Accepted)
	closeChannel(t, h, in)
	closeChannel(t, h, in)
	wantOutcome(t, send(t, h, in, late), provider.Refused)
	if ok, why := in.Channel.Ready(); ok || !provider.Unready(why) {
		t.Errorf("Ready = %v %q after Close, want false and a word of package provider", ok, why)
	}
	wantLogged(t, in, s, 1)
	wantLogged(t, in, late, 0)
}
