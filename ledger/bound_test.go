package ledger_test

import (
	"testing"
	"time"

	"dispatcher/ledger/ledgertest"
)

// measured are the rounds of a benchmark that has a bound.
type measured struct {
	rounds     int
	clock, cpu time.Duration
}

// round measures one round.
func (m *measured) round(b *testing.B, work func()) {
	b.Helper()
	clock, cpu := time.Now(), ledgertest.CPUTime(b)
	work()
	m.rounds++
	m.clock += time.Since(clock)
	m.cpu += ledgertest.CPUTime(b) - cpu
}

// within reports the CPU time, and fails the benchmark if a round took longer than most, both by
// the clock and in CPU time. The clock alone overstates the cost on a busy machine. CPU time alone
// overstates it where PostgreSQL uses several cores.
func (m *measured) within(b *testing.B, most time.Duration) {
	b.Helper()
	clock, cpu := m.clock/time.Duration(m.rounds), m.cpu/time.Duration(m.rounds)
	b.ReportMetric(cpu.Seconds(), "cpu-s/op")
	if min(clock, cpu) > most {
		b.Errorf("it took %s, and %s of CPU time: more than %s", clock, cpu, most)
	}
}
