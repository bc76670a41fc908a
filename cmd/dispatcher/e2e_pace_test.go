package main

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config/tier"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// short returns n messages of one segment each.
func short(story string, n int) []envelope.Message {
	all := messages(story, n)
	for i := range all {
		all[i].Text = "[" + all[i].ID + "] Your parcel arrives tomorrow."
	}
	return all
}

// arrived returns the times at which a carrier read submits, ascending.
func (s *stage) arrived(carrier string) []time.Time {
	var times []time.Time
	for _, submit := range s.carriers[carrier].Submits() {
		times = append(times, submit.At)
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}

// TestThreeProcessesPaceAsOne: the submits of three processes together are spread over each second
// and never more than the limit in a calendar second. On the channel with a sliding limit this
// holds for any second.
//
// It runs before the stories that run in parallel: a carrier that gets no CPU time reads late, and
// then counts the submits of two seconds in one.
func TestThreeProcessesPaceAsOne(t *testing.T) {
	tier.LongOnly(t)
	const perSecond = 100
	const seconds = 8
	s := newStage(t, stageConfig{channels: []channel{
		{
			name: "calendar", weight: "50", behaviour: quick(),
			document: fmt.Sprintf("limits: [{window: 1s, max: %d}]", perSecond),
		},
		{
			name: "sliding", weight: "50", behaviour: quick(),
			document: fmt.Sprintf("limits: [{window: 1s, max: %d, sliding: true}]", perSecond),
		},
	}})
	s.joined(len(s.runAll(3)))
	stalls := watchStalls(t)
	n := 2 * perSecond * seconds
	ids := s.publish("bulk", short("pace", n))
	s.settled(n)
	s.checkNoneTwice()
	s.checkAllArrived(ids)
	s.checkWindows()
	stall := stalls()
	slack := int(perSecond * stall / time.Second) // the carriers run in this process
	most := perSecond + slack
	s.checkFullSeconds("calendar", perSecond, perSecond*97/100-int64(slack))

	t.Logf("this process was held up for %s at worst", stall.Round(time.Millisecond))
	for _, name := range []string{"calendar", "sliding"} {
		times := s.arrived(name)
		calendar, fullest := mostInASecond(times), mostWithin(times, time.Second)
		usual, worst := bursts(times)
		t.Logf("%s: %d submits in %s, at most %d in a calendar second, %d in any second; within "+
			"10 ms usually %d, at worst %d",
			name, len(times),
			times[len(times)-1].Sub(times[0]).Round(time.Millisecond), calendar, fullest, usual,
			worst)
		if calendar > most {
			t.Errorf("%s: got %d submits in a calendar second, its limit is %d", name, calendar,
				perSecond)
		}
		if name == "sliding" && fullest > most {
			t.Errorf("%s: got %d submits within a second, its limit is %d", name, fullest, perSecond)
		}
		// The even rate is one in 10 ms, and twice that to catch up. A machine that is busy with other
		// tests delays some submits.
		if usual > perSecond/8+slack || worst > perSecond/2+slack {
			t.Errorf("%s: got %d submits within 10 ms in the median second, %d in the worst", name, usual,
				worst)
		}
	}
}

// checkFullSeconds: while messages wait, at least full slots of each second of the channel are
// used. A busy machine holds claims up, so that is asked of a third of the seconds.
func (s *stage) checkFullSeconds(channel string, perSecond, full int64) {
	s.t.Helper()
	granted := query(s.t, s.postgres, pgx.RowTo[int64], `
		select granted from audit.limit_windows where channel = $1 and window_seconds = 1
		order by window_start`, channel)
	granted = granted[1 : len(granted)-1] // the first and the last second are not whole
	count := 0
	for _, n := range granted {
		if n >= full {
			count++
		}
	}
	if 3*count < len(granted) {
		s.t.Errorf("%s: %v slots of %d a second were used while messages waited", channel, granted,
			perSecond)
	}
}

// mostInASecond returns the largest number of times in one calendar second.
func mostInASecond(times []time.Time) (most int) {
	counts := map[int64]int{}
	for _, at := range times {
		counts[at.Unix()]++
		most = max(most, counts[at.Unix()])
	}
	return most
}

// mostWithin returns the largest number of ascending times in any half-open interval of length
// span.
func mostWithin(times []time.Time, span time.Duration) (most int) {
	from := 0
	for i, at := range times {
		for at.Sub(times[from]) >= span {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

// watchStalls measures how long this process gets no CPU time. The returned function gives the
// longest such time so far, less the 50 ms of each second without release times.
func watchStalls(t testing.TB) (longest func() time.Duration) {
	var worst atomic.Int64
	go func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for last := time.Now(); ; {
			select {
			case <-t.Context().Done():
				return
			case <-ticker.C:
				now := time.Now()
				worst.Store(max(worst.Load(), int64(now.Sub(last))))
				last = now
			}
		}
	}()
	return func() time.Duration { return max(time.Duration(worst.Load())-50*time.Millisecond, 0) }
}

// bursts returns the largest number of times within 10 ms of each calendar second: the median over
// the seconds, and the maximum.
func bursts(times []time.Time) (usual, worst int) {
	seconds := map[int64][]time.Time{}
	for _, at := range times {
		seconds[at.Unix()] = append(seconds[at.Unix()], at)
	}
	var most []int
	for _, inSecond := range seconds {
		most = append(most, mostWithin(inSecond, 10*time.Millisecond))
	}
	slices.Sort(most)
	return most[len(most)/2], most[len(most)-1]
}

// TestThrottledChannelSlowsDownAndRecovers: a provider throttles for a moment. Then both processes
// together send at most half the rate, and later the full rate again. It runs alone, as above.
func TestThrottledChannelSlowsDownAndRecovers(t *testing.T) {
	tier.LongOnly(t)
	const perSecond = 80
	var throttle atomic.Bool
	s := newStage(t, stageConfig{
		channels: []channel{{
			name: "a", weight: "1", document: limitPerSecond(perSecond),
			behaviour: smpptest.Behaviour{
				Decide: func(smpptest.Submit) smpptest.Answer {
					if throttle.Load() {
						return smpptest.Answer{Status: pdu.StatusThrottled}
					}
					return smpptest.Answer{}
				},
			},
		}},
		route: "throttled: wait",
	})
	processes := s.runAll(2)
	s.joined(len(processes))
	stalls := watchStalls(t)
	const n = perSecond * 40
	s.publish("bulk", short("throttle", n))
	carrier := s.carriers["a"]
	tier.Within(t, stepTimeout, "the full rate", func() bool {
		return mostInASecond(s.arrived("a")) >= perSecond*85/100
	})
	asked := time.Now()
	throttle.Store(true)
	tier.Within(t, stepTimeout, "a throttled submit", func() bool {
		return carrier.Stats().Submits > carrier.Stats().Accepted+3
	})
	throttle.Store(false)
	slowed := time.Now()
	s.settled(n)

	s.checkNoneTwice()
	s.checkWindows()
	times := s.arrived("a")
	within := func(begin, end time.Time) []time.Time {
		return slices.DeleteFunc(slices.Clone(times), func(at time.Time) bool {
			return at.Before(begin) || !at.Before(end)
		})
	}
	// The full rate is that of the best second, because the machine has other work too.
	before := mostInASecond(within(time.Time{}, asked))
	after := len(within(slowed.Add(time.Second), slowed.Add(3*time.Second))) / 2
	later := mostInASecond(within(slowed.Add(5*time.Second), time.Now()))
	t.Logf("%d/s before, %d/s after, %d/s later", before, after, later)
	if before < perSecond*85/100 || after > perSecond*70/100 {
		t.Errorf("got %d/s before and %d/s after the throttling", before, after)
	}
	if later < perSecond*85/100-int(perSecond*stalls()/time.Second) {
		t.Errorf("got %d/s after the throttling, the limit is %d/s", later, perSecond)
	}
}
