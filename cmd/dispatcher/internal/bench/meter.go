package bench

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// arrival is one submit that a carrier has read.
type arrival struct {
	number       int // of the message
	produced, at time.Time
}

func (a *arrival) delay() time.Duration { return a.at.Sub(a.produced) }

// meter records when the carriers read submits, how old the messages were by then, and when all
// receipts were taken.
type meter struct {
	mu        sync.Mutex
	seen      []arrival // guarded by mu; roughly in order of arrival
	delivered time.Time // guarded by mu; zero without receipts
}

// end records that all receipts have been taken.
func (m *meter) end(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.delivered = at
}

// add records one submit. The first word of the text is the message's number, the second the time
// at which it was produced.
func (m *meter) add(text string, at time.Time) {
	words := strings.SplitN(text, " ", 3)
	if len(words) < 3 {
		return
	}
	number, err := strconv.Atoi(words[0])
	if err != nil {
		return
	}
	produced, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, arrival{number: number, produced: time.Unix(0, produced), at: at})
}

func (m *meter) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.seen)
}

// arrivals are those so far, in the order in which the carriers read them.
func (m *meter) arrivals() []arrival {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := slices.Clone(m.seen)
	slices.SortFunc(seen, func(a, b arrival) int { return a.at.Compare(b.at) })
	return seen
}

// warmUp is the part of a run that is not counted.
const warmUp = 0.2

// rate is the throughput after the warm-up, in messages per second: until the last submit, with
// receipts until all are taken.
func (m *meter) rate() float64 {
	seen := m.arrivals()
	from, last := int(warmUp*float64(len(seen))), len(seen)-1
	m.mu.Lock()
	defer m.mu.Unlock()
	end := seen[last].at
	if !m.delivered.IsZero() {
		end = m.delivered
	}
	return float64(last-from) / end.Sub(seen[from].at).Seconds()
}

// percentiles of the delays after the warm-up.
func (m *meter) percentiles() Latency {
	seen := m.arrivals()
	seen = seen[int(warmUp*float64(len(seen))):]
	delays := make([]time.Duration, len(seen))
	for i := range seen {
		delays[i] = seen[i].delay()
	}
	return percentiles(delays)
}

// percentiles of delays; there must be at least one.
func percentiles(delays []time.Duration) Latency {
	slices.Sort(delays)
	at := func(q float64) float64 {
		return float64(delays[int(q*float64(len(delays)-1))]) / float64(time.Millisecond)
	}
	return Latency{P50: at(0.50), P95: at(0.95), P99: at(0.99)}
}
