package main

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// What the benchmark publishes: so many messages a second, for so long, while a process is killed at this interval.
const (
	loopRate     = 300
	loopDuration = 60 * time.Second
	killInterval = 2 * time.Second
)

// BenchmarkCrashLoop measures what two processes accept in a minute, alone and beside a third that is killed every 2 s and
// started again at once. See docs/benchmark.md.
func BenchmarkCrashLoop(b *testing.B) {
	b.Run("two processes", func(b *testing.B) { benchmarkCrashLoop(b, false) })
	b.Run("and one in a crash loop", func(b *testing.B) { benchmarkCrashLoop(b, true) })
}

func benchmarkCrashLoop(b *testing.B, crashes bool) {
	for range b.N {
		s := newStage(b, plot{settings: map[string]string{"LOG_LEVEL": "info"}})
		s.runAll(2)
		s.joined(2)
		end := make(chan struct{})
		var killer chan struct{}
		if crashes {
			killer = make(chan struct{})
			go func() { defer close(killer); s.killAgainAndAgain(end) }()
		}
		began := s.now()
		s.publishSteadily()
		accepted := query(b, s.postgres, pgx.RowTo[time.Time], `select settled_at from audit.attempts where outcome = 'accepted' order by 1`)
		close(end)
		if killer != nil {
			<-killer
		}
		b.ReportMetric(float64(len(accepted))/loopDuration.Seconds(), "accepted/s")
		b.ReportMetric(longestGap(append([]time.Time{began}, accepted...)).Seconds(), "longest_silence_s")
		b.ReportMetric(float64(s.count(`select count(*) from audit.messages where state = 'unknown'`)), "unknown")
	}
}

// killAgainAndAgain starts a process and kills it, until end is closed.
func (s *stage) killAgainAndAgain(end <-chan struct{}) {
	for {
		p := s.run("crashes")
		select {
		case <-time.After(killInterval):
			p.kill(s.t)
		case <-end:
			return
		}
	}
}

// publishSteadily spreads the messages evenly over the time and all partitions.
func (s *stage) publishSteadily() {
	all := messages("steady", loopRate*int(loopDuration/time.Second))
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	began := time.Now()
	for sent := 0; sent < len(all); {
		<-ticker.C
		due := min(len(all), int(time.Since(began).Seconds()*loopRate))
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
