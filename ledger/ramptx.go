package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

const rampColumns = `id, route, from_weights, to_weights, steps, step, every, next_at, state, held,
	max_errors, max_deviation, least_messages, author, reason, changed_by, version, created_at, changed_at`

func scanRamp(row pgx.CollectableRow) (Ramp, error) {
	var r Ramp
	var next pgtype.Timestamptz
	err := row.Scan(&r.ID, &r.Route, &r.From, &r.To, &r.Steps, &r.Step, &r.Every, &next, &r.State, &r.Held,
		&r.MaxErrors, &r.MaxDeviation, &r.LeastMessages, &r.Author, &r.Reason, &r.ChangedBy, &r.Version, &r.CreatedAt, &r.ChangedAt)
	r.NextAt, r.CreatedAt, r.ChangedAt = moment(next), r.CreatedAt.UTC(), r.ChangedAt.UTC()
	return r, err
}

// StartRamp stores a ramp before its first step and returns it with its ID and times. Its
// first step is due at r.NextAt, or at once if that is zero. ID, Step, State, Held, Version
// and the other times are not read.
//
// expect is the version that the ramp's weights were read from, as NewRouting.Expect; nil
// starts it whatever is current. It returns a VersionConflictError when somebody else changed the
// document since, and ErrRampRunning when the route has a ramp already.
func (l *Ledger) StartRamp(ctx context.Context, r Ramp, expect *int64) (started Ramp, err error) {
	if err := r.validate(); err != nil {
		return Ramp{}, fmt.Errorf("start ramp: %w", err)
	}
	err = pgx.BeginFunc(ctx, l.reports, func(tx pgx.Tx) error {
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
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.ConstraintName == "ramps_one_per_route" {
		return Ramp{}, fmt.Errorf("start ramp of route %s: %w", r.Route, ErrRampRunning)
	}
	if err != nil {
		return Ramp{}, wrap("start ramp", err)
	}
	return started, nil
}

func insertRamp(ctx context.Context, tx pgx.Tx, r *Ramp) (Ramp, error) {
	rows, err := tx.Query(ctx, `
		insert into dispatcher.ramps (route, from_weights, to_weights, steps, every, next_at,
		  max_errors, max_deviation, least_messages, author, reason, changed_by)
		values ($1, $2, $3, $4, $5, coalesce($6, now()), $7, $8, $9, $10, $11, $10)
		returning `+rampColumns,
		r.Route, r.From, r.To, r.Steps, r.Every, instant(r.NextAt), r.MaxErrors, r.MaxDeviation, r.LeastMessages, r.Author, r.Reason)
	if err != nil {
		return Ramp{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scanRamp)
}

// Ramps lists the ramps that are running or held, or all that ever were, newest first.
func (l *Ledger) Ramps(ctx context.Context, all bool) ([]Ramp, error) {
	ramps, err := rows(ctx, l, scanRamp, `
		select `+rampColumns+` from dispatcher.ramps where $1 or state in ('running', 'held') order by id desc`, all)
	return ramps, wrap("list ramps", err)
}

// SetRamp takes a ramp from one state to another: it holds, resumes, cancels or supersedes
// it, for why, in the name of by. It returns ErrRampMoved when the ramp is not in state
// from, or there is none of that id. A ramp that is resumed makes its next step after a
// whole interval, so that its band can be watched before.
func (l *Ledger) SetRamp(ctx context.Context, id int64, from, to RampState, why, by string) error {
	if err := legalRampMove(from, to, why); err != nil {
		return fmt.Errorf("set ramp %d: %w", id, err)
	}
	if to == RampRunning {
		why = ""
	}
	tag, err := l.reports.Exec(ctx, `
		update dispatcher.ramps set state = $3, held = $4, changed_by = $5, changed_at = now(),
		  next_at = case when $3 = 'running' then now() + every end
		where id = $1 and state = $2`, id, string(from), string(to), why, by)
	if err == nil && tag.RowsAffected() == 0 {
		err = ErrRampMoved
	}
	return wrap(fmt.Sprintf("set ramp %d", id), err)
}

// advance makes step r.Step of a ramp, if it is running and stands one before that. Two
// appliers of the same step wait for each other at the routing's lock, and the second finds
// the ramp moved. The next step is due an interval after this one, however late it is: a
// ramp that nobody attended to does not catch up in a burst.
func advance(ctx context.Context, tx pgx.Tx, r *Ramp, version int64) error {
	tag, err := tx.Exec(ctx, `
		update dispatcher.ramps set step = $2, version = $3, changed_at = now(),
		  state = case when $2 = steps then 'done' else state end,
		  next_at = case when $2 < steps then now() + every end
		where id = $1 and step = $2 - 1 and state = 'running'`, r.ID, r.Step, version)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrRampMoved
	}
	return err
}

// supersedeRamps ends the ramps of routes that the new document does not have.
const supersedeRamps = `
	update dispatcher.ramps set state = 'superseded', held = 'route removed by routing version ' || $3::bigint,
	  changed_by = $2, changed_at = now(), next_at = null
	where state in ('running', 'held') and route <> all($1)`
