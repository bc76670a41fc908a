package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
)

// ErrNoLimit is returned by RestartWindow and TopUp when the ledger has no row of the limit: the
// current routing does not have it, or somebody deleted the row.
var ErrNoLimit = errors.New("the limit is not in the ledger")

// NotAheadError is returned by RestartWindow when the limit's window does not begin in the future.
// Nothing was changed: a restart of such a window would give its slots away twice.
type NotAheadError struct{ Start time.Time }

// Error names the beginning of the window.
func (e *NotAheadError) Error() string {
	return "the window began at " + e.Start.Format(time.RFC3339) +
		", which is not ahead of the database's clock"
}

// Restart asks for a restart of the window of one limit.
type Restart struct {
	Channel string // empty for a limit over all channels
	Limit   admission.Limit
	Zone    *time.Location // in which days begin
	// Expect is the version that the current one must be, nil for any; as in NewRouting.
	Expect         *int64
	Author, Reason string
	Via            Via
}

// Restarted is a window that was restarted.
type Restarted struct {
	Channel string
	Key     admission.Key
	At      time.Time // by the database's clock
	// Version is the routing version that was in force.
	Version        int64
	Author, Reason string
	Via            Via
	// Login is the login at the database; empty where it was not recorded.
	Login    string
	Was, Now RestartedWindow
}

// RestartedWindow is a window before or after its restart.
type RestartedWindow struct {
	Start   time.Time
	Granted int64
}

// RestartWindow replaces the window of a limit that begins in the future by the window of now. Such
// a window is left over from a clock that was ahead, and no other one would be opened before it
// begins. It may return ErrNoLimit, a NotAheadError or a VersionConflictError.
//
// The new window begins with what attempts on record have taken in it, like that of a limit which
// is added. Attempts that were claimed while the clock was ahead count as well, since nobody knows
// when that was. A limit of a second gets the next second, in which nothing has been granted.
//
// Windows in the history that begin later than the new one move into the record of the restart.
// Otherwise they would conflict with the real windows of those times. Waiting messages are woken.
func (s *Limits) RestartWindow(ctx context.Context, r Restart) (done Restarted, err error) {
	if r.Zone == nil {
		return Restarted{}, errors.New("restart window: no time zone")
	}
	err = pgx.BeginFunc(ctx, s.reports, func(tx pgx.Tx) error {
		done, err = restart(ctx, tx, &r)
		return err
	})
	if err != nil {
		return Restarted{}, wrap("restart window", err)
	}
	// an error would say that nothing was restarted; Instances.Forget wakes the rest
	_ = s.routing.wake(ctx, done.Version)
	return done, nil
}

// restart is the transaction of RestartWindow. It counts nearly everything before it locks the
// limit.
func restart(ctx context.Context, tx pgx.Tx, r *Restart) (done Restarted, err error) {
	current, err := lockRouting(ctx, tx)
	if err != nil {
		return done, err
	}
	if err := current.holds(r.Expect); err != nil {
		return done, err
	}
	if _, _, err := r.ahead(ctx, tx); err != nil {
		return done, err
	}
	b := &beginning{zone: r.Zone}
	if r.Limit.Window != admission.Second {
		b.added = []addition{{ownLimit: ownLimit{r.Channel, &r.Limit}}}
	}
	if err := b.first(ctx, tx); err != nil {
		return done, err
	}
	if _, err := tx.Exec(ctx, `select from dispatcher.channels where channel = $1 for update`,
		r.Channel); err != nil {
		return done, err
	}
	k := r.Limit.Key()
	if _, err := tx.Exec(ctx, `
		select from dispatcher.limits
		where channel = $1 and scope = $2 and window_seconds = $3 and unit = $4 for update`,
		r.Channel, k.Scope.String(), k.Window.Seconds(), k.Unit.String()); err != nil {
		return done, err
	}
	was, now, err := r.ahead(ctx, tx)
	if err != nil {
		return done, err
	}
	if len(b.added) > 0 {
		if err := b.finish(ctx, tx, now); err != nil {
			return done, err
		}
	}
	done = Restarted{
		Channel: r.Channel, Key: k, Version: current.Version,
		Author: r.Author, Via: r.Via, Reason: r.Reason, Was: was,
	}
	done.Now = r.window(now, b)
	if _, err := tx.Exec(ctx, markWaking, current.Version); err != nil {
		return done, err
	}
	return done, done.write(ctx, tx)
}

