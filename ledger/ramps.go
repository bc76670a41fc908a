package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// Ramps stores changes of weights that are made in steps.
type Ramps struct{ *db }

// ErrRampRunning is returned by Start when the route already has a running or held ramp.
var ErrRampRunning = errors.New("another ramp moves the weights of this route")

// ErrRampMoved means that a ramp is not in the state or at the step that the caller expected:
// somebody else made its step, or held, resumed or ended it. Nothing was changed.
var ErrRampMoved = errors.New("the ramp was changed meanwhile")

// RampState is the state of a ramp.
type RampState string

// States of a ramp. A running ramp makes its next step at NextAt. A held one makes none until it is
// resumed. The others are final.
const (
	RampRunning    RampState = "running"
	RampHeld       RampState = "held"
	RampDone       RampState = "done"       // it made its last step
	RampCancelled  RampState = "cancelled"  // an operator ended it
	RampSuperseded RampState = "superseded" // another change of the weights or the route ended it
)

// Final reports whether a ramp in this state never moves again.
func (s RampState) Final() bool { return s != RampRunning && s != RampHeld }

// Ramp moves the weights of one route from From to To in Steps equal steps. The ledger stores it;
// it does not compute the weights.
type Ramp struct {
	ID    int64
	Route string
	// From and To are weights by channel, as decimal text.
	From, To map[string]string
	// Steps is how many steps the ramp has, Step how many were made.
	Steps, Step int
	// Every is the time between two steps, and NextAt, by the database's clock, the earliest time of
	// the next one; zero unless the ramp runs.
	Every  time.Duration
	NextAt time.Time
	State  RampState
	// Held says why the ramp is held, was cancelled or was superseded; empty otherwise.
	Held string
	// MaxErrors and MaxDeviation, from 0 to 1, are the rates above which the ramp is held; 0 means not
	// checked. Nothing is concluded from fewer than LeastMessages messages.
	MaxErrors, MaxDeviation float64
	LeastMessages           int64
	// Author started the ramp, for Reason. ChangedBy changed its state last, at ChangedAt.
	Author, Reason, ChangedBy string
	// Via is how it was started; a ramp that is read does not have it, its moves have.
	Via Via
	// Version is the routing version of the last step, 0 before the first.
	Version              int64
	CreatedAt, ChangedAt time.Time
}

// RampMove is one entry of the history of a ramp.
type RampMove struct {
	At time.Time
	// Author is who did it: an operator, or the dispatcher that makes the steps.
	Author string
	// Login is the login at the database; empty where it was not recorded.
	Login string
	Via   Via
	// Move is started, step, done, held, resumed, cancelled or superseded.
	Move string
	// Step is how many steps had been made by then, and Version the routing version of the last one.
	Step    int
	Version int64
	Reason  string
}

// validate returns an error for a ramp that could never make a step. The constraints of the table
// check the rest.
func (r *Ramp) validate() error {
	switch {
	case r.Route == "":
		return errors.New("it names no route")
	case len(r.From) == 0 || len(r.To) == 0:
		return errors.New("it has no weights")
	case r.Steps <= 0:
		return fmt.Errorf("%d steps", r.Steps)
	case r.Every < time.Microsecond: // the database's unit
		return fmt.Errorf("a step every %s", r.Every)
	case !(0 <= r.MaxErrors && r.MaxErrors <= 1) || !(0 <= r.MaxDeviation && r.MaxDeviation <= 1):
		return fmt.Errorf("the band of %g errors and %g deviation is not within 0 and 1",
			r.MaxErrors, r.MaxDeviation)
	case r.LeastMessages < 0:
		return fmt.Errorf("at least %d messages", r.LeastMessages)
	}
	return nil
}

// legalRampMove returns an error for a move that no caller of Set may ask for. Only a step makes a
// ramp done.
func legalRampMove(from, to RampState, why string) error {
	switch {
	case from == RampRunning && to == RampHeld && why == "":
		return errors.New("a ramp is held without a reason")
	case from == RampRunning && to == RampHeld,
		from == RampHeld && to == RampRunning,
		!from.Final() && (to == RampCancelled || to == RampSuperseded):
		return nil
	}
	return fmt.Errorf("a ramp cannot go from %q to %q", from, to)
}

