package pipeline

import (
	"maps"
	"sync"
	"time"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// minutes counts what this process granted, per channel and minute of the database's clock.
type minutes struct {
	mu      sync.Mutex
	at      time.Time                // guarded by mu; the minute that is counted now
	current map[string]ledger.Grants // guarded by mu
	before  map[string]ledger.Grants // guarded by mu; of the minute before at
}

// add counts what a claim granted. A clock that stepped back goes on counting in the later minute.
func (m *minutes) add(now time.Time, channel string, granted ledger.Grants) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.roll(now)
	m.current[channel] = m.current[channel].Plus(granted)
}

// last is what was granted in the last whole minute, by channel. The caller may keep it.
func (m *minutes) last(now time.Time) map[string]ledger.Grants {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.roll(now)
	return maps.Clone(m.before)
}

// roll moves on to the minute that contains now.
func (m *minutes) roll(now time.Time) {
	at := admission.Minute.Start(now, time.UTC)
	if m.current != nil && !at.After(m.at) {
		return
	}
	m.before = map[string]ledger.Grants{}
	if m.current != nil && at.Sub(m.at) == time.Minute {
		m.before = m.current
	}
	m.at, m.current = at, map[string]ledger.Grants{}
}
