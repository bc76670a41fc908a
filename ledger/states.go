package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
)

// Limits are the counters of channels and limits, now and before.
type Limits struct {
	*db
	routing *Routing
}

// Present is the shared state of the channels at one moment, for people to look at. It is
// read without locks: nothing may be decided by it.
type Present struct {
	// Now is the database's clock.
	Now time.Time
	// Channels are those of the current routing, by name. Counters are as stored: Gate.Roll brings
	// them to Now. What only the routing says of a limit (sliding, burst, reserve) is not in them.
	Channels []ChannelState
	// Scoped are all limits that are narrower than a channel or stand over all channels, by
	// channel and text of the scope; each has at least one counter.
	Scoped []ScopeState
	// Waiting are the messages that wait, by what they wait for and why.
	Waiting []Waiters
}

// Waiters are messages that wait for the same.
type Waiters struct {
	On, Reason string // as in Wait
	Messages   int64
	Next       time.Time // when the first of them is looked at again
}

// Present reads the counters of all channels and scopes, and counts who waits.
func (s *Limits) Present(ctx context.Context) (Present, error) {
	var p Present
	names, scopes, err := s.whatIs(ctx, &p)
	if err != nil {
		return Present{}, wrap("read channels", err)
	}
	for _, ref := range scopes {
		p.Scoped = append(p.Scoped, ScopeState{ScopeRef: ref})
	}
	batch := &pgx.Batch{}
	row := channelRow{withoutBeginning: true}
	batch.Queue(`select `+channelColumns+` from dispatcher.channels where channel = any($1) order by channel`, names).
		Query(func(r pgx.Rows) error {
			p.Channels, _, err = collectChannels(r, names, &row)
			return err
		})
	batch.Queue(`
		select ` + limitColumns + ` from dispatcher.limits l order by l.channel, l.scope, l.window_seconds, l.unit`).
		Query(func(r pgx.Rows) error { return collectLimits(r, p.Channels, p.Scoped) })
	batch.Queue(`
		select coalesce(waits_for, ''), coalesce(reason, ''), count(*), min(next_at)
		  from dispatcher.messages
		where queue is not null and state = 'waiting' group by 1, 2 order by 1, 2`).
		Query(func(r pgx.Rows) error {
			p.Waiting, err = pgx.CollectRows(r, pgx.RowToStructByPos[Waiters])
			return err
		})
	err = s.reports.SendBatch(ctx, batch).Close()
	// A limit may have gone since the scopes were listed.
	p.Scoped = slices.DeleteFunc(p.Scoped, func(s ScopeState) bool { return len(s.Counters) == 0 })
	return p, wrap("read channels", err)
}

// whatIs reads the clock and which channels and scopes there are.
func (s *Limits) whatIs(ctx context.Context, p *Present) (names []string, scopes []ScopeRef, err error) {
	err = s.reports.QueryRow(ctx, `
		select now(), coalesce((select array_agg(channel order by channel) from dispatcher.channels where removed_at is null), '{}')`).
		Scan(&p.Now, &names)
	if err != nil {
		return nil, nil, err
	}
	p.Now = p.Now.UTC()
	scopes, err = rows(ctx, s.db, scanScope, `
		select distinct channel, scope from dispatcher.limits where scope <> 'channel' order by channel, scope`)
	return names, scopes, err
}

func scanScope(r pgx.CollectableRow) (ref ScopeRef, err error) {
	var text string
	if err := r.Scan(&ref.Channel, &text); err != nil {
		return ref, err
	}
	ref.Scope, err = admission.ParseScope(text)
	return ref, err
}
