package main

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/config/tier"
)

// killInterval is the time between two crashes.
const killInterval = 2 * time.Second

// TestTwoProcessesKeepTheirThroughputBesideACrashLoop compares two stages that get the same
// messages at the same time. One has two processes. The other has the same two and a third that is
// killed every two seconds and restarted at once. Both stages run on the same machine, so its load
// affects both. The effect is larger with real Kafka than with the embedded one; see .ci/kafka-e2e.
func TestTwoProcessesKeepTheirThroughputBesideACrashLoop(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const rate, duration = 300, time.Minute
	alone, beside := newLoopStage(t), newLoopStage(t)
	end := make(chan struct{})
	var killer, publishers sync.WaitGroup
	killer.Go(func() { beside.killRepeatedly(end) })
	began := alone.now()
	publishers.Go(func() { alone.publishSteadily(rate, duration) })
	publishers.Go(func() { beside.publishSteadily(rate, duration) })
	publishers.Wait()
	// A busy machine delays both stages, so the second one's time begins when the first is done.
	const total = int64(rate * duration / time.Second)
	without := alone.acceptedSince(began, total, stepTimeout)
	with := beside.acceptedSince(began, total, catchUp)
	close(end)
	killer.Wait()
	t.Logf("alone %+v, beside a crash loop %+v", without, with)
	if without.accepted == 0 || 10*with.accepted < 9*without.accepted {
		t.Errorf("accepted %d messages alone and %d beside a crash loop", without.accepted,
			with.accepted)
	}
}

// loopCount is how many messages a stage accepted, and the longest time in which it accepted none.
type loopCount struct {
	accepted int
	silence  time.Duration
}

func newLoopStage(t testing.TB) *stage {
	t.Helper()
	s := newStage(t, stageConfig{
		settings: map[string]string{"LOG_LEVEL": "info", "SEND_TIMEOUT": hasty},
	})
	s.runAll(2)
	s.joined(2)
	return s
}

// catchUp is how long the stage with the crash loop gets to accept the rest. It is much shorter
// than the session timeout, after which a broker assigns the partitions of a dead member to others.
const catchUp = 10 * time.Second

// acceptedSince waits until total messages are accepted or the time is over. Then it counts those
// that are.
func (s *stage) acceptedSince(began time.Time, total int64, within time.Duration) loopCount {
	for end := time.Now().Add(within); time.Now().Before(end) &&
		s.count(`select count(*) from audit.attempts where outcome = 'accepted'`) < total; {
		await(s.t.Context(), 200*time.Millisecond)
	}
	accepted := query(s.t, s.postgres, pgx.RowTo[time.Time], `
		select settled_at from audit.attempts where outcome = 'accepted' order by 1`)
	return loopCount{len(accepted), longestGap(append([]time.Time{began}, accepted...))}
}

// killRepeatedly starts a process and kills it, again and again, until end is closed.
func (s *stage) killRepeatedly(end <-chan struct{}) {
	for {
		p := s.run("crashes")
		select {
		case <-time.After(killInterval):
			p.kill(s.t)
		case <-end:
			p.kill(s.t) // it may not be far enough for an orderly stop
			return
		}
	}
}

// publishSteadily spreads messages evenly over the duration and all partitions.
func (s *stage) publishSteadily(rate int, duration time.Duration) {
	all := messages("steady", rate*int(duration/time.Second))
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	began := time.Now()
	for sent := 0; sent < len(all); {
		<-ticker.C
		due := min(len(all), int(time.Since(began).Seconds()*float64(rate)))
		s.publish("bulk", all[sent:due])
		sent = due
	}
}

func longestGap(times []time.Time) (longest time.Duration) {
	slices.SortFunc(times, time.Time.Compare)
	for i := 1; i < len(times); i++ {
		longest = max(longest, times[i].Sub(times[i-1]))
	}
	return longest
}
