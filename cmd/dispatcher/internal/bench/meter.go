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

// meter records when the carriers read submits, how old the messages were by then, and how the
// number of delivered messages grows.
type meter struct {
	mu        sync.Mutex
	seen      []arrival // guarded by mu; roughly in order of arrival
	delivered []mark    // guarded by mu; one for each change
}

// mark is how many messages were delivered at a moment.
type mark struct {
	count int
	at    time.Time
}

// note records how many messages are delivered now.
func (m *meter) note(delivered int, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.delivered); n == 0 || m.delivered[n-1].count < delivered {
		m.delivered = append(m.delivered, mark{delivered, at})
	}
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

// rate is the throughput after the warm-up: submits per second, with receipts deliveries per
// second.
func (m *meter) rate(receipts bool) float64 {
	if receipts {
		return m.deliveryRate()
	}
	seen := m.arrivals()
	from, last := int(warmUp*float64(len(seen))), len(seen)-1
	return float64(last-from) / seen[last].at.Sub(seen[from].at).Seconds()
}

func (m *meter) deliveryRate() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.delivered[len(m.delivered)-1]
	from := m.delivered[slices.IndexFunc(m.delivered, func(k mark) bool {
		return float64(k.count) >= warmUp*float64(last.count)
	})]
	return float64(last.count-from.count) / last.at.Sub(from.at).Seconds()
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
