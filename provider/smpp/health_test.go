package smpp

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// TestARefusingBindDoesNotAttractMessages: one of two hosts refuses every submit at once, so it
// always has the lowest load.
func TestARefusingBindDoesNotAttractMessages(t *testing.T) {
	t.Parallel()
	for name, behaviour := range map[string]smpptest.Behaviour{
		"refuses":         {ErrorEvery: 1},
		"does not answer": {DropEvery: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				failing := smpptest.New(smpptest.Config{Behaviour: behaviour})
				healthy := smpptest.New(
					smpptest.Config{Behaviour: smpptest.Behaviour{Latency: 5 * time.Millisecond}})
				cfg := Config{Window: 8, ResponseTimeout: 100 * time.Millisecond}
				c := startPair(t, cfg, failing, healthy)
				tier.Eventually(t, "the bind is known to take nothing",
					func() bool { unaccepted(c, 8); return c.unhealthyBinds() == 1 })
				if s := c.States()[0]; s.Phase != Bound || !errors.Is(s.Err, ErrUnhealthy) {
					t.Errorf("the bind is reported as %+v", s)
				}
				before, began := failing.Stats().Submits, time.Now()
				const messages = 400
				lost := unaccepted(c, messages)
				probes := int(time.Since(began)/cfg.ResponseTimeout) + 1
				if n := int(failing.Stats().Submits - before); n == 0 || n > probes || lost > probes {
					t.Errorf("%d of %d messages used the failing bind, %d were lost, want at most %d", n,
						messages, lost, probes)
				}
				failing.SetBehaviour(smpptest.Behaviour{})
				tier.Eventually(t, "the bind takes part again once it works",
					func() bool { unaccepted(c, 8); return c.unhealthyBinds() == 0 })
				synctest.Wait()
				if err := c.States()[0].Err; err != nil {
					t.Errorf("the state still has the error %v", err)
				}
				closeIn(t, c)
				failing.Close()
				healthy.Close()
			})
		})
	}
}

// TestAnUnregisteredSenderDoesNotMakeTheBindUnhealthy: messages with other senders still use the
// bind. The channel's own sender would be refused with every message.
func TestAnUnregisteredSenderDoesNotMakeTheBindUnhealthy(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{true, false} {
		srv := startServer(t, smpptest.Config{
			Behaviour: smpptest.Behaviour{ErrorEvery: 1, ErrorStatus: pdu.StatusInvSrcAdr},
		})
		c := startClient(t, fastConfig(srv.Addr()))
		for i := range 2 * maxFaults {
			s := submission(i)
			s.OwnSender = own
			if r := send(c, s); r.Outcome != provider.Refused ||
				r.Code != pdu.StatusInvSrcAdr.Code() {
				t.Fatalf("%+v", r)
			}
		}
		if n := c.unhealthyBinds(); n != map[bool]int{true: 0, false: 1}[own] {
			t.Errorf("own sender %v: %d unhealthy binds", own, n)
		}
	}
}

// TestAnUnfitMessageDoesNotMakeABindHealthy: the SMSC may refuse it before it reaches the part of
// itself that fails.
func TestAnUnfitMessageDoesNotMakeABindHealthy(t *testing.T) {
	t.Parallel()
	srv := startServer(t,
		smpptest.Config{Behaviour: smpptest.Behaviour{Decide: func(s smpptest.Submit) smpptest.Answer {
			if s.Source.Addr == "ACME" {
				return smpptest.Answer{Status: pdu.StatusSysErr}
			}
			return smpptest.Answer{Status: pdu.StatusInvSrcAdr}
		}}})
	c := startClient(t, fastConfig(srv.Addr()))
	for i := range maxFaults {
		send(c, submission(i))
		s := submission(i)
		s.From, s.OwnSender = "Nobody", true
		if r := send(c, s); !r.Unfit {
			t.Fatalf("%+v", r)
		}
	}
	if n := c.unhealthyBinds(); n != 1 {
		t.Errorf("%d unhealthy binds", n)
	}
}

