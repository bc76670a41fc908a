package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
)

// ErrOtherTopUp is returned by TopUp when its key belongs to a top-up of another budget or amount.
var ErrOtherTopUp = errors.New("the key belongs to another top-up")

// ErrTopUpTooLarge is returned by TopUp when the budget would exceed mostToppedUp.
var ErrTopUpTooLarge = errors.New("the budget would be larger than a billion")

// mostToppedUp is the largest sum of top-ups of one budget, in micros.
const mostToppedUp = 1_000_000_000_000_000

// NotLeftError is returned by TopUp when a negative amount is larger than what the budget has left.
// Nothing was changed.
type NotLeftError struct{ Left int64 } // micros

// Error says how much is left.
func (e *NotLeftError) Error() string {
	return fmt.Sprintf("the budget has %d micros left", e.Left)
}

// TopUp adds an amount to a prepaid budget. A negative amount is a correction.
type TopUp struct {
	Channel string // empty for a budget over all channels
	// Limit is the budget as the current routing has it. For the budget of one tenant under a limit of
	// each tenant, its Scope names that tenant.
	Limit  admission.Limit
	Micros int64
	// Key is chosen by the caller, empty for none. A second top-up with the same key is not recorded.
	Key            string
	Expect         *int64 // as in Restart
	Author, Reason string
	Via            Via
}

// ToppedUp is a recorded top-up.
type ToppedUp struct {
	ID                    int64
	At                    time.Time // by the database's clock
	Author, Login, Reason string
	Via                   Via
	Channel               string
	Scope                 admission.Scope
	Currency              string
	Micros                int64
	Before                int64 // micros: the sum of the earlier top-ups
	Granted               int64 // micros: what the budget had granted by then
	Key                   string
	// Repeated is set by TopUp when a top-up with this key was recorded before.
	Repeated bool
}

// After is the sum of this top-up and all earlier ones, in micros.
func (u *ToppedUp) After() int64 { return u.Before + u.Micros }

// TopUp adds to a budget and wakes waiting messages. It may return ErrNoLimit, ErrOtherTopUp,
// ErrTopUpTooLarge, a NotLeftError or a VersionConflictError.
func (s *Limits) TopUp(ctx context.Context, u TopUp) (done ToppedUp, err error) {
	var version int64
	err = pgx.BeginFunc(ctx, s.reports, func(tx pgx.Tx) error {
		done, version, err = topUp(ctx, tx, &u)
		return err
	})
	if err != nil {
		return ToppedUp{}, wrap("top up", err)
	}
	if !done.Repeated {
		// an error would say that nothing was recorded; Instances.Forget wakes the rest
		_ = s.routing.wake(ctx, version)
	}
	return done, nil
}

// lockBudget reads and locks the row of a budget. The statement before it creates the row of a
// tenant that only a limit of each tenant counts.
const lockBudget = `
	select configured_max, granted from dispatcher.limits
	where channel = $1 and scope = $2 and window_seconds = $3 and unit = 'money' and currency = $4
	for update`

// insertTopUp records a top-up and raises the max of its budget.
const insertTopUp = `
	with recorded as (
	  insert into dispatcher.top_ups
	    (channel, scope, currency, micros, before, granted, author, reason, key, via)
	  values (@channel, @scope, @currency, @micros, @before, @granted, @author, @reason,
	    nullif(@key, ''), @via)
	  returning *
	), raised as (
	  update dispatcher.limits l
	  set configured_max = b.before + b.micros, max = b.before + b.micros
	  from recorded b
	  where l.channel = b.channel and l.scope = b.scope and l.window_seconds = @window
	    and l.unit = 'money'
	)
	select id, at, author, login, reason, channel, scope, currency, micros, before, granted,
	  coalesce(key, ''), via
	from recorded`

// topUp is the transaction of TopUp. It holds the lock of the routing, so top-ups run one after the
// other, and looking up the key once is enough.
func topUp(
	ctx context.Context, tx pgx.Tx, u *TopUp,
) (done ToppedUp, version int64, err error) {
	current, err := lockRouting(ctx, tx)
	if err != nil {
		return done, 0, err
	}
	if known, err := u.earlier(ctx, tx); err != nil || known.Repeated {
		return known, 0, err
	}
	if err := current.holds(u.Expect); err != nil {
		return done, 0, err
	}
	batch, scope := &pgx.Batch{}, u.Limit.Scope.String()
	batch.Queue(`select from dispatcher.channels where channel = $1 for update`, u.Channel)
	batch.Queue(makeTenantLimits, tenantArrays([]ScopeRef{{Channel: u.Channel, Scope: u.Limit.Scope}})...)
	var before, granted int64
	batch.Queue(lockBudget, u.Channel, scope, admission.Prepaid.Seconds(), u.Limit.Currency).
		QueryRow(func(row pgx.Row) error { return row.Scan(&before, &granted) })
	err = tx.SendBatch(ctx, batch).Close()
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return done, 0, ErrNoLimit
	case err != nil:
		return done, 0, err
	case u.Micros > mostToppedUp-before:
		return done, 0, ErrTopUpTooLarge
	case before+u.Micros < granted:
		return done, 0, &NotLeftError{before - granted}
	}
	r, err := tx.Query(ctx, insertTopUp, pgx.StrictNamedArgs{
		"channel": u.Channel, "scope": scope, "currency": u.Limit.Currency, "micros": u.Micros,
		"before": before, "granted": granted, "author": u.Author, "reason": u.Reason,
		"key": u.Key, "via": u.Via, "window": admission.Prepaid.Seconds(),
	})
	if err != nil {
		return done, 0, err
	}
	if done, err = pgx.CollectExactlyOneRow(r, scanTopUp); err != nil {
		return done, 0, err
	}
	_, err = tx.Exec(ctx, markWaking, current.Version)
	return done, current.Version, err
}

