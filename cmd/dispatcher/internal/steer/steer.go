// Package steer changes weights and pauses by itself, where operators have configured that: it
// makes the steps of ramps and holds them when figures leave their band; it lowers the effective
// weights of failing channels; it pauses tenants and numbers that a guard trips on.
//
//	ramp.go     the next move of a ramp (pure)
//	band.go     whether a ramp's figures are in the band (pure)
//	health.go   the next move of an effective weight (pure)
//	history.go  which weights a version moved, and the effects after a move (pure)
//	guard.go    which guards trip (pure)
//	arrivals.go new messages by the first digits of their numbers
//	steer.go    the loop
//	ramps.go    its work on ramps
//	heal.go     its work on health weighting
//	guards.go   its work on guards
//	shares.go   the shares that channels carried, for metrics
//
// Every instance runs the loop; there is no leader. Each write names the state it is based on: a
// routing version, or the state of a ramp. Of two writes based on the same state, the second is
// refused and changes nothing; the next round decides again.
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

// DefaultEvery is the default of Config.Every.
const DefaultEvery = 2 * time.Second

// Config is what a Steerer needs. All fields are required.
type Config struct {
	Ledger *ledger.Ledger
	// NewRouting turns a document into what the ledger applies; before is the routing in force.
	NewRouting func(doc *config.Document, before *config.Routing, author, reason string,
		expect *int64) ledger.NewRouting
	// Awaits is how long after the provider's answer a receipt of a channel is expected; 0 for a
	// channel without receipts.
	Awaits func(*config.Channel) time.Duration
	// Every is the time between two rounds.
	Every time.Duration
	// SendTimeout is how long a submit may wait for its answer.
	SendTimeout time.Duration
	// Arrivals is what this process counts for guards per prefix.
	Arrivals *Arrivals
	Registry prometheus.Registerer
	Log      zerolog.Logger
	// Trouble is called with every failure; the next round tries again. It must not block.
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
	countedAt  time.Time              // owned by Run: when the carried shares were counted
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
		cfg.Trouble == nil || cfg.Arrivals == nil:
		return nil, errors.New("steer: Ledger, NewRouting, Awaits, Registry, Trouble and " +
			"Arrivals are required")
	case cfg.Every <= 0 || cfg.SendTimeout <= 0:
		return nil, errors.New("steer: Every and SendTimeout must be above 0")
	}
	return &Steerer{
		cfg: cfg, metrics: newMetrics(cfg.Registry), history: history{},
		judged: map[int64]time.Time{}, failed: figures[ledger.Fault]{},
		delivering: figures[ledger.Timely]{},
	}, nil
}

// late is the longest time between the claim of an attempt and the settlement of its outcome.
// Attempts that take longer are in no figures.
func (s *Steerer) late() time.Duration { return s.cfg.SendTimeout + ledger.LateCommit }

// Bounds of one round of the loop.
const (
	// maxMoves bounds the moves of one round, so that a bug cannot write versions without end.
	maxMoves = 100
	// longestRound bounds a round, and longestTry one move of one ramp or route: a slow count, or a
	// lock that is never released, must not stop all others.
	longestRound = 30 * time.Second
	longestTry   = 5 * time.Second
)

// Run repeats the loop until ctx ends.
func (s *Steerer) Run(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.Every)
	defer ticker.Stop()
	for {
		if err := s.round(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Trouble("steer", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// round makes all moves that are due, and reads the routing again after each. A failure on one ramp
// or route does not stop the others; the errors are joined.
func (s *Steerer) round(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, longestRound)
	defer cancel()
	failed := failures{}
	for range maxMoves {
		moved, err := s.once(ctx, failed)
		switch {
		case outrun(err):
			// Somebody else wrote first: the next round starts from that.
			return failed.join()
		case err != nil || !moved:
			return errors.Join(failed.join(), err)
		}
	}
	return failed.join()
}

// failures are the errors of one round by ramp or route. A ramp or route with an error is skipped
// until the next round.
type failures map[string]error

// try makes the move that is due on one ramp or route, if there is one. It keeps an error of the
// move in f; it returns only an error that ends the round.
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

// outrun reports whether a write was refused because somebody else had written first.
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
	// Ramps are read after the routing, so they may belong to a newer version. Then the ledger
	// refuses a step, and ramp checks the version before it supersedes.
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
	if moved, err = s.guards(ctx, now, failed); moved || err != nil {
		return moved, err
	}
	return failed.try(ctx, "carried shares", func(ctx context.Context) (bool, error) {
		return false, s.countCarried(ctx, now)
	})
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
	document, doc, err := config.ParseVersion(current.Version, current.Document, current.Effects)
	if err != nil {
		return err
	}
	s.seen = snapshot{current, document, doc}
	s.metrics.shares(s.seen.doc)
	return nil
}