// unaccepted sends n messages with 8 senders and returns how many were not accepted.
func unaccepted(c *Client, n int) int {
	return n - tally(sendMany(c, n, 8))[provider.Accepted]
}

// TestUnhealthyBindsServeWhenAllAreUnhealthy: the breaker decides about the channel as a whole.
func TestUnhealthyBindsServeWhenAllAreUnhealthy(t *testing.T) {
	t.Parallel()
	srv := startServer(t, smpptest.Config{Behaviour: smpptest.Behaviour{ErrorEvery: 1}})
	cfg := fastConfig(srv.Addr())
	cfg.ResponseTimeout = time.Hour
	c := startClient(t, cfg)
	for i := range 3 * maxFaults {
		if r := send(c, submission(i)); r.Outcome != provider.Refused ||
			r.Code != pdu.StatusSysErr.Code() {
			t.Fatalf("message %d: %+v", i, r)
		}
	}
	srv.SetBehaviour(smpptest.Behaviour{})
	if r := send(c, submission(1)); r.Outcome != provider.Accepted {
		t.Errorf("after recovery: %+v", r)
	}
}

func TestWaitersAreServedByUnhealthyBindsWhenTheHealthyOnesEnd(t *testing.T) {
	t.Parallel()
	p, failing, healthy := newPool(1), &session{}, &session{}
	p.add(failing)
	p.add(healthy)
	for range maxFaults {
		failing.slots.used++
		p.settle(failing, 1, signalBad, 0)
	}
	s, _ := p.acquire(t.Context(), 1, time.Time{})
	if s != healthy {
		t.Fatal("the unhealthy bind was used")
	}
	granted := make(chan *session)
	go func() {
		s, _ := p.acquire(t.Context(), 1, time.Time{})
		granted <- s
	}()
	tier.Eventually(t, "one waits",
		func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.waiting.first() != nil })
	p.remove(healthy)
	if got := <-granted; got != failing {
		t.Errorf("granted %p", got)
	}
}

func TestCongestionNarrowsTheWindowUntilItIsOver(t *testing.T) {
	t.Parallel()
	for state, want := range map[byte]int{
		0: 10, 50: 10, 89: 10, 90: 10, 95: 5, 99: 1, 100: 1, 200: 1,
	} {
		p, s := newPool(10), &session{}
		p.add(s)
		p.limitWindow(s, congestion(pdu.TLVs{pdu.Uint8(pdu.TagCongestionState, state)}))
		got := 0
		for p.leastLoaded(1) != nil {
			s.slots.used++
			got++
		}
		if got != want {
			t.Errorf("state %d leaves %d of 10 slots, want %d", state, got, want)
		}
		p.limitWindow(s, congestion(nil))
		if s.slots.used < 10 && p.leastLoaded(10-s.slots.used) == nil {
			t.Errorf("congestion %d has not ended", state)
		}
	}
	p, s := newPool(10), &session{}
	p.add(s)
	p.limitWindow(s, congested)
	if p.leastLoaded(7) == nil {
		t.Error("a message of seven parts is never sent")
	}
}

func TestCongestionOfVersion50PeersIsHonoredIfConfigured(t *testing.T) {
	t.Parallel()
	for _, honor := range []bool{true, false} {
		srv := startServer(t, smpptest.Config{
			Version: pdu.Version50, Behaviour: smpptest.Behaviour{Congestion: 100},
		})
		cfg := fastConfig(srv.Addr())
		cfg.HonorCongestion, cfg.InterfaceVersion = honor, pdu.Version50
		c := startClient(t, cfg)
		send(c, submission(1))
		limited := func() bool {
			c.pool.mu.Lock()
			defer c.pool.mu.Unlock()
			return c.pool.sessions[0].slots.limit == 1
		}
		if honor {
			tier.Eventually(t, "the window is narrow", limited)
		} else if limited() {
			t.Error("an ignored congestion_state narrowed the window")
		}
		for i := range 5 {
			if r := send(c, submission(i)); r.Outcome != provider.Accepted {
				t.Errorf("%+v", r)
			}
		}
	}
}