// earlier returns the top-up that was recorded with the same key, with Repeated set; the zero value
// when there is none.
func (u *TopUp) earlier(ctx context.Context, tx pgx.Tx) (known ToppedUp, err error) {
	if u.Key == "" {
		return known, nil
	}
	found, err := queried(ctx, tx, scanTopUp, selectTopUps, 0, "", u.Key, 1)
	if err != nil || len(found) == 0 {
		return known, err
	}
	known = found[0]
	if known.Channel != u.Channel || known.Scope != u.Limit.Scope ||
		known.Currency != u.Limit.Currency || known.Micros != u.Micros {
		return known, ErrOtherTopUp
	}
	known.Repeated = true
	return known, nil
}

// TopUpFilter selects top-ups. The zero value selects all.
type TopUpFilter struct {
	// Below selects IDs lower than this one, to read the next page; 0 for no bound.
	Below  int64
	Tenant string // only those of budgets of this tenant; empty for all
}

// selectTopUps lists top-ups, newest first: those with numbers below $1, of the tenant $2 and with
// the key $3. 0 and an empty text stand for any.
const selectTopUps = `
	select id, at, author, login, reason, channel, scope, currency, micros, before, granted,
	  coalesce(key, ''), via
	from dispatcher.top_ups
	where ($1::bigint = 0 or id < $1) and ($2::text = '' or scope = 'tenant:' || $2)
	  and ($3::text = '' or key = $3)
	order by id desc limit $4`

// TopUps lists the top-ups that match, newest first, limit at most.
func (s *Limits) TopUps(ctx context.Context, f *TopUpFilter, limit int) ([]ToppedUp, error) {
	out, err := rows(ctx, s.db, scanTopUp, selectTopUps, f.Below, f.Tenant, "", limit)
	return out, wrap("list top-ups", err)
}

func scanTopUp(row pgx.CollectableRow) (u ToppedUp, err error) {
	var scope string
	if err := row.Scan(&u.ID, &u.At, &u.Author, &u.Login, &u.Reason, &u.Channel, &scope, &u.Currency,
		&u.Micros, &u.Before, &u.Granted, &u.Key, &u.Via); err != nil {
		return u, err
	}
	u.At = u.At.UTC()
	u.Scope, err = admission.ParseScope(scope)
	return u, err
}

// Overspent is a budget whose attempts cost more than it had been topped up with by then.
type Overspent struct {
	Channel, Scope, Currency string
	At                       time.Time // the last attempt between two top-ups, or after the last
	Cost, ToppedUp           int64     // micros; Cost begins with the period that was asked for
}

// overspent adds up, per budget, the cost of its attempts in a period, and compares the running sum
// at each top-up and at the end with what had been topped up. The present price of an attempt is
// the least that it took of the budget: the counter may have been higher, never lower.
const overspent = `
	with budgets as (
	  select w.channel, w.scope, w.currency, w.since, coalesce(w.until, 'infinity') as until,
	    coalesce((select array_agg(u.at order by u.at) from audit.top_ups u
	      where (u.channel, u.scope, u.currency) = (w.channel, w.scope, w.currency)
	        and u.at < @to), '{}') as times,
	    coalesce((select array_agg(u.micros order by u.at) from audit.top_ups u
	      where (u.channel, u.scope, u.currency) = (w.channel, w.scope, w.currency)
	        and u.at < @to), '{}') as amounts
	  from audit.limit_windows w
	  where w.window_seconds = 2147483647 and w.scope <> 'tenant:*'
	), parts as (
	  select b.channel, b.scope, b.currency, b.since, b.amounts,
	    width_bucket(a.claimed_at, b.times) as part, max(a.claimed_at) as at,
	    sum(a.price_micros) as micros
	  from budgets b
	  join (
	    select a.channel, a.currency, a.price_micros, a.claimed_at, m.tenant
	    from facts.stored_attempts a join facts.stored_messages m on m.seq = a.message_seq
	    union all
	    select a.channel, a.currency, a.price_micros, a.claimed_at, m.tenant
	    from facts.open_attempts a cross join lateral (
	      select tenant from facts.stored_messages s where s.seq = a.message_seq offset 0) m
	  ) a on a.claimed_at >= greatest(b.since, @from)
	    and a.claimed_at < least(b.until, @to) and a.currency = b.currency
	    and (b.channel = '' or a.channel = b.channel)
	  where b.scope = 'channel' or b.scope = 'tenant:' || a.tenant
	  group by 1, 2, 3, 4, 5, 6
	), costs as (
	  select channel, scope, currency, at,
	    sum(micros) over (partition by channel, scope, currency, since order by part)::bigint as cost,
	    coalesce((select sum(n) from unnest(amounts[:part]) n), 0)::bigint as topped_up
	  from parts
	)
	select distinct on (channel, scope, currency) channel, scope, currency, at, cost, topped_up
	from costs where cost > topped_up order by channel, scope, currency, at`

// Overspent lists the budgets whose attempts claimed in [from, to) cost more than had been topped
// up by then, each with the first time that this was so. It reads only views that finance may read.
func (s *Limits) Overspent(ctx context.Context, from, to time.Time) ([]Overspent, error) {
	out, err := rows(ctx, s.db, pgx.RowToStructByPos[Overspent], overspent, pgx.NamedArgs{
		"from": from, "to": to,
	})
	return out, wrap("compare budgets with attempts", err)
}
