package smpp

import (
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/smpptest"
)

// TestABindThatRecoveredTakesPartAgainWhileMessagesWaitInLine: senders that are more than the windows hold never leave the
// line empty, so that the probe has to come out of it.
func TestABindThatRecoveredTakesPartAgainWhileMessagesWaitInLine(t *testing.T) {
	t.Parallel()
	for name, behaviour := range map[string]smpptest.Behaviour{
		"refused": {ErrorEvery: 1}, "did not answer": {DropEvery: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sick := smpptest.New(smpptest.Config{Behaviour: behaviour})
				healthy := smpptest.New(smpptest.Config{Behaviour: smpptest.Behaviour{Latency: 50 * time.Millisecond}})
				c := startPair(t, Config{Window: 8, ResponseTimeout: time.Second}, sick, healthy)
				const senders = 64
				sendFor(c, senders, 3*time.Second, time.Minute)
				before, line := sick.Stats().Submits, make(chan int, 1)
				time.AfterFunc(5*time.Second, func() { line <- c.pool.waits() })
				sendFor(c, senders, 10*time.Second, time.Minute)
				if probes := sick.Stats().Submits - before; c.ailing() != 1 || <-line == 0 || probes < 5 || probes > 11 {
					t.Errorf("%d ailing, %d probes in ten seconds, want about one a second, out of the line", c.ailing(), probes)
				}
				sick.SetBehaviour(smpptest.Behaviour{})
				sendFor(c, senders, 2500*time.Millisecond, time.Minute)
				if n := c.ailing(); n != 0 {
					t.Error("the bind is well and gets nothing")
				}
				closeIn(t, c)
				sick.Close()
				healthy.Close()
			})
		})
	}
}

// TestAProbeThatNobodyTookIsStillDue: to look for a bind is not to take it.
func TestAProbeThatNobodyTookIsStillDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, sick, healthy := newPool(1), &session{}, &session{}
		p.add(sick)
		p.add(healthy)
		for range maxFaults {
			sick.slots.used++
			p.settle(sick, 1, signalBad, 0)
		}
		take := func() *session {
			s, _ := p.acquire(t.Context(), 1, time.Time{})
			return s
		}
		if take() != healthy {
			t.Fatal("the ailing bind was taken before its time")
		}
		first := make(chan *session, 1)
		go func() { first <- take() }()
		synctest.Wait() // in line, since the healthy window is full
		<-time.After(p.probe)
		second := make(chan *session, 1)
		go func() { second <- take() }()
		synctest.Wait()
		p.settle(healthy, 1, signalGood, 0)
		if s := <-first; s != sick {
			t.Error("the first in line was not let through to the bind that is due")
		}
		if s := <-second; s != healthy {
			t.Error("the second in line did not get the slot that came free")
		}
		if left := time.Until(sick.slots.probeAt); left != p.probe {
			t.Errorf("the next probe is due in %v, want %v", left, p.probe)
		}
	})
}

// TestOneProbeAtATime: the line does not follow the first onto a bind that does not work.
func TestOneProbeAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sick := smpptest.New(smpptest.Config{Behaviour: smpptest.Behaviour{ErrorEvery: 1}})
		healthy := smpptest.New(smpptest.Config{Behaviour: smpptest.Behaviour{Latency: 50 * time.Millisecond}})
		c := startPair(t, Config{Window: 8, ResponseTimeout: time.Second}, sick, healthy)
		codes := sendFor(c, 64, 20*time.Second, time.Minute)
		lost := 0
		for _, n := range codes {
			lost += n
		}
		if lost > 8+maxFaults+21 {
			t.Errorf("%d messages met the bind that refuses all: %v", lost, codes)
		}
		if r := send(c, submission(1)); r.Outcome == provider.Unknown {
			t.Errorf("%v", r.Outcome)
		}
		closeIn(t, c)
		sick.Close()
		healthy.Close()
	})
}