// TestARecoveredBindServesWaitingMessages: with more senders than slots there is always a queue, so
// the probe must come from the queue.
func TestARecoveredBindServesWaitingMessages(t *testing.T) {
	t.Parallel()
	for name, behaviour := range map[string]smpptest.Behaviour{
		"refused": {ErrorEvery: 1}, "did not answer": {DropEvery: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				failing := smpptest.New(smpptest.Config{Behaviour: behaviour})
				healthy := smpptest.New(
					smpptest.Config{Behaviour: smpptest.Behaviour{Latency: 50 * time.Millisecond}})
				c := startPair(t, Config{Window: 8, ResponseTimeout: time.Second}, failing, healthy)
				const senders = 64
				sendFor(c, senders, 3*time.Second, time.Minute)
				before, line := failing.Stats().Submits, make(chan int, 1)
				time.AfterFunc(5*time.Second, func() { line <- c.pool.waits() })
				sendFor(c, senders, 10*time.Second, time.Minute)
				if probes := failing.Stats().Submits - before; c.unhealthyBinds() != 1 ||
					<-line == 0 ||
					probes < 5 || probes > 11 {
					t.Errorf(
						"%d unhealthy, %d probes in ten seconds, want about one a second, out of the line",
						c.unhealthyBinds(), probes)
				}
				failing.SetBehaviour(smpptest.Behaviour{})
				sendFor(c, senders, 2500*time.Millisecond, time.Minute)
				if n := c.unhealthyBinds(); n != 0 {
					t.Error("the bind is healthy and gets no messages")
				}
				closeIn(t, c)
				failing.Close()
				healthy.Close()
			})
		})
	}
}

// TestAnUnusedProbeStaysDue: choosing a bind does not use up its probe.
func TestAnUnusedProbeStaysDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, failing, healthy := newPool(1), &session{}, &session{}
		p.add(failing)
		p.add(healthy)
		for range maxFaults {
			failing.slots.used++
			p.settle(failing, 1, signalBad, 0)
		}
		take := func() *session {
			s, _ := p.acquire(t.Context(), 1, time.Time{})
			return s
		}
		if take() != healthy {
			t.Fatal("the unhealthy bind was used before its probe was due")
		}
		first := make(chan *session, 1)
		go func() { first <- take() }()
		synctest.Wait() // queued, since the window of the healthy bind is full
		<-time.After(p.probe)
		second := make(chan *session, 1)
		go func() { second <- take() }()
		synctest.Wait()
		p.settle(healthy, 1, signalGood, 0)
		if s := <-first; s != failing {
			t.Error("the first waiter did not get the bind whose probe is due")
		}
		if s := <-second; s != healthy {
			t.Error("the second waiter did not get the freed slot")
		}
		if left := time.Until(failing.slots.probeAt); left != p.probe {
			t.Errorf("the next probe is due in %v, want %v", left, p.probe)
		}
	})
}

// TestOneProbeAtATime: waiting messages do not follow the probe onto a bind that fails.
func TestOneProbeAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failing := smpptest.New(smpptest.Config{Behaviour: smpptest.Behaviour{ErrorEvery: 1}})
		healthy := smpptest.New(
			smpptest.Config{Behaviour: smpptest.Behaviour{Latency: 50 * time.Millisecond}})
		c := startPair(t, Config{Window: 8, ResponseTimeout: time.Second}, failing, healthy)
		codes := sendFor(c, 64, 20*time.Second, time.Minute)
		lost := 0
		for _, n := range codes {
			lost += n
		}
		if lost > 8+maxFaults+21 {
			t.Errorf("%d messages reached the bind that refuses all: %v", lost, codes)
		}
		if r := send(c, submission(1)); r.Outcome == provider.Unknown {
			t.Errorf("%v", r.Outcome)
		}
		closeIn(t, c)
		failing.Close()
		healthy.Close()
	})
}
