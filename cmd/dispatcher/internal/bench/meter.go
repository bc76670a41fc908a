package bench

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// meter notes when the carriers read submits, and how old the messages were by then.
type meter struct {
	mu    sync.Mutex
	times []time.Time     // guarded by mu; one per submit, in order of arrival
	delay []time.Duration // guarded by mu; since the message was produced
}

// add notes one submit. The second word of the text is when it was produced.
func (m *meter) add(text string, at time.Time) {
	words := strings.SplitN(text, " ", 3)
	if len(words) < 3 {
		return
	}
	produced, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.times = append(m.times, at)
	m.delay = append(m.delay, at.Sub(time.Unix(0, produced)))
}

func (m *meter) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.times)
}

// warmUp is the part of a run that is not counted.
const warmUp = 0.2

// rate is the throughput in submits per second after the warm-up.
func (m *meter) rate() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.SortFunc(m.times, time.Time.Compare)
	from := int(warmUp * float64(len(m.times)))
	last := len(m.times) - 1
	return float64(last-from) / m.times[last].Sub(m.times[from]).Seconds()
}

// percentiles of the delays after the warm-up.
func (m *meter) percentiles() Latency {
	m.mu.Lock()
	defer m.mu.Unlock()
	delays := slices.Clone(m.delay[int(warmUp*float64(len(m.delay))):])
	slices.Sort(delays)
	at := func(q float64) float64 {
		return float64(delays[int(q*float64(len(delays)-1))]) / float64(time.Millisecond)
	}
	return Latency{P50: at(0.50), P95: at(0.95), P99: at(0.99)}
}
