package smpp

import (
	"errors"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// submitSignal is what the end of a submit shows about its bind.
type submitSignal uint8

const (
	noSignal   submitSignal = iota // nothing
	signalGood                     // the peer works, whether or not it took the message
	signalBad                      // it refused for reasons of its own, or did not answer in time
)

// maxFaults failures make a bind unhealthy, if at least half of the submits from the first to the
// last of them failed. Without this, a bind that refuses everything at once would always be the
// least loaded one and take the messages of the healthy ones.
const maxFaults = 5

// signalOf reads the outcome of a call before the sender gets its token. A refusal of the message
// alone does not count for the bind.
func (c *Config) signalOf(one *call) submitSignal {
	switch one.outcome {
	case answered:
		switch m := c.statusMeaning(one.status, one.source); {
		case m.Unfit:
			return noSignal
		case m.Outcome == provider.Refused:
			return signalBad
		}
		return signalGood
	case noAnswer:
		if one.why == whyTimeout && !one.abandonedEarly {
			return signalBad
		}
	case unsent:
	}
	return noSignal
}

// silenceThreshold is how long a submit must have been unanswered, when its sender gives up, to
// count against the bind. A submit that waited for a slot until shortly before its deadline does
// not count.
func (c *Config) silenceThreshold() time.Duration {
	if c.SendTimeout > 0 {
		return min(c.ResponseTimeout, c.SendTimeout) / 2
	}
	return c.ResponseTimeout / 2
}

// record counts the signal of a submit of s; mu is held. It reports whether the health of s
// changed. A failure does not count once a later submit was answered: lost answers time out
// together, long after later submits were answered. Nor does an answer to an earlier submit clear
// later failures: a slow peer still answers earlier submits while it refuses all new ones.
func (p *pool) record(s *session, w submitSignal, order uint64) (changed bool) {
	was := s.slots.unhealthy
	switch w {
	case noSignal:
		return false
	case signalGood:
		s.slots.answered = max(s.slots.answered, order)
		if order < s.slots.lastFault {
			return false
		}
		s.slots.faults, s.slots.unhealthy = 0, false
	case signalBad:
		if order < s.slots.answered {
			return false
		}
		if s.slots.faults == 0 {
			s.slots.firstFault = order
		}
		s.slots.faults++
		s.slots.firstFault = min(s.slots.firstFault, order)
		s.slots.lastFault = max(s.slots.lastFault, order)
		span := s.slots.lastFault - s.slots.firstFault + 1
		s.slots.unhealthy = s.slots.faults >= maxFaults && 2*s.slots.faults >= span
		if s.slots.unhealthy {
			s.slots.probeAt = time.Now().Add(p.probe)
		}
	}
	switch {
	case was == s.slots.unhealthy:
		return false
	case was:
		p.unhealthy--
	default:
		p.unhealthy++
	}
	select {
	case s.health <- struct{}{}:
	default:
	}
	return true
}

// endedUnhealthy reports whether a session that ended with err did not work before: the peer was
// silent or took no messages.
func (s *session) endedUnhealthy(err error) bool {
	return errors.Is(err, errEnquireLink) || errors.Is(err, errStalled) ||
		errors.Is(err, errSlowPDU) || s.pool.isUnhealthy(s)
}

// isUnhealthy reports whether s is unhealthy.
func (p *pool) isUnhealthy(s *session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return s.slots.unhealthy
}

// takesNew reports whether s gets new messages; mu is held. An unhealthy session gets only a probe
// now and then. If all are unhealthy, all take messages, because the breaker decides about the
// channel as a whole.
func (p *pool) takesNew(s *session, now time.Time) bool {
	return !s.slots.unhealthy || p.unhealthy == len(p.sessions) ||
		s.slots.used == 0 && !now.Before(s.slots.probeAt)
}

// now is the time if takesNew needs it; mu is held.
func (p *pool) now() (now time.Time) {
	if p.unhealthy > 0 {
		now = time.Now()
	}
	return now
}

// probing reports whether s only gets probes.
func (p *pool) probing(s *session) bool {
	return s.slots.unhealthy && p.unhealthy < len(p.sessions)
}

// fits reports whether s has n free slots; mu is held. A message with more parts than a narrowed
// window is sent when nothing else is in flight.
func (p *pool) fits(s *session, n int) bool {
	limit := p.window
	if s.slots.limit > 0 {
		limit = s.slots.limit
	}
	return s.slots.used+n <= limit || s.slots.used == 0 && n <= p.window
}

// grantAll gives the free slots of every session to waiters; mu is held.
func (p *pool) grantAll() {
	for _, s := range p.sessions {
		p.grant(s)
	}
}

// States of congestion (SMPP 5.0 section 4.8.4.18): up to 89 there is none, up to 99 congestion is
// near, 100 is congested.
const nearCongestion, congested = 90, 100

// congestion returns the congestion_state of an answer; zero if it has none.
func congestion(tlvs pdu.TLVs) int {
	state, _ := tlvs.Uint(pdu.TagCongestionState)
	return min(int(state), congested)
}

// limitWindow limits how much of the window of s is used: all of it below nearCongestion, one
// submit at congested. The answer to that submit updates the limit.
func (p *pool) limitWindow(s *session, state int) {
	limit := 0
	if state >= nearCongestion {
		limit = max(1, p.window*(congested-state)/(congested-nearCongestion))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if wider := limit == 0 || limit > s.slots.limit; s.slots.limit != limit {
		s.slots.limit = limit
		if wider && s.slots.joined {
			p.grant(s)
		}
	}
}
