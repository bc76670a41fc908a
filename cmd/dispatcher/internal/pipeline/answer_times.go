package pipeline

import (
	"math"
	"sync"
	"time"
)

const (
	// answerMinutes is how many minutes of answer times are kept, the current one included.
	answerMinutes = 5
	// answerStep is the ratio of the bounds of two neighbouring counts.
	answerStep = 1.2
	// answerCounts buckets cover a millisecond to a minute.
	answerCounts = 61
)

// answerTimes is a histogram of the answer times of the last minutes.
type answerTimes struct {
	mu      sync.Mutex
	minutes [answerMinutes]answerMinute // guarded by mu; minute n is at n modulo answerMinutes
}

type answerMinute struct {
	at     int64 // minutes since 1970
	counts [answerCounts]int32
}

// add counts an answer.
func (a *answerTimes) add(took time.Duration, now time.Time) {
	at := now.Unix() / 60
	a.mu.Lock()
	defer a.mu.Unlock()
	m := &a.minutes[at%answerMinutes]
	if m.at != at {
		*m = answerMinute{at: at}
	}
	m.counts[answerCount(took)]++
}

// answerCount is the index of the bucket for an answer time.
func answerCount(took time.Duration) int {
	if took <= time.Millisecond {
		return 0
	}
	steps := math.Log(float64(took)/float64(time.Millisecond)) / math.Log(answerStep)
	return min(int(math.Ceil(steps)), answerCounts-1)
}

// recent are the counts of the last minutes by their upper bound in microseconds; nil when empty.
func (a *answerTimes) recent(now time.Time) map[int64]int64 {
	at := now.Unix() / 60
	a.mu.Lock()
	defer a.mu.Unlock()
	var out map[int64]int64
	for i := range a.minutes {
		if m := &a.minutes[i]; m.at > at-answerMinutes && m.at <= at {
			for j, n := range m.counts {
				if n == 0 {
					continue
				}
				if out == nil {
					out = map[int64]int64{}
				}
				out[int64(1000*math.Pow(answerStep, float64(j)))] += int64(n)
			}
		}
	}
	return out
}