// ahead reads the limit's window. It returns a NotAheadError unless the window begins in the
// future.
func (r *Restart) ahead(
	ctx context.Context, tx pgx.Tx,
) (was RestartedWindow, now time.Time, err error) {
	k := r.Limit.Key()
	err = tx.QueryRow(ctx, `
		select window_start, granted from dispatcher.limits
		where channel = $1 and scope = $2 and window_seconds = $3 and unit = $4`,
		r.Channel, k.Scope.String(), k.Window.Seconds(), k.Unit.String()).Scan(&was.Start,
		&was.Granted)
	if errors.Is(err, pgx.ErrNoRows) {
		return was, now, ErrNoLimit
	}
	if err != nil {
		return was, now, err
	}
	if err := tx.QueryRow(ctx, `select clock_timestamp()`).Scan(&now); err != nil {
		return was, now, err
	}
	was.Start = was.Start.UTC()
	c := admission.Counter{Limit: r.Limit, Start: was.Start}
	if !c.Ahead(now) {
		return was, now, &NotAheadError{was.Start}
	}
	return was, now.UTC(), nil
}

// window is the new window of the limit, with what was counted in it.
func (r *Restart) window(now time.Time, b *beginning) RestartedWindow {
	out := RestartedWindow{Start: r.Limit.Window.Restart(now, r.Zone)}
	for i := range b.added {
		out.Granted = b.added[i].counted
	}
	return out
}

// writeRestart moves the new window and later ones from the history into the record of the restart,
// and gives the limit its new window.
const writeRestart = `
	with gone as (
	  delete from dispatcher.limit_history h
	  where h.channel = @channel and h.scope = @scope and h.window_seconds = @window
	    and h.unit = @unit
	    and h.window_start >= @window_start
	  returning h.window_start, h.max, h.granted
	), recorded as (
	  insert into dispatcher.limit_restarts
	    (channel, scope, window_seconds, unit, version, author, reason, was_start, was_granted,
	      window_start, granted, via, set_aside)
	  select @channel, @scope, @window, @unit, @version, @author, @reason, @was_start,
	    @was_granted, @window_start, @granted, @via,
	    (select jsonb_agg(jsonb_build_object('window_start', window_start, 'max', max, 'granted',
	      granted) order by window_start) from gone)
	  returning restarted_at, login
	)
	update dispatcher.limits l
	set window_start = @window_start, granted = @granted,
	  max = greatest(l.configured_max, @granted), reserved = 0, taken = null, next_at = null,
	    pace = null
	from recorded r
	where l.channel = @channel and l.scope = @scope and l.window_seconds = @window
	  and l.unit = @unit
	returning r.restarted_at, r.login`

// write stores the restart and sets At and Login.
func (r *Restarted) write(ctx context.Context, tx pgx.Tx) error {
	err := tx.QueryRow(ctx, writeRestart, pgx.StrictNamedArgs{
		"channel": r.Channel, "scope": r.Key.Scope.String(), "window": r.Key.Window.Seconds(),
		"unit": r.Key.Unit.String(), "window_start": r.Now.Start, "granted": r.Now.Granted,
		"was_start": r.Was.Start, "was_granted": r.Was.Granted,
		"version": r.Version, "author": r.Author, "reason": r.Reason, "via": r.Via,
	}).Scan(&r.At, &r.Login)
	r.At = r.At.UTC()
	return err
}

// Restarts lists the restarted windows, newest first.
func (s *Limits) Restarts(ctx context.Context) ([]Restarted, error) {
	out, err := rows(ctx, s.db, scanRestart, `
		select channel, scope, window_seconds, unit, restarted_at, version, author, reason,
		  was_start, was_granted, window_start, granted, coalesce(login, ''), via
		from dispatcher.limit_restarts order by id desc`)
	return out, wrap("list restarts", err)
}

func scanRestart(row pgx.CollectableRow) (r Restarted, err error) {
	var scope, unit string
	var seconds int
	err = row.Scan(&r.Channel, &scope, &seconds, &unit, &r.At, &r.Version, &r.Author, &r.Reason,
		&r.Was.Start, &r.Was.Granted, &r.Now.Start, &r.Now.Granted, &r.Login, &r.Via)
	if err != nil {
		return r, err
	}
	r.At, r.Was.Start, r.Now.Start = r.At.UTC(), r.Was.Start.UTC(), r.Now.Start.UTC()
	r.Key.Window = admission.Window(time.Duration(seconds) * time.Second)
	if r.Key.Scope, err = admission.ParseScope(scope); err != nil {
		return r, fmt.Errorf("read restart: %w", err)
	}
	r.Key.Unit, err = admission.ParseUnit(unit)
	return r, err
}
