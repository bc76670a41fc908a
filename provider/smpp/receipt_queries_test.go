package smpp

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/smpptest"
)

// TestLateReceiptsAreAskedForAtAPace: the SMSC answers at once, and no receipt has come for a hundred messages.
func TestLateReceiptsAreAskedForAtAPace(t *testing.T) {
	t.Parallel()
	for rate, perSecond := range map[int]int{0: DefaultQueryRate, 4: 4} {
		synctest.Test(t, func(t *testing.T) {
			cfg := Config{
				Query: true, QueryAfter: time.Minute, QueryRate: rate,
				OnReceipt: atOnce(func(provider.Receipt) bool { return true }),
			}
			delivered := func(smpptest.Submit) string { return "DELIVRD" }
			srv, c := startPiped(t, smpptest.Behaviour{Queries: true, QueryState: delivered}, cfg)
			const messages = 100
			if n := tally(sendMany(c, messages, 8))[provider.Accepted]; n != messages {
				t.Fatalf("%d were accepted", n)
			}
			<-time.After(time.Minute + 5*time.Second - time.Millisecond) // of the bubble
			if n := int(srv.Stats().Queries); n != 5*perSecond {
				t.Errorf("%d queries in five seconds, want %d a second", n, perSecond)
			}
			<-time.After(time.Minute)
			if n := srv.Stats().Queries; n != messages {
				t.Errorf("%d queries for %d messages", n, messages)
			}
			closeIn(t, c)
			srv.Close()
		})
	}
}

// TestLateReceiptsAreAskedForWhereTheWindowHasRoom: it is full of submits for two minutes.
func TestLateReceiptsAreAskedForWhereTheWindowHasRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{
			Query: true, QueryAfter: time.Minute, Window: 2, ResponseTimeout: time.Hour,
			OnReceipt: atOnce(func(provider.Receipt) bool { return true }),
		}
		behaviour := smpptest.Behaviour{Queries: true, QueryState: func(smpptest.Submit) string { return "DELIVRD" }}
		srv, c := startPiped(t, behaviour, cfg)
		sendMany(c, 3, 1)
		behaviour.Latency = 2 * time.Minute
		srv.SetBehaviour(behaviour)
		one, two := make(chan provider.Result, 1), make(chan provider.Result, 1)
		go func() { one <- c.Send(t.Context(), submission(8)) }()
		go func() { two <- c.Send(t.Context(), submission(9)) }()
		<-time.After(2*time.Minute - time.Second)
		if n := srv.Stats().Queries; n != 0 {
			t.Errorf("%d queries beside a full window", n)
		}
		<-one
		<-two
		<-time.After(time.Second)
		if n := srv.Stats().Queries; n != 3 {
			t.Errorf("%d queries once there was room, want 3", n)
		}
		closeIn(t, c)
		srv.Close()
	})
}

func TestASpareSlotIsOneThatNoSubmitWants(t *testing.T) {
	t.Parallel()
	p, s := newPool(2), &session{}
	if _, err := p.takeSpare(); !errors.Is(err, errNoBind) {
		t.Errorf("without a bind: %v", err)
	}
	p.add(s)
	for range 2 {
		if got, err := p.takeSpare(); got != s || err != nil {
			t.Fatalf("%v", err)
		}
	}
	if got := p.leastLoaded(1); s.slots.used != 2 || got != nil {
		t.Errorf("%d slots are used", s.slots.used)
	}
	if _, err := p.takeSpare(); !errors.Is(err, errNoSlot) {
		t.Errorf("of a full window: %v", err)
	}
	p.release(s, 2)
	p.waiting.push(&waiter{slots: 3}) // a message that no window has room for yet
	if _, err := p.takeSpare(); !errors.Is(err, errNoSlot) {
		t.Errorf("before those in line: %v", err)
	}
	p.waiting.pop()
	s.slots.unhealthy = true
	if _, err := p.takeSpare(); !errors.Is(err, errNoSlot) {
		t.Errorf("of a bind that takes nothing: %v", err)
	}
}
