package pipeline

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"dispatcher/provider"
)

// Times of a steady load on a simulated clock.
const (
	paceTick    = 10 * time.Millisecond
	paceFault   = 2 * time.Second // the third channel becomes faulty
	paceEnd     = 14 * time.Second
	paceTimeout = 9 * time.Second       // of a submission without an answer
	settling    = 30 * time.Millisecond // how long an answered attempt keeps its slot
)

// paced simulates a process with three channels of equal weight. Claims, carriers and time are a
// model; how channels are measured, and what room follows, is the real code.
type paced struct {
	began   time.Time
	now     time.Duration
	latency func(c, n int) time.Duration // of submission n on a channel; 0 for no answer
	workers [3]*worker
	sent    [3]int
	ends    []pacedEnd
	slots   int
}

// pacedEnd is the time at which a sender of a channel gets an answer, or at which a slot becomes
// free, with sender -1.
type pacedEnd struct {
	at         time.Duration
	c, sender  int
	unanswered bool
}

// pacedMessage is a message that was drawn for a channel.
type pacedMessage struct {
	first int
	made  time.Duration
}

func newPaced(slots int, latency func(c, n int) time.Duration) *paced {
	p := &paced{began: time.Now(), latency: latency, slots: slots}
	for c := range p.workers {
		p.workers[c] = &worker{
			load: &load{}, concurrency: 500, began: p.began, outSince: make([]atomic.Int64, 500),
		}
	}
	return p
}

// answer ends the submissions and slots whose time has come.
func (p *paced) answer() {
	var settles []pacedEnd
	p.ends = slices.DeleteFunc(p.ends, func(e pacedEnd) bool {
		if e.at > p.now {
			return false
		}
		if e.sender < 0 {
			p.slots++
			return true
		}
		w, result := p.workers[e.c], provider.Result{Outcome: provider.Accepted}
		if e.unanswered {
			result.Outcome = provider.Unknown
		}
		took := p.now - time.Duration(w.outSince[e.sender].Swap(0)-1)
		w.noteAnswer(&result, took, p.began.Add(p.now))
		w.load.release()
		settles = append(settles, pacedEnd{at: p.now + settling, sender: -1})
		return true
	})
	p.ends = append(p.ends, settles...)
}

// submit sends one message on a channel.
func (p *paced) submit(c int) {
	w := p.workers[c]
	sender := 0
	for w.outSince[sender].Load() > 0 {
		sender++
	}
	w.outSince[sender].Store(int64(p.now) + 1)
	w.load.inFlight.Add(1)
	p.slots--
	e := pacedEnd{c: c, sender: sender, at: p.now + p.latency(c, p.sent[c])}
	if e.at == p.now || e.at > p.now+paceTimeout {
		e.at, e.unanswered = p.now+paceTimeout, true
	}
	p.sent[c]++
	p.ends = append(p.ends, e)
}

// claim submits messages that have room, in order: a message waits for a first choice that is not
// late, and falls back from a late one. It returns the waiting messages.
func (p *paced) claim(waiting []pacedMessage, left func(pacedMessage)) (still []pacedMessage) {
	channels := make([]inFlight, len(p.workers))
	for c, w := range p.workers {
		channels[c] = w.inFlight(p.began.Add(p.now))
		channels[c].portion = 1 / float64(len(p.workers))
	}
	each := rooms(channels, paceSlots)
	for _, m := range waiting {
		c := m.first
		if !each[c].Has(false) && each[c].PassOver {
			for _, other := range []int{0, 1, 2} {
				if !each[c].Has(false) && each[other].Has(false) {
					c = other
				}
			}
		}
		if p.slots == 0 || !each[c].Has(false) {
			still = append(still, m)
			continue
		}
		each[c].Take(false)
		p.submit(c)
		left(m)
	}
	return still
}

const paceSlots = 475

// TestAFaultyChannelLeavesTheOthersTheirPace: 900 messages a second over three channels that answer
// after 300 ms need 297 of 475 slots. Whatever the third one does, messages of the others leave as
// in a healthy process: nearly all at once, and none waits for long.
func TestAFaultyChannelLeavesTheOthersTheirPace(t *testing.T) {
	t.Parallel()
	const usual, perTick = 300 * time.Millisecond, 3
	for name, fault := range map[string]func(n int) time.Duration{
		"healthy": func(int) time.Duration { return usual },
		"2 % of answers lost": func(n int) time.Duration {
			if n%50 == 0 {
				return 0
			}
			return usual
		},
		"answers after 8 s":   func(int) time.Duration { return 8 * time.Second },
		"answers after 1.2 s": func(int) time.Duration { return 1200 * time.Millisecond },
		"answers nothing":     func(int) time.Duration { return 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p *paced // its latency depends on its clock
			p = newPaced(paceSlots, func(c, n int) time.Duration {
				if c == 2 && p.now >= paceFault {
					return fault(n)
				}
				return usual
			})
			var waiting []pacedMessage
			var delays []time.Duration
			for ; p.now < paceEnd; p.now += paceTick {
				p.answer()
				for range perTick {
					for c := range p.workers {
						waiting = append(waiting, pacedMessage{first: c, made: p.now})
					}
				}
				waiting = p.claim(waiting, func(m pacedMessage) {
					if m.first != 2 && m.made >= paceFault {
						delays = append(delays, p.now-m.made)
					}
				})
			}
			slices.Sort(delays)
			offered := 2 * perTick * int((paceEnd-paceFault)/paceTick)
			p99 := delays[len(delays)*99/100]
			if len(delays)*100 < offered*98 || p99 > 100*time.Millisecond {
				t.Errorf("%d of %d left, p99 after %s", len(delays), offered, p99)
			}
		})
	}
}
