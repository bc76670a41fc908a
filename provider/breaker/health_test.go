package breaker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/provider"
	"dispatcher/provider/breaker"
)

// carrier accepts or refuses the n-th submit after latency. A lost answer never arrives, and the
// sender gives up after timeout.
type carrier struct {
	latency, timeout time.Duration
	lost, refused    func(n int) bool
	n                int
}

func (c *carrier) Send(context.Context, provider.Submission) provider.Result {
	c.n++
	switch n := c.n; {
	case c.lost != nil && c.lost(n):
		time.Sleep(c.timeout)
		return provider.Result{Outcome: provider.Unknown, Code: "timeout"}
	case c.refused != nil && c.refused(n):
		return provider.Result{Outcome: provider.Refused, Code: "0x00000008"}
	}
	time.Sleep(c.latency)
	return provider.Result{Outcome: provider.Accepted}
}

func (c *carrier) Ready() (bool, string)       { return true, "" }
func (c *carrier) Close(context.Context) error { return nil }

// opening is the state of the breaker after a simulated flow of messages.
type opening struct {
	at      time.Duration // when it first opened; negative if it never did
	changes []breaker.Change
}

// flow sends rate messages a second over the carrier in a synctest bubble. It does not wait for
// answers.
func flow(t *testing.T, c *carrier, rate float64, during time.Duration) opening {
	t.Helper()
	o := opening{at: -1}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		b := breaker.New(c, breaker.Config{Name: "a", OnChange: func(change breaker.Change) {
			if o.at < 0 {
				o.at = time.Since(began)
			}
			o.changes = append(o.changes, change)
		}})
		for time.Since(began) < during {
			go b.Send(context.Background(), provider.Submission{ID: "m"})
			synctest.Wait() // submits begin in order
			time.Sleep(time.Duration(float64(time.Second) / rate))
		}
		time.Sleep(c.timeout + c.latency)
	})
	return o
}

// share returns a function that is true for that part of the submits, at random.
func share(part float64, seed uint64) func(int) bool {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // A simulation.
	return func(int) bool { return r.Float64() < part }
}

func from(first int, then func(int) bool) func(int) bool {
	return func(n int) bool { return n >= first && then(n) }
}

func always(int) bool { return true }

const answerTimeout = 8 * time.Second

// TestAChannelThatAnswersMostSubmitsStaysClosed: lost answers time out long after later submits
// were answered.
func TestAChannelThatAnswersMostSubmitsStaysClosed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rate    float64
		carrier carrier
	}{
		"2 % lost, 300/s": {
			300, carrier{latency: 5 * time.Millisecond, lost: share(0.02, 1)},
		},
		"2 % lost, 3/s": {
			3, carrier{latency: 5 * time.Millisecond, lost: share(0.02, 2)},
		},
		"10 % lost, 30/s": {
			30, carrier{latency: 50 * time.Millisecond, lost: share(0.1, 3)},
		},
		"2 % lost, slow answers": {
			300, carrier{latency: 7 * time.Second, lost: share(0.02, 4)},
		},
		"2 % refused at once": {
			300, carrier{latency: 5 * time.Millisecond, refused: share(0.02, 5)},
		},
		"2 % refused at once, slow answer": {
			300, carrier{latency: 7900 * time.Millisecond, refused: share(0.02, 6)},
		},
		"a hundred in a row are lost": {
			300, carrier{
				latency: 5 * time.Millisecond,
				lost:    func(n int) bool { return n > 900 && n <= 1000 },
			},
		},
		"two in an hour, one lost": {
			2.0 / 3600, carrier{lost: func(n int) bool { return n%2 == 0 }},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.carrier.timeout = answerTimeout
			during := time.Minute
			if c.rate < 1 {
				during = 100 * time.Hour
			}
			if o := flow(t, &c.carrier, c.rate, during); o.at >= 0 {
				t.Errorf("opened after %v: %+v", o.at, o.changes[0])
			}
		})
	}
}