func scanRamp(row pgx.CollectableRow) (Ramp, error) {
	var r Ramp
	var next pgtype.Timestamptz
	err := row.Scan(&r.ID, &r.Route, &r.From, &r.To, &r.Steps, &r.Step, &r.Every, &next, &r.State,
		&r.Held,
		&r.MaxErrors, &r.MaxDeviation, &r.LeastMessages, &r.Author, &r.Reason, &r.ChangedBy,
		&r.Version, &r.CreatedAt, &r.ChangedAt)
	r.NextAt, r.CreatedAt, r.ChangedAt = moment(next), r.CreatedAt.UTC(), r.ChangedAt.UTC()
	return r, err
}

// Start stores a ramp before its first step and returns it with its ID and times. Its first step is
// due at r.NextAt, or at once if that is zero. ID, Step, State, Held, Version and the other times
// of r are ignored.
//
// expect is the version that the ramp's weights were read from, as NewRouting.Expect; nil means
// any. Start returns a VersionConflictError when the document was changed since, and ErrRampRunning
// when the route already has a ramp.
func (s *Ramps) Start(ctx context.Context, r Ramp, expect *int64) (started Ramp, err error) {
	if err := r.validate(); err != nil {
		return Ramp{}, fmt.Errorf("start ramp: %w", err)
	}
	err = pgx.BeginFunc(ctx, s.reports, func(tx pgx.Tx) error {
		current, err := lockRouting(ctx, tx)
		if err != nil {
			return err
		}
		if err := current.holds(expect); err != nil {
			return err
		}
		started, err = insertRamp(ctx, tx, &r)
		return err
	})
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok &&
		pg.ConstraintName == "ramps_one_per_route" {
		return Ramp{}, fmt.Errorf("start ramp of route %s: %w", r.Route, ErrRampRunning)
	}
	if err != nil {
		return Ramp{}, wrap("start ramp", err)
	}
	return started, nil
}

