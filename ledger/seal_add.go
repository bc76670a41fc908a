package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// sealLock is the advisory lock of the transaction that adds a seal.
const sealLock = 0x7365616c

// sealFormat is the format of the seals of this build.
const sealFormat = 2

// SealWriter makes the leaves of one seal.
type SealWriter interface {
	// Known is called first, with the leaves of each earlier seal of the same messages, or of
	// definitions, in their order.
	Known(leaves []byte) error
	// Add is called with each version and message, messages ascending by number, and windows of
	// limits, or with closings, finance rows and definitions.
	Add(e *Evidence) error
	// Close sets Size, Leaves, Nodes and Checkpoint.
	Close(s *Seal) error
}

const (
	// sealAfter is how old messages are when they are sealed first. By then most answers and receipts
	// have come, and no transaction still stores messages of that time.
	sealAfter = 5 * time.Minute
	// sealSpan is the longest period of one seal. A seal never spans two hours of the clock.
	sealSpan = time.Hour
)

// Add makes the seals that are due and adds them to the log, each in a transaction, until none is
// due or another instance is adding one. begin is called with the newest seal, nil for none, and
// added with each new one. The log begins with the messages received about when Add is called for
// the first time. All use one session, because each session first has to load the catalog entries
// of the tables.
//
// Each minute is sealed once, when it is some minutes old. After that each hour is sealed again
// when it is ten times as old as it was the last time, until it is older than half of facts, the
// retention of its rows. Such a seal holds what has changed since. Closings of days and finance
// rows have separate seals, which follow each other without a gap; the first one has all that there
// are. When the definitions of views and functions have changed, such a seal has them too.
func (s *Seals) Add(
	ctx context.Context, facts time.Duration, begin func(last *Seal) (SealWriter, error),
	added func(*Seal),
) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return wrap("seal", err)
	}
	defer closeConn(conn)
	if _, err := conn.Exec(ctx, closeSettings); err != nil {
		return wrap("seal", err)
	}
	for {
		var next *Seal
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			var ours bool
			err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock($1)`, sealLock).Scan(&ours)
			if err != nil || !ours {
				return err
			}
			next, err = s.addIn(ctx, tx, facts, begin)
			return err
		})
		if err != nil || next == nil {
			return wrap("seal", err)
		}
		added(next)
	}
}

// addIn adds the next seal that is due in its transaction, and returns it; nil when none is due.
func (s *Seals) addIn(
	ctx context.Context, tx pgx.Tx, facts time.Duration, begin func(last *Seal) (SealWriter, error),
) (*Seal, error) {
	last, err := oneSeal(ctx, tx, lastSeal)
	if err != nil {
		return nil, err
	}
	next, err := nextSeal(ctx, tx, facts)
	if err != nil || next == nil {
		return nil, err
	}
	next.Number, next.Format = 1, sealFormat
	if last != nil {
		next.Number = last.Number + 1
	}
	writer, err := begin(last)
	if err != nil {
		return nil, err
	}
	add := s.addMessages
	if next.Closings {
		add = s.addClosings
	}
	if err := add(ctx, tx, next, writer); err != nil {
		return nil, err
	}
	if err := writer.Close(next); err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx, `
		insert into dispatcher.seals (number, from_at, to_at, at, again, size, leaves, nodes,
		  checkpoint, closings, finance_from, format, definitions)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`, next.Number, next.From, next.To,
		next.At, next.Again, next.Size, next.Leaves, next.Nodes, next.Checkpoint, next.Closings,
		next.FinanceFrom, next.Format, next.Definitions)
	return next, err
}

// addMessages adds the evidence of the versions and messages that a seal covers.
func (s *Seals) addMessages(ctx context.Context, tx pgx.Tx, next *Seal, writer SealWriter) error {
	if next.Again {
		err := known(ctx, tx, writer, `select leaves from dispatcher.seals
			where from_at >= $1 and from_at < $2 and not closings order by number`, next.From, next.To)
		if err != nil {
			return err
		}
	}
	err := s.evidence(ctx, tx, next.From, next.To, writer.Add)
	if err != nil || next.Again {
		return err
	}
	return windows(ctx, tx, next.From, next.To, func(w *Windows) error {
		return writer.Add(w.evidence())
	})
}

// known tells a writer the leaves that a statement selects.
func known(ctx context.Context, tx pgx.Tx, writer SealWriter, sql string, args ...any) error {
	r, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	var leaves []byte
	_, err = pgx.ForEachRow(r, []any{&leaves}, func() error { return writer.Known(leaves) })
	return err
}

// addClosings adds the evidence of the closings and finance rows that a seal covers, and of the
// definitions that have changed.
func (s *Seals) addClosings(ctx context.Context, tx pgx.Tx, next *Seal, writer SealWriter) error {
	if next.Definitions != nil {
		if err := addDefinitions(ctx, tx, writer); err != nil {
			return err
		}
	}
	days, err := queried(ctx, tx, pgx.RowTo[string], `
		select distinct to_char(day, 'YYYY-MM-DD') as day from dispatcher.closings
		where at >= $1 and at < $2 order by day`, next.From, next.To)
	if err != nil {
		return err
	}
	for _, day := range days {
		err := closingsOf(ctx, tx, day, func(e *Evidence) error {
			if e.ReceivedAt.Before(next.From) || !e.ReceivedAt.Before(next.To) {
				return nil
			}
			return writer.Add(e)
		})
		if err != nil {
			return err
		}
	}
	return finance(ctx, tx, *next.FinanceFrom, &next.To, writer.Add)
}

// newFinance says from when on closings and finance rows have no seal, and whether there are any
// before $1.
const newFinance = `
	select begins, finance,
	  exists (select from dispatcher.closings where at >= begins and at < $1) or
	  exists (select from facts.finance_evidence where at >= finance and at < $1)
	from (select coalesce((select to_at from dispatcher.seals where closings
	    order by number desc limit 1), 'epoch') as begins,
	  coalesce((select to_at from dispatcher.seals where closings and finance_from is not null
	    order by number desc limit 1), 'epoch') as finance) s`

// nextSeal returns the next seal that is due, with From, To, At and Again set. Messages without a
// seal come first, then closings and finance rows, then hours that are to be sealed again. It
// returns nil when none is due.
func nextSeal(ctx context.Context, tx pgx.Tx, facts time.Duration) (next *Seal, err error) {
	var now time.Time
	var from *time.Time
	err = tx.QueryRow(ctx, `
		select clock_timestamp(), (select to_at from dispatcher.seals where not again
		  order by number desc limit 1)`).Scan(&now, &from)
	if err != nil {
		return nil, err
	}
	end := now.Add(-sealAfter).Truncate(time.Minute)
	if from == nil {
		begin := end.Add(-time.Minute)
		from = &begin
	}
	next = &Seal{From: from.UTC(), At: now}
	if next.To = next.From.Truncate(sealSpan).Add(sealSpan); next.To.After(end) {
		next.To = end.UTC()
	}
	if next.To.After(next.From) {
		return next, nil
	}
	next.Again = true
	err = tx.QueryRow(ctx, newFinance, end).Scan(&next.From, &next.FinanceFrom, &next.Closings)
	if err != nil {
		return nil, err
	}
	if end.After(next.From) {
		if next.Definitions, err = newDefinitions(ctx, tx); err != nil {
			return nil, err
		}
	}
	if next.Closings = next.Closings || next.Definitions != nil; next.Closings {
		next.To = end.UTC()
		return next, atMost(ctx, tx, next)
	}
	next.FinanceFrom = nil
	err = tx.QueryRow(ctx, `
		select hour, hour + $1::interval
		from (select date_trunc('hour', from_at, 'UTC') as hour, at, to_at
		  from dispatcher.seals
		  where from_at > $2::timestamptz - $3::interval / 2 and not closings) s
		group by hour
		having max(to_at) = hour + $1::interval
		  and $2 - max(to_at) >= 10 * (max(at) - max(to_at))
		order by hour limit 1`, sealSpan, now, facts).Scan(&next.From, &next.To)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // None is due.
	}
	return next, err
}
