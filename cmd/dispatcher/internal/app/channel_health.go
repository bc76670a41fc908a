package app

import (
	"fmt"
	"math"
	"sync"

	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/outage"
	"dispatcher/provider/breaker"
	"dispatcher/provider/smpp"
	"dispatcher/provider/smpp/pdu"
)

// channelHealth logs the changes of a channel's breaker and binds. When the provider is away both
// report it; that is one outage, and only the first report warns.
type channelHealth struct {
	name    string
	log     zerolog.Logger
	outages *outage.Log

	mu    sync.Mutex
	binds map[bindName]bool // guarded by mu: whether each takes messages
}

// bindName identifies transmitter and receiver of one bind number.
type bindName struct {
	number int
	role   pdu.Command
}

// Reporters of outages of a channel.
const (
	byBreaker = "breaker"
	byBinds   = "binds"
)

// newChannelHealth drops the reports of earlier connections. Without outages it only logs.
func newChannelHealth(channel string, log zerolog.Logger, outages *outage.Log) *channelHealth {
	if outages == nil {
		outages = outage.NewLog(log)
	}
	h := &channelHealth{
		name: channel, log: log.With().Str("channel", channel).Logger(), outages: outages,
		binds: map[bindName]bool{},
	}
	outages.Forget(h.what(), byBreaker)
	outages.Forget(h.what(), byBinds)
	return h
}

// what is the channel's name in reports of outages.
func (h *channelHealth) what() string { return "channel " + h.name }

// breakerChanged logs a change of the breaker. It warns when the breaker opens, unless the channel
// is known to be away, and reminds while it stays open. Other changes during an outage are logged
// at debug level, and its end at info level.
func (h *channelHealth) breakerChanged(c breaker.Change) {
	fields := func(e *zerolog.Event) {
		e.Stringer("from", c.From).Stringer("to", c.To)
		if c.Submits > 0 {
			e.Int("failures", c.Failures).
				Int("submits", c.Submits).
				Float64("failure_share", math.Round(c.Share()*1000)/1000)
		}
		if c.Failures > 0 {
			e.Str("code", c.Code).Int("with_code", c.Coded)
		}
	}
	level := zerolog.DebugLevel
	switch c.To {
	case breaker.Open:
		step := h.outages.Down(outage.Report{
			What:     h.what(),
			Reporter: byBreaker,
			Sentence: breakerChanged,
			Fields: func(e *zerolog.Event) {
				e.Str("channel", h.name)
				fields(e)
			},
		})
		if step != outage.Known {
			return // already logged
		}
		if c.From == breaker.Closed {
			level = zerolog.InfoLevel
		}
	case breaker.Closed:
		level = zerolog.InfoLevel
	case breaker.HalfOpen:
	}
	event := h.log.WithLevel(level)
	fields(event)
	event.Msg(breakerChanged)
	if c.To == breaker.Closed {
		h.outages.Up(h.what(), byBreaker)
	}
}

// breakerChanged is the message of all these log lines; their fields differ.
const breakerChanged = "breaker changed"

// bindChanged logs a change of a bind. The loss of the last bind is an outage of the channel; the
// loss of another one is an outage of that bind when it cannot be bound again at once.
func (h *channelHealth) bindChanged(s smpp.BindState) {
	name := bindName{s.Bind, s.Role}
	one := fmt.Sprintf("bind %d of channel %s", s.Bind, h.name)
	if s.Role == pdu.CommandBindReceiver {
		one = "receiver " + one
	}
	works := s.Phase == smpp.Bound && s.Err == nil
	others := h.note(name, works)
	level := zerolog.DebugLevel
	switch {
	case works:
		level = zerolog.InfoLevel
		h.outages.Up(one, byBinds)
		if s.Role != pdu.CommandBindReceiver {
			h.outages.Up(h.what(), byBinds)
		}
	case s.Phase == smpp.Closed:
		h.outages.Forget(one, byBinds)
		h.outages.Forget(h.what(), byBinds)
	case s.Err == nil: // it is connecting
	case !others:
		h.outages.Down(
			outage.Report{What: h.what(), Reporter: byBinds, Err: s.Err, Sentence: fmt.Sprintf(
				"channel %s has no SMPP bind that takes messages (%s): it is tried again by "+
					"itself; check address and account, or ask the carrier",
				h.name,
				Cause(s.Err),
			)},
		)
	case s.Phase == smpp.Lost:
		level = zerolog.InfoLevel
	default:
		h.outages.Down(
			outage.Report{What: one, Reporter: byBinds, Err: s.Err, Sentence: fmt.Sprintf(
				"%s takes no messages (%s): it is tried again by itself, and the other binds go "+
					"on; check how many binds the account may have, or ask the carrier",
				one,
				Cause(s.Err),
			)},
		)
	}
	h.log.WithLevel(level).
		AnErr("cause", s.Err).
		Int("bind", s.Bind).
		Stringer("phase", s.Phase).
		Msg("smpp bind")
}

// note records the state of a bind, and reports whether another bind takes messages. Receivers take
// none.
func (h *channelHealth) note(name bindName, works bool) (others bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.binds[name] = works
	for other, ok := range h.binds {
		others = others || ok && other != name && other.role != pdu.CommandBindReceiver
	}
	return others
}
