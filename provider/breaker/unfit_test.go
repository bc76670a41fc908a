package breaker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/breaker"
)

// TestUnfitMessagesDoNotHideADeadAccount: the vendor refuses three of five messages as unfit before
// it checks the account, and two for lack of credit. It accepts none.
func TestUnfitMessagesDoNotHideADeadAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		ch := &scriptedChannel{answer: func(context.Context) provider.Result {
			n++
			return provider.Result{Outcome: provider.Refused, Unfit: n%5 < 3, Code: "402"}
		}}
		b := breaker.New(ch, breaker.Config{Name: "a"})
		const messages = 5000
		for range messages { // ten seconds: the breaker sends one probe
			b.Send(t.Context(), provider.Submission{ID: "m"})
			time.Sleep(2 * time.Millisecond)
		}
		if got := ch.sends.Load(); b.State() == breaker.Closed || got > 20 {
			t.Errorf("state %v after %d of %d messages reached a channel that accepts none", b.State(),
				got, messages)
		}
	})
}

// TestALongRowOfUnfitMessagesOpensTheBreaker unless one of them is accepted. The first accepted
// message closes the breaker.
func TestALongRowOfUnfitMessagesOpensTheBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		unfit := provider.Result{Outcome: provider.Refused, Unfit: true, Code: "sender"}
		r, id := unfit, 0
		b := breaker.New(
			&scriptedChannel{answer: func(context.Context) provider.Result { return r }},
			breaker.Config{Name: "a", Failures: 5, OpenFor: time.Second})
		send := func(answer provider.Result, n int, want breaker.State) {
			t.Helper()
			r = answer
			for range n {
				id++
				b.Send(t.Context(), provider.Submission{ID: fmt.Sprint("m", id)})
			}
			if got := b.State(); got != want {
				t.Fatalf("state %v after %d more, want %v", got, n, want)
			}
		}
		for _, answer := range []provider.Outcome{provider.Accepted, provider.Rejected} {
			send(unfit, 100, breaker.Closed)
			send(provider.Result{Outcome: answer}, 1, breaker.Closed)
		}
		send(unfit, 50, breaker.Closed)
		// nothing is accepted here either
		send(provider.Result{Outcome: provider.Throttled}, 10, breaker.Closed)
		send(unfit, 54, breaker.Closed)
		send(unfit, 1, breaker.Open)
		time.Sleep(time.Second + 1)
		send(unfit, 1, breaker.Open)
		time.Sleep(time.Second + 1)
		send(provider.Result{Outcome: provider.Accepted}, 1, breaker.Closed)
		send(unfit, 100, breaker.Closed)
	})
}

// TestRepeatedUnfitMessagesCountOnce: a message that every channel refuses is tried again in each
// round. A hundred of them may repeat; one more opens the breaker.
func TestRepeatedUnfitMessagesCountOnce(t *testing.T) {
	t.Parallel()
	b := breaker.New(&scriptedChannel{answer: func(context.Context) provider.Result {
		return provider.Result{Outcome: provider.Refused, Unfit: true, Code: "sender"}
	}}, breaker.Config{Name: "a"})
	round := func(messages int) {
		for i := range messages {
			b.Send(t.Context(), provider.Submission{ID: fmt.Sprint("m", i)})
		}
	}
	for range 20 {
		round(100)
	}
	if got := b.State(); got != breaker.Closed {
		t.Fatalf("state %v after a hundred messages and their repetitions", got)
	}
	round(101)
	round(4)
	if got := b.State(); got != breaker.Open {
		t.Errorf("state %v after the next message and its repetitions", got)
	}
}

// TestAnUnfitProbeHoldsItsSlotWhileInFlight and no longer: a probe that does not count does not
// allow further submissions at the same time.
func TestAnUnfitProbeHoldsItsSlotWhileInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan provider.Result)
		ch := &scriptedChannel{answer: func(context.Context) provider.Result { return <-answer }}
		b := breaker.New(ch, breaker.Config{Name: "a", Failures: 1, OpenFor: time.Second})
		var wg sync.WaitGroup
		send := func() { wg.Go(func() { b.Send(t.Context(), provider.Submission{}) }) }
		send()
		answer <- provider.Result{Outcome: provider.Refused}
		wg.Wait()
		time.Sleep(time.Second + 1)
		for i := range 3 {
			send()
			synctest.Wait()
			if ok, _ := b.Ready(); ok ||
				b.Send(t.Context(), provider.Submission{}).Code != breaker.CodeOpen {
				t.Errorf("round %d: a second message was sent during the probe", i)
			}
			answer <- provider.Result{Outcome: provider.Refused, Unfit: true}
			wg.Wait()
		}
		if n := ch.sends.Load(); n != 4 || b.State() != breaker.HalfOpen {
			t.Errorf("%d sends, %v", n, b.State())
		}
	})
}

// TestOnlyARefusalIsUnfit: a submission without an answer stays a failure, however the adapter
// marks it.
func TestOnlyARefusalIsUnfit(t *testing.T) {
	t.Parallel()
	ch := &scriptedChannel{answer: func(context.Context) provider.Result {
		return provider.Result{Outcome: provider.Unknown, Unfit: true}
	}}
	b := breaker.New(ch, breaker.Config{Name: "a", Failures: 1})
	b.Send(t.Context(), provider.Submission{ID: "m"})
	if got := b.State(); got != breaker.Open {
		t.Errorf("state %v after a submission without an answer", got)
	}
}
