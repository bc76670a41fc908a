package smpp

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/smpptest"
)

// startPair returns a client with one bind to each of two servers, inside a bubble.
func startPair(t *testing.T, cfg Config, one, two *smpptest.Server) *Client {
	t.Helper()
	cfg.Addresses, cfg.SystemID, cfg.Binds = []string{"one:1", "two:1"}, "acme", 2
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		return pipeTo(map[string]*smpptest.Server{"one:1": one, "two:1": two}[address])(ctx,
			network, address)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	if n := c.bound(); n != 2 {
		t.Fatalf("%d binds are up, want 2", n)
	}
	return c
}

// unhealthyBinds counts the binds known to accept nothing.
func (c *Client) unhealthyBinds() int {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	return c.pool.unhealthy
}

// sendFor lets senders send messages one after another, each with a deadline. It counts those not
// accepted by code.
func sendFor(c *Client, senders int, during, deadline time.Duration) map[string]int {
	until := time.Now().Add(during)
	var mu sync.Mutex
	codes := map[string]int{}
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			for time.Now().Before(until) {
				ctx, cancel := context.WithTimeout(context.Background(), deadline)
				r := c.Send(ctx, submission(i))
				cancel()
				if r.Outcome != provider.Accepted {
					mu.Lock()
					codes[r.Outcome.String()+" "+r.Code]++
					mu.Unlock()
				}
				<-time.After(100 * time.Millisecond) // inside the bubble
			}
		})
	}
	wg.Wait()
	return codes
}

// TestASilentBindBecomesUnhealthyHoweverTheWaitEnds: by the bind's own timeout or by the senders'
// deadline, which counts from the claim.
func TestASilentBindBecomesUnhealthyHoweverTheWaitEnds(t *testing.T) {
	t.Parallel()
	const deadline = 10 * time.Second
	for name, cfg := range map[string]Config{
		"defaults":                   {SendTimeout: deadline},
		"response_timeout too long":  {SendTimeout: deadline, ResponseTimeout: time.Minute},
		"just as long":               {ResponseTimeout: deadline + time.Millisecond},
		"defaults, a short deadline": {SendTimeout: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				failing := smpptest.New(smpptest.Config{Behaviour: smpptest.Behaviour{DropEvery: 1}})
				healthy := smpptest.New(smpptest.Config{})
				cfg.Window = 8
				wait := deadline
				if cfg.SendTimeout > 0 {
					wait = cfg.SendTimeout
				}
				c := startPair(t, cfg, failing, healthy)
				codes := sendFor(c, 16, time.Minute, wait)
				if c.unhealthyBinds() != 1 {
					t.Errorf("%d unhealthy binds, want the silent one", c.unhealthyBinds())
				}
				// one window, a slot that comes free again with each fault before the last, and one
				// message for each probe
				most := 8 + maxFaults - 1 + int(time.Minute/c.cfg.ResponseTimeout) + 1
				if n := codes["unknown timeout"]; n == 0 || n > most || len(codes) != 1 {
					t.Errorf("lost %v, want at most %d by timeout", codes, most)
				}
				closeIn(t, c)
				failing.Close()
				healthy.Close()
			})
		})
	}
}

// TestAnswersToEarlierSubmitsDoNotSpeakForABind that refuses all later ones. If it refuses few of
// the later ones, it is healthy.
func TestAnswersToEarlierSubmitsDoNotSpeakForABind(t *testing.T) {
	t.Parallel()
	const every = 50
	for name, test := range map[string]struct {
		step uint64 // one submit in that many is refused
		want bool
	}{
		"all are refused": {1, true}, "one in fifty is refused": {every, false},
	} {
		p := newPool(10)
		s := &session{pool: p, health: make(chan struct{}, 1)}
		p.sessions = append(p.sessions, s)
		p.mu.Lock()
		for i := range uint64(2 * maxFaults) {
			p.record(s, signalBad, 1000+i*test.step)
			p.record(s, signalGood, 1+i)
		}
		if s.slots.unhealthy != test.want {
			t.Errorf("%s: unhealthy %t", name, s.slots.unhealthy)
		}
		p.record(s, signalGood, 1000+2*maxFaults*every)
		if s.slots.unhealthy || s.slots.faults != 0 {
			t.Errorf("%s: a later submit is answered: unhealthy %t", name, s.slots.unhealthy)
		}
		p.mu.Unlock()
	}
}