func insertRamp(ctx context.Context, tx pgx.Tx, r *Ramp) (Ramp, error) {
	rows, err := tx.Query(ctx, `
		with started as (
		  insert into dispatcher.ramps (route, from_weights, to_weights, steps, every, next_at,
		    max_errors, max_deviation, least_messages, author, reason, changed_by)
		  values (@route, @from, @to, @steps, @every, coalesce(@next_at, now()), @max_errors,
		    @max_deviation, @least_messages, @author, @reason, @author)
		  returning *
		), noted as (
		  insert into dispatcher.ramp_moves (ramp, author, move, step, version, reason, via)
		  select id, author, 'started', step, version, reason, @via from started
		)
		select id, route, from_weights, to_weights, steps, step, every, next_at, state, held,
		  max_errors, max_deviation, least_messages, author, reason, changed_by, version, created_at,
		  changed_at
		from started`,
		pgx.StrictNamedArgs{
			"route": r.Route, "from": r.From, "to": r.To, "steps": r.Steps, "every": r.Every,
			"next_at": instant(r.NextAt), "max_errors": r.MaxErrors,
			"max_deviation": r.MaxDeviation, "least_messages": r.LeastMessages,
			"author": r.Author, "reason": r.Reason, "via": r.Via,
		})
	if err != nil {
		return Ramp{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scanRamp)
}

const selectRamps = `
	select id, route, from_weights, to_weights, steps, step, every, next_at, state, held,
	  max_errors, max_deviation, least_messages, author, reason, changed_by, version, created_at,
	  changed_at
	from dispatcher.ramps
	where $1 or state in ('running', 'held') order by id desc`

// List lists the running and held ramps, or with all set every ramp, newest first.
func (s *Ramps) List(ctx context.Context, all bool) ([]Ramp, error) {
	ramps, err := rows(ctx, s.db, scanRamp, selectRamps, all)
	return ramps, wrap("list ramps", err)
}

// RampChange says who changes the state of a ramp, how and why.
type RampChange struct {
	By  string
	Via Via
	Why string
	// Seen is ChangedAt of the ramp that the change is based on; zero for any. The state alone does
	// not tell: a ramp may have been held and resumed since.
	Seen time.Time
}

// Set holds, resumes, cancels or supersedes a ramp: it changes its state from one to another. It
// returns ErrRampMoved when the ramp is not in the state from, or was changed after c.Seen. A
// resumed ramp makes its next step after a whole interval, so that its error rates can be measured
// first.
func (s *Ramps) Set(ctx context.Context, id int64, from, to RampState, c RampChange) error {
	if err := legalRampMove(from, to, c.Why); err != nil {
		return fmt.Errorf("set ramp %d: %w", id, err)
	}
	tag, err := s.reports.Exec(ctx, `
		with moved as (
		  update dispatcher.ramps set state = $3,
		    held = case when $3 = 'running' then '' else $4 end, changed_by = $5,
		    changed_at = now(), next_at = case when $3 = 'running' then now() + every end
		  where id = $1 and state = $2 and ($7::timestamptz is null or changed_at = $7)
		  returning id, step, version
		)
		insert into dispatcher.ramp_moves (ramp, author, move, step, version, reason, via)
		select id, $5, case when $3 = 'running' then 'resumed' else $3 end, step, version, $4, $6
		from moved`,
		id, string(from), string(to), c.Why, c.By, string(c.Via), instant(c.Seen))
	if err == nil && tag.RowsAffected() == 0 {
		err = ErrRampMoved
	}
	return wrap(fmt.Sprintf("set ramp %d", id), err)
}

// Moves lists the history of a ramp, oldest first.
func (s *Ramps) Moves(ctx context.Context, id int64) ([]RampMove, error) {
	moves, err := rows(ctx, s.db, scanRampMove, `
		select at, author, coalesce(login, ''), via, move, step, version, reason
		from dispatcher.ramp_moves where ramp = $1
		order by seq`, id)
	return moves, wrap(fmt.Sprintf("list moves of ramp %d", id), err)
}

func scanRampMove(row pgx.CollectableRow) (RampMove, error) {
	var m RampMove
	err := row.Scan(&m.At, &m.Author, &m.Login, &m.Via, &m.Move, &m.Step, &m.Version, &m.Reason)
	m.At = m.At.UTC()
	return m, err
}

// advance makes step r.Step of a ramp, if the ramp is running, has made the step before, and was
// not changed since r.ChangedAt; zero stands for any time. Two appliers of the same step wait for
// each other at the routing's lock, and the second one gets ErrRampMoved. The next step keeps its
// planned time even when this one was made late. But when that time is over already, the next step
// comes a whole interval from now, so that missed steps are not made in a burst.
func advance(ctx context.Context, tx pgx.Tx, r *Ramp, n *NewRouting, version int64) error {
	tag, err := tx.Exec(ctx, `
		with moved as (
		  update dispatcher.ramps set step = $2, version = $3, changed_at = now(),
		    state = case when $2 = steps then 'done' else state end,
		    next_at = case when $2 < steps
		      then case when next_at + every > now() then next_at + every else now() + every end end
		  where id = $1 and step = $2 - 1 and state = 'running'
		    and ($7::timestamptz is null or changed_at = $7)
		  returning id, step, steps, version
		)
		insert into dispatcher.ramp_moves (ramp, author, move, step, version, reason, via)
		select id, $4, case when step = steps then 'done' else 'step' end, step, version, $5, $6
		from moved`,
		r.ID, r.Step, version, n.Author, n.Reason, string(n.Via), instant(r.ChangedAt))
	if err == nil && tag.RowsAffected() == 0 {
		return ErrRampMoved
	}
	return err
}

// endRamps supersedes the ramps that a document ends: those of routes that it does not have, and
// those for which EndsRamp returns a reason. No step can be made meanwhile, since a step needs the
// appliers' lock, which the caller holds. A ramp that stays is not locked.
func endRamps(ctx context.Context, tx pgx.Tx, n *NewRouting, version int64) error {
	ramps, err := queried(ctx, tx, scanRamp, selectRamps, false)
	if err != nil {
		return err
	}
	for i := range ramps {
		if why := n.ends(&ramps[i]); why != "" {
			if _, err := tx.Exec(ctx, supersedeRamp, ramps[i].ID,
				fmt.Sprintf("%s, by routing version %d", why, version), n.Author,
				version, string(n.Via)); err != nil {
				return err
			}
		}
	}
	return nil
}

// ends returns why the document ends a ramp; empty when it does not.
func (n *NewRouting) ends(r *Ramp) string {
	switch {
	case n.Ramp != nil && n.Ramp.ID == r.ID:
		return "" // the document is a step of it
	case !slices.Contains(n.routeNames(), r.Route):
		return "route removed"
	case n.EndsRamp != nil:
		return n.EndsRamp(r)
	}
	return ""
}

const supersedeRamp = `
	with moved as (
	  update dispatcher.ramps set state = 'superseded', held = $2, changed_by = $3,
	    changed_at = now(), next_at = null
	  where id = $1 and state in ('running', 'held')
	  returning id, step
	)
	insert into dispatcher.ramp_moves (ramp, author, move, step, version, reason, via)
	select id, $3, 'superseded', step, $4, $2, $5 from moved`
