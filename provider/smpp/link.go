package smpp

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"dispatcher/provider/smpp/pdu"
)

// link keeps one bind up: it connects, binds, runs the session until it ends, pauses and starts
// again. run owns it.
type link struct {
	cfg          *Config
	pool         *pool
	bind         int
	role         pdu.Command
	firstAddress int // index of the address that it begins with
	address      int // index of the address that is tried next

	mu    sync.Mutex
	state BindState // guarded by mu
}

// submits reports whether the link carries submit_sm.
func (l *link) submits() bool { return l.role != pdu.CommandBindReceiver }

// run serves until serving ends (with unbind) or life ends (at once). All goroutines of the link
// have ended when it returns.
func (l *link) run(life, serving context.Context) {
	defer l.report(Closed, nil)
	for failures := 0; ; failures++ {
		l.report(Connecting, nil)
		began := time.Now()
		if s, err := l.open(serving); err != nil {
			l.failed(serving, err)
		} else {
			err := l.serve(life, serving, s)
			lasted := time.Since(began) >= l.cfg.ReconnectMax
			if lasted {
				failures = 0
			}
			l.chooseAddress(lasted && !s.endedUnhealthy(err))
		}
		if !pause(serving, backoff(failures, l.cfg.ReconnectMin, l.cfg.ReconnectMax,
			rand.Float64())) {
			return
		}
	}
}

// open returns a bound session.
func (l *link) open(ctx context.Context) (*session, error) {
	conn, err := connect(ctx, l.cfg, l.cfg.Addresses[l.address])
	if err != nil {
		return nil, err
	}
	in, err := bind(ctx, l.cfg, conn, l.role)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return newSession(l.cfg, l.pool, in), nil
}

// chooseAddress picks the address after a session. After a good session, which lasted and whose
// peer worked to the end, the bind returns to its first address, so that binds are distributed
// again after a host was dead. Otherwise it tries the next address: a proxy in front of a dead host
// may accept binds forever and carry nothing.
func (l *link) chooseAddress(good bool) {
	if good {
		l.address = l.firstAddress
		return
	}
	l.address = (l.address + 1) % len(l.cfg.Addresses)
}

// serve runs a session, reports how it ended unless it was stopped on purpose, and returns that
// error.
func (l *link) serve(life, serving context.Context, s *session) error {
	l.report(Bound, nil)
	s.onHealth = func(unhealthy bool) {
		if unhealthy {
			l.report(Bound, ErrUnhealthy)
			return
		}
		l.report(Bound, nil)
	}
	err := s.run(life, serving.Done(), l.submits())
	if serving.Err() == nil {
		l.report(Lost, err)
	}
	return err
}

// failed reports a failed bind and selects the next address.
func (l *link) failed(serving context.Context, err error) {
	if serving.Err() != nil {
		return
	}
	l.address = (l.address + 1) % len(l.cfg.Addresses)
	if l.submits() {
		_, refused := refusedBy(err)
		l.pool.failed(refused)
	}
	l.report(Failed, err)
}

func (l *link) report(phase Phase, err error) {
	state := BindState{Bind: l.bind, Role: l.role, Phase: phase, Err: err}
	l.mu.Lock()
	l.state = state
	l.mu.Unlock()
	if l.cfg.OnState != nil {
		l.cfg.OnState(state)
	}
}

func (l *link) current() BindState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// pause waits for a while; false means that ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// backoff is the pause before the next connection after that many failures in a row. It is evenly
// distributed ("full jitter") between low and a ceiling that starts at twice low and doubles up to
// high. random is from [0, 1).
//
// The floor keeps a wrong password from causing a tight loop. The jitter keeps processes from
// reconnecting at the same moment after an outage.
func backoff(failures int, low, high time.Duration, random float64) time.Duration {
	ceiling := high
	if failures < 30 && low < high>>(failures+1) {
		ceiling = low << (failures + 1)
	}
	return low + time.Duration(random*float64(ceiling-low))
}