// TestEarlyTimeoutsDoNotCountAgainstTheBind: an SMSC that answers after a second is slow, not
// silent. With a longer timeout it keeps its share of messages.
func TestEarlyTimeoutsDoNotCountAgainstTheBind(t *testing.T) {
	t.Parallel()
	for _, sendTimeout := range []time.Duration{10 * time.Second, time.Second} {
		t.Run(sendTimeout.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				slow := smpptest.New(
					smpptest.Config{Behaviour: smpptest.Behaviour{Latency: time.Second}})
				quick := smpptest.New(smpptest.Config{})
				c := startPair(t, Config{SendTimeout: sendTimeout, Window: 8}, slow, quick)
				if codes := sendFor(c, 16, 5*time.Second,
					100*time.Millisecond); codes["unknown timeout"] < 3*maxFaults {
					t.Fatalf("too few lost answers for this test: %v", codes)
				}
				if n := c.unhealthyBinds(); n != 0 {
					t.Errorf("%d unhealthy binds", n)
				}
				closeIn(t, c)
				slow.Close()
				quick.Close()
			})
		})
	}
}

// TestABindThatLosesFewAnswersIsNotSilent: answers lost at one moment time out together, after
// later submits were answered, even if a hundred in a row were lost. A bind that answers nothing
// any more is silent.
func TestABindThatLosesFewAnswersIsNotSilent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost   func(n int) bool
		silent bool
	}{
		"one in fifty":    {func(n int) bool { return n%50 == 0 }, false},
		"forty in a row":  {func(n int) bool { return n > 1000 && n <= 1040 }, false},
		"all from one on": {func(n int) bool { return n > 1000 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var submits atomic.Int64
				lossy := smpptest.New(smpptest.Config{
					Log: -1,
					Behaviour: smpptest.Behaviour{Decide: func(smpptest.Submit) smpptest.Answer {
						if c.lost(int(submits.Add(1))) {
							return smpptest.Answer{State: smpptest.Dropped}
						}
						return smpptest.Answer{Delay: 5 * time.Millisecond}
					}},
				})
				healthy := smpptest.New(smpptest.Config{
					Log: -1, Behaviour: smpptest.Behaviour{Latency: 5 * time.Millisecond},
				})
				var silent atomic.Bool
				client := startPair(t,
					Config{SendTimeout: 10 * time.Second, Window: 200, OnState: func(s BindState) {
						if errors.Is(s.Err, ErrUnhealthy) {
							silent.Store(true)
						}
					}}, lossy, healthy)
				sendFor(client, 100, 30*time.Second, 10*time.Second)
				if silent.Load() != c.silent {
					t.Errorf("unhealthy: %v, want %v", silent.Load(), c.silent)
				}
				closeIn(t, client)
				lossy.Close()
				healthy.Close()
			})
		})
	}
}

// TestCancelledSendsDoNotCountAgainstTheBind, however long they waited.
func TestCancelledSendsDoNotCountAgainstTheBind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, c := startPiped(t, smpptest.Behaviour{DropEvery: 1}, Config{})
		for i := range 2 * maxFaults {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(c.cfg.silenceThreshold()+time.Second, cancel)
			if r := c.Send(ctx, submission(i)); r.Outcome != provider.Unknown ||
				r.Code != "cancelled" {
				t.Fatalf("%v (%s)", r.Outcome, r.Code)
			}
			cancel()
		}
		if n := c.unhealthyBinds(); n != 0 {
			t.Errorf("%d unhealthy binds", n)
		}
		closeIn(t, c)
		srv.Close()
	})
}

func TestTheDefaultTimeoutEndsBeforeTheSendersGiveUp(t *testing.T) {
	t.Parallel()
	for sendTimeout, want := range map[time.Duration]time.Duration{
		0: DefaultResponseTimeout, time.Minute: DefaultResponseTimeout,
		10 * time.Second: 8 * time.Second, time.Second: 800 * time.Millisecond,
	} {
		got := (Config{SendTimeout: sendTimeout}).withDefaults()
		if got.SubmitTimeout != want || got.ResponseTimeout != DefaultResponseTimeout {
			t.Errorf("send timeout %v: submit timeout %v, want %v; response timeout %v", sendTimeout, got.SubmitTimeout,
				want, got.ResponseTimeout)
		}
		got = (Config{
			SendTimeout: sendTimeout, ResponseTimeout: time.Hour,
		}).withDefaults().withDefaults()
		if got.SubmitTimeout != time.Hour || got.ResponseTimeout != time.Hour {
			t.Errorf("an explicit response timeout gave %v and %v", got.SubmitTimeout, got.ResponseTimeout)
		}
	}
}