// TestABrokenChannelIsNoticed: five failed submits open the breaker of a channel that stopped
// working, even while answers to earlier submits still arrive.
func TestABrokenChannelIsNoticed(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	for name, c := range map[string]struct {
		rate    float64
		carrier carrier
		within  time.Duration
	}{
		"no answer from the start": {300, carrier{lost: always}, answerTimeout + 20*ms},
		"no answer from the start, 1/s": {
			1, carrier{lost: always}, answerTimeout + 4*time.Second,
		},
		"no answer, five in an hour": {
			5.0 / 3600, carrier{lost: always}, 4*720*time.Second + answerTimeout,
		},
		"no answer after a minute": {
			300,
			carrier{latency: 5 * ms, lost: from(18_001, always)},
			time.Minute + answerTimeout + 50*ms,
		},
		"refused at once": {300, carrier{refused: always}, 20 * ms},
		"refused after a minute": {
			300, carrier{latency: 5 * ms, refused: from(18_001, always)}, time.Minute + 50*ms,
		},
		"refused while answers come late": {
			300,
			carrier{latency: 2 * time.Second, refused: from(3001, always)},
			10*time.Second + 50*ms,
		},
		"refused while answers come very late": {
			300,
			carrier{latency: 7 * time.Second, refused: from(3601, always)},
			12*time.Second + 50*ms,
		},
		"refused after few were, while answers come late": {
			300,
			carrier{latency: 2 * time.Second, refused: func(n int) bool { return n%50 == 0 || n > 3000 }},
			16 * time.Second,
		},
		"60 % lost": {
			300, carrier{latency: 5 * ms, lost: share(0.6, 1)}, answerTimeout + time.Second,
		},
		"11 of 20 lost, in turn": {
			300,
			carrier{latency: 5 * ms, lost: func(n int) bool { return n%20 < 11 }},
			answerTimeout + time.Second,
		},
		"90 % lost after a minute": {
			300,
			carrier{latency: 5 * ms, lost: from(18_001, share(0.9, 1))},
			time.Minute + answerTimeout + 7*time.Second,
		},
		"60 % refused at once": {
			300, carrier{latency: 5 * ms, refused: share(0.6, 2)}, time.Second,
		},
		"half refused, half lost": {
			300, carrier{lost: func(n int) bool { return n%2 == 0 }, refused: always}, time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.carrier.timeout = answerTimeout
			o := flow(t, &c.carrier, c.rate, c.within+answerTimeout)
			if o.at < 0 || o.at > c.within {
				t.Errorf("opened after %v, want within %v", o.at, c.within)
			}
		})
	}
}

// TestFewLostAnswersNeverOpenTheBreaker at any rate, latency and timeout.
func TestFewLostAnswersNeverOpenTheBreaker(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(r *rapid.T) {
		c := carrier{
			latency: time.Duration(rapid.IntRange(0, 7000).Draw(r,
				"latency ms")) * time.Millisecond,
			timeout: time.Duration(rapid.IntRange(7001, 10_000).Draw(r,
				"timeout ms")) * time.Millisecond,
			lost: share(rapid.Float64Range(0, 0.1).Draw(r, "lost"), rapid.Uint64().Draw(r, "seed")),
		}
		rate := rapid.Float64Range(5, 200).Draw(r, "rate")
		if o := flow(t, &c, rate, 20*time.Second); o.at >= 0 {
			r.Errorf("opened after %v: %+v", o.at, o.changes[0])
		}
	})
}

// TestSubmitsInFlightDoNotCountAfterAChange: when a carrier works again, submits lost earlier still
// time out.
func TestSubmitsInFlightDoNotCountAfterAChange(t *testing.T) {
	t.Parallel()
	var began time.Time
	c := carrier{latency: 5 * time.Millisecond, timeout: answerTimeout, lost: func(n int) bool {
		if n == 1 {
			began = time.Now()
		}
		at := time.Since(began) // it opens after 9 s; the probe follows after 14 s
		return at > time.Second && at < 12*time.Second
	}}
	o := flow(t, &c, 300, 40*time.Second)
	var got []string
	for _, change := range o.changes {
		got = append(got, fmt.Sprintf("%v>%v", change.From, change.To))
	}
	if want := "[closed>open open>half_open half_open>closed]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// TestAChangeReportsItsCause: the number of failed submits and the most frequent code.
func TestAChangeReportsItsCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r provider.Result
		var last breaker.Change
		b := breaker.New(&scriptedChannel{
			answer: func(context.Context) provider.Result { return r },
		}, breaker.Config{
			Name: "a", OpenFor: time.Second, OnChange: func(c breaker.Change) { last = c },
		})
		send := func(outcome provider.Outcome, code string, n int) {
			r = provider.Result{Outcome: outcome, Code: code}
			for range n {
				b.Send(t.Context(), provider.Submission{ID: "m"})
			}
		}
		expect := func(want breaker.Change, part float64) {
			t.Helper()
			if last != want || last.Share() != part {
				t.Errorf("%+v with share %v, want %+v with %v", last, last.Share(), want, part)
			}
		}
		send(provider.Refused, "500", 3)
		send(provider.Accepted, "", 5)
		send(provider.Unknown, "timeout", 2)
		send(provider.Refused, "500", 3)
		expect(breaker.Change{
			From: breaker.Closed, To: breaker.Open,
			Stats: breaker.Stats{Failures: 8, Submits: 13, Code: "500", Coded: 6},
		}, 8.0/13)
		time.Sleep(time.Second + 1)
		b.State()
		expect(breaker.Change{From: breaker.Open, To: breaker.HalfOpen}, 0)
		send(provider.Refused, "503", 1)
		expect(breaker.Change{
			From: breaker.HalfOpen, To: breaker.Open,
			Stats: breaker.Stats{Failures: 1, Submits: 1, Code: "503", Coded: 1},
		}, 1)
		time.Sleep(time.Second + 1)
		send(provider.Accepted, "", 1)
		expect(breaker.Change{
			From: breaker.HalfOpen, To: breaker.Closed, Stats: breaker.Stats{Submits: 1},
		}, 0)
		for range 5 { // an hour apart, so that the window holds one at a time
			send(provider.Refused, "402", 1)
			time.Sleep(time.Hour)
		}
		expect(breaker.Change{
			From: breaker.Closed, To: breaker.Open,
			Stats: breaker.Stats{Failures: 5, Submits: 5, Code: "402", Coded: 5},
		}, 1)
	})
}
