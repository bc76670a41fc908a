// Package steer changes weights by itself, as far as operators have asked for it: it makes the
// steps of ramps and holds them when figures leave their band, and it lowers the effective weights
// of channels that fail. Where guards ask for it, it pauses what gets far more messages than usual.
//
//	ramp.go     what is to be done about a ramp (pure)
//	band.go     whether its figures are in the band (pure)
//	health.go   which effective weight moves next (pure)
//	history.go  what a version moved, and what a move makes of the effects (pure)
//	steer.go    the loop
//	ramps.go    what it does about ramps
//	heal.go     what it does about health
//	guard.go    which guards trip (pure)
//	guards.go   what it does about them
//
// Every instance runs the loop and none leads. Each write says what it is based on: a routing
// version, or where a ramp stands. The second of two writes is refused, changes nothing and is
// tried again.
package steer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"dispatcher/config"
	"dispatcher/ledger"
)

// DefaultEvery is how often ramps and health are looked at.
const DefaultEvery = 2 * time.Second

// Config is what a Steerer needs. All fields are required.
type Config struct {
	Ledger *ledger.Ledger
	// NewRouting makes of a document what the ledger applies; before is the routing in force.
	NewRouting func(doc *config.Document, before *config.Routing, author, reason string,
		expect *int64) ledger.NewRouting
	// Awaits is how long after its provider's answer a receipt of a channel is expected; 0 where
	// none come.
	Awaits func(*config.Channel) time.Duration
	// Every is how often it looks.
	Every time.Duration
	// SendTimeout is how long a submit may wait for its answer: an attempt counts until that has
	// come.
	SendTimeout time.Duration
	Registry    prometheus.Registerer
	Log         zerolog.Logger
	// Trouble is told of every failure; the next look tries again. It must not block.
	Trouble func(where string, err error)
}

// Steerer is the loop of one process.
type Steerer struct {
	cfg        Config
	metrics    *metrics
	seen       snapshot               // owned by Run
	history    history                // owned by Run
	judged     map[int64]time.Time    // owned by Run: when each ramp's figures were counted last
	failed     figures[ledger.Fault]  // owned by Run
	delivering figures[ledger.Timely] // owned by Run
	guarded    guarded                // owned by Run
}

// snapshot is the current routing as last read.
type snapshot struct {
	ledger.RoutingVersion
	document *config.Document
	doc      *config.Routing // of the document, with the effects of the version
}

// New returns a Steerer; Run does its work.
func New(cfg Config) (*Steerer, error) {
	switch {
	case cfg.Ledger == nil || cfg.NewRouting == nil || cfg.Awaits == nil || cfg.Registry == nil ||
		cfg.Trouble == nil:
		return nil, errors.New("steer: Ledger, NewRouting, Awaits, Registry and Trouble are " +
			"required")
	case cfg.Every <= 0 || cfg.SendTimeout <= 0:
		return nil, errors.New("steer: Every and SendTimeout must be above 0")
	}
	return &Steerer{
		cfg: cfg, metrics: newMetrics(cfg.Registry), history: history{},
		judged: map[int64]time.Time{}, failed: figures[ledger.Fault]{},
		delivering: figures[ledger.Timely]{},
	}, nil
}

// bookingTime is what an answer may take to come into the ledger, while that is busy; no channel is
// judged by what takes longer.
const bookingTime = time.Minute

// late is what lies at most between the claim of an attempt and the booking of its answer.
func (s *Steerer) late() time.Duration { return s.cfg.SendTimeout + bookingTime }

// Bounds of one look.
const (
	// maxMoves is what it does in a row, so that an error in reasoning cannot write versions
	// without end.
	maxMoves = 100
	// longestLook is how long it takes in all, and longestTry what it spends on one move of one
	// ramp or one route: a count over a table that has grown too large, or a lock that nobody gives
	// back, must not end all steering.
	longestLook = 30 * time.Second
	longestTry  = 5 * time.Second
)

// Run repeats the loop until ctx ends.
func (s *Steerer) Run(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.Every)
	defer ticker.Stop()
	for {
		if err := s.look(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Trouble("steer", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// look makes all moves that are due. After each it reads the routing anew. What fails on one ramp
// or route stops no other; the errors are joined.
func (s *Steerer) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	failed := failures{}
	for range maxMoves {
		moved, err := s.once(ctx, failed)
		switch {
		case outrun(err):
			// somebody else was quicker: what he did is judged at the next look
			return failed.join()
		case err != nil || !moved:
			return errors.Join(failed.join(), err)
		}
	}
	return failed.join()
}

// failures are what went wrong in one look, by the ramp or route that it went wrong on. Those
// are left alone until the next look.
type failures map[string]error

// try makes the move that is due on one ramp or route, if one is. The error is one that ends the
// look.
func (f failures) try(
	ctx context.Context, what string, move func(context.Context) (moved bool, err error),
) (moved bool, err error) {
	if f[what] != nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, longestTry)
	defer cancel()
	if moved, err = move(ctx); err == nil || outrun(err) {
		return moved, err
	}
	f[what] = fmt.Errorf("%s: %w", what, err)
	return false, nil
}

// join is all of them in one error, nil when there are none.
func (f failures) join() error {
	all := make([]error, 0, len(f))
	for _, what := range slices.Sorted(maps.Keys(f)) {
		all = append(all, f[what])
	}
	return errors.Join(all...)
}

// outrun reports whether a write was refused because it was based on what is past.
func outrun(err error) bool {
	_, conflict := errors.AsType[*ledger.VersionConflictError](err)
	return conflict || errors.Is(err, ledger.ErrRampMoved)
}

// once makes the first move that is due on any ramp or route that has not failed yet.
func (s *Steerer) once(ctx context.Context, failed failures) (moved bool, err error) {
	err = s.refresh(ctx)
	switch {
	case errors.Is(err, ledger.ErrNoRouting):
		return false, nil
	case err != nil:
		return false, err
	}
	// Read after the routing, which may have changed in between: what a ramp does about that is
	// refused by the ledger, or checked before it is superseded.
	ramps, err := s.cfg.Ledger.Ramps.List(ctx, false)
	if err != nil {
		return false, err
	}
	now, err := s.cfg.Ledger.Clock(ctx)
	if err != nil {
		return false, err
	}
	if moved, err = s.ramps(ctx, ramps, now, failed); moved || err != nil {
		return moved, err
	}
	if moved, err = s.health(ctx, now, failed); moved || err != nil {
		return moved, err
	}
	return s.guards(ctx, now, failed)
}

// refresh reads the current routing and, when it has changed, parses it.
func (s *Steerer) refresh(ctx context.Context) error {
	current, err := s.cfg.Ledger.Routing.Current(ctx)
	if err != nil {
		return err
	}
	if current.Version == s.seen.Version {
		return nil
	}
	document, err := config.ParseApplied(fmt.Sprintf("routing version %d", current.Version),
		[]byte(current.Document))
	if err != nil {
		return err
	}
	effects, err := config.ParseEffects(current.Effects)
	if err != nil {
		return err
	}
	s.seen = snapshot{current, document, document.Routing.With(effects)}
	s.metrics.shares(s.seen.doc)
	return nil
}
