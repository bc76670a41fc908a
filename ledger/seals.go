package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// HashSize is how many bytes of the SHA-256 of a part of a message are kept.
const HashSize = 16

// Indexes of Parts.
const (
	PartIntake   = iota // where it came from, and what was received
	PartPlan            // route, version, draw, first choice, segments
	PartAttempts        // channels, prices, answers, times
	PartLater           // state, receipts, what was found out about unknown answers, detail
)

// PartNames are the names of the parts, by index.
var PartNames = [...]string{"intake", "plan", "attempts", "later"}

// NotSent is the state in evidence of a message that is still to be sent.
const NotSent = "open"

// Parts are the hashes of a message, by part.
type Parts [len(PartNames)][HashSize]byte

// Evidence is what an auditor compares of a message, of a routing version, of the closing of a day
// or of a finance row. See the views evidence, version_evidence, closing_evidence and
// finance_evidence of schema facts.
type Evidence struct {
	// Seq is the number of a message. A negative Seq is a version: -3 is version 3. Lower numbers are
	// closings, see ClosingOf and ClosingParts. The lowest are finance rows, see FinanceOf.
	Seq        int64
	ID         string    // of a message
	ReceivedAt time.Time // or when the rest was made; zero for figures without a closing
	// State is NotSent while the message is still to be sent.
	State State
	// Open says that the plan and the attempts may still change.
	Open  bool
	Parts Parts
	// Later1 is PartLater of a message as looks of format 1 have it.
	Later1 [HashSize]byte
	// LaterAt is the newest of the times in PartAttempts and PartLater; zero for none.
	LaterAt time.Time
}

// closingDay is what a day after 1970-01-01 counts in the Seq of a closing. No version has such a
// number, and no revision.
const closingDay = 1 << 32

// ClosingOf reads a Seq that is the closing of a day: -(days since 1970-01-01 * 2^32 + revision).
func ClosingOf(seq int64) (day string, revision int64, ok bool) {
	if seq > -closingDay || seq <= -topUpSeq {
		return "", 0, false
	}
	return time.Unix(-seq/closingDay*86400, 0).UTC().Format(time.DateOnly), -seq % closingDay, true
}

// ClosingParts are the views of schema audit that have the parts of a closing, by index.
var ClosingParts = [...]string{
	"closings", choiceFigures.name, attemptFigures.name, carriedFigures.name,
}

// Seal is one entry of the log. It covers the messages received in [From, To), as they were at At.
type Seal struct {
	Number   int64
	From, To time.Time
	At       time.Time
	// Again says that these messages were sealed before. Leaves then holds only what has changed.
	Again bool
	// Closings says that it covers the closings of days made in [From, To), and no messages. Again is
	// true then, as it is for all that do not continue the messages.
	Closings bool
	// FinanceFrom is set if it also covers the finance rows made in [FinanceFrom, To). Seals of
	// earlier builds cover none.
	FinanceFrom *time.Time
	// Format is 1 in seals of earlier builds, whose messages have no receipts and no details of dead
	// records in PartLater. First looks of format 2 also cover the windows of limits that ended in
	// [From, To).
	Format int16
	// Definitions is the hash of all definitions if the seal has leaves of them, see Definitions.
	Definitions []byte
	// Size is the number of leaves of the log up to this seal. Nodes are the roots of its perfect
	// subtrees, from which the next seal continues.
	Size       int64
	Leaves     []byte
	Nodes      []byte
	Checkpoint string
}

// Seals stores a signed log of hashes, which shows whether rows were changed later.
type Seals struct{ *db }

// sealLock is the advisory lock of the transaction that adds a seal.
const sealLock = 0x7365616c

// sealFormat is the format of the seals of this build.
const sealFormat = 2

const (
	sealColumns = `number, from_at, to_at, at, again, size, leaves, nodes, checkpoint, closings,
	  finance_from, format, definitions`
	lastSeal = `select ` + sealColumns + ` from audit.seals order by number desc limit 1`
)

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
	// sealAfter is how old messages are when they are sealed first. By then most answers and
	// receipts have come, and no transaction still stores messages of that time.
	sealAfter = 5 * time.Minute
	// sealSpan is the longest period of one seal. A seal never spans two hours of the clock.
	sealSpan = time.Hour
)

// Add makes the next seal that is due and adds it to the log. It returns nil when none is due, or
// when another instance is adding one. begin is called with the newest seal, nil for none. The log
// begins with the messages received about when Add is called for the first time.
//
// Each minute is sealed once, when it is some minutes old. After that each hour is sealed again
// when it is ten times as old as it was the last time, until it is older than half of facts, the
// retention of its rows. Such a seal holds what has changed since. Closings of days and finance
// rows have seals of their own, which also follow each other. The first has all there are. So have
// the definitions of views and functions, whenever they have changed.
func (s *Seals) Add(
	ctx context.Context, facts time.Duration, begin func(last *Seal) (SealWriter, error),
) (added *Seal, err error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, wrap("seal", err)
	}
	defer closeConn(conn)
	if _, err := conn.Exec(ctx, closeSettings); err != nil {
		return nil, wrap("seal", err)
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var ours bool
		err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock($1)`, sealLock).Scan(&ours)
		if err != nil || !ours {
			return err
		}
		added, err = s.addIn(ctx, tx, facts, begin)
		return err
	})
	if err != nil {
		return nil, wrap("seal", err)
	}
	return added, nil
}

// addIn is Add in its transaction.
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
	_, err = tx.Exec(ctx, `insert into dispatcher.seals (`+sealColumns+`)
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
	r, err := tx.Query(ctx, `select distinct to_char(day, 'YYYY-MM-DD') as day from dispatcher.closings
		where at >= $1 and at < $2 order by day`, next.From, next.To)
	if err != nil {
		return err
	}
	days, err := pgx.CollectRows(r, pgx.RowTo[string])
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

// Forget empties the leaves of seals whose messages are older than facts, the retention of their
// rows. The log stays valid: the checkpoints and nodes stay. Leaves of closings and finance rows
// stay too.
func (s *Seals) Forget(ctx context.Context, facts time.Duration) error {
	_, err := s.reports.Exec(ctx, `select dispatcher.forget_leaves(clock_timestamp() - $1::interval)`,
		facts)
	return wrap("forget old leaves", err)
}

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
	err = tx.QueryRow(ctx, `
		select begins, finance,
		  exists (select from dispatcher.closings where at >= begins and at < $1) or
		  exists (select from facts.finance_evidence where at >= finance and at < $1)
		from (select coalesce((select to_at from dispatcher.seals where closings
		    order by number desc limit 1), 'epoch') as begins,
		  coalesce((select to_at from dispatcher.seals where closings and finance_from is not null
		    order by number desc limit 1), 'epoch') as finance) s`, end).
		Scan(&next.From, &next.FinanceFrom, &next.Closings)
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

// Evidence calls each with the routing versions created and then the messages received in [from,
// to), messages ascending by number. They are read in one snapshot.
func (s *Seals) Evidence(
	ctx context.Context, from, to time.Time, each func(*Evidence) error,
) error {
	return wrap("read evidence", s.evidence(ctx, s.reports, from, to, each))
}

func (s *Seals) evidence(
	ctx context.Context, q querier, from, to time.Time, each func(*Evidence) error,
) error {
	low, high, err := s.seekRange(ctx, from, to)
	if err != nil {
		return err
	}
	r, err := q.Query(ctx, `
		select -version, '', created_at, '', false, intake, plan, ''::bytea, ''::bytea, ''::bytea,
		  null::timestamptz
		from facts.version_evidence
		where created_at >= $3 and created_at < $4
		union all
		(select seq, id, received_at, state, open, intake, coalesce(plan, ''),
		  coalesce(attempts, ''), coalesce(later_2, ''), coalesce(later, ''), later_at
		from facts.evidence
		where seq > $1 and seq < $2 and received_at >= $3 and received_at < $4
		order by seq)`, low, high, from, to)
	if err != nil {
		return err
	}
	var e Evidence
	var parts [len(e.Parts)][]byte
	var later1 []byte
	var laterAt *time.Time
	_, err = pgx.ForEachRow(r, []any{
		&e.Seq, &e.ID, &e.ReceivedAt, &e.State, &e.Open, &parts[PartIntake], &parts[PartPlan],
		&parts[PartAttempts], &parts[PartLater], &later1, &laterAt,
	}, func() error {
		e.Parts, e.Later1, e.LaterAt = Parts{}, [HashSize]byte{}, time.Time{}
		copy(e.Later1[:], later1)
		if laterAt != nil {
			e.LaterAt = *laterAt
		}
		for i := range parts {
			copy(e.Parts[i][:], parts[i])
		}
		return each(&e)
	})
	return err
}

// ClosingsOf calls each with the closings of a day such as 2026-11-21, by their revisions. They are
// read in one snapshot.
func (s *Seals) ClosingsOf(ctx context.Context, day string, each func(*Evidence) error) error {
	return wrap("read evidence of closings", closingsOf(ctx, s.reports, day, each))
}

func closingsOf(ctx context.Context, q querier, day string, each func(*Evidence) error) error {
	r, err := q.Query(ctx, `
		select -((day - date 'epoch') * $2::bigint + revision), at, coalesce(intake, ''),
		  coalesce(choices, ''), coalesce(attempts, ''), coalesce(carried, '')
		from facts.closing_evidence where day = $1::date order by revision`, day, closingDay)
	if err != nil {
		return err
	}
	var seq int64
	var at *time.Time
	var parts [len(ClosingParts)][]byte
	_, err = pgx.ForEachRow(r, []any{&seq, &at, &parts[0], &parts[1], &parts[2], &parts[3]},
		func() error {
			e := Evidence{Seq: seq}
			if at != nil {
				e.ReceivedAt = *at
			}
			for i := range parts {
				copy(e.Parts[i][:], parts[i])
			}
			return each(&e)
		})
	return err
}

// querier is a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Each calls each with the seals that cover messages received in [from, to), in their order.
func (s *Seals) Each(
	ctx context.Context, from, to time.Time, each func(*Seal) error,
) error {
	return s.each(ctx, each, `select `+sealColumns+` from audit.seals
		where from_at < $2 and to_at > $1 and not closings order by number`, from, to)
}

// EachOfClosings calls each with the seals that cover closings and finance rows made after an
// instant, in their order.
func (s *Seals) EachOfClosings(
	ctx context.Context, after time.Time, each func(*Seal) error,
) error {
	return s.each(ctx, each, `select `+sealColumns+` from audit.seals
		where closings and to_at > $1 order by number`, after)
}

// Missing is how many seals are missing among all since the first one that covers messages received
// after an instant.
func (s *Seals) Missing(ctx context.Context, after time.Time) (n int64, err error) {
	err = s.reports.QueryRow(ctx, `
		select coalesce(max(number) - min(number) + 1 - count(*), 0) from audit.seals
		where number >= (select number from audit.seals where from_at >= $1 and not closings
		  order by from_at, at limit 1)`, after).Scan(&n)
	return n, wrap("count the seals", err)
}

func (s *Seals) each(ctx context.Context, each func(*Seal) error, sql string, args ...any) error {
	r, err := s.reports.Query(ctx, sql, args...)
	if err != nil {
		return wrap("read seals", err)
	}
	var one Seal
	_, err = pgx.ForEachRow(r, one.fields(), func() error { return each(&one) })
	return wrap("read seals", err)
}

// Number returns the seal of that number; nil when there is none.
func (s *Seals) Number(ctx context.Context, number int64) (*Seal, error) {
	one, err := oneSeal(ctx, s.reports, `select `+sealColumns+` from audit.seals where number = $1`,
		number)
	return one, wrap("read a seal", err)
}

// OfSize returns the first seal with that Size; nil when there is none.
func (s *Seals) OfSize(ctx context.Context, size int64) (*Seal, error) {
	one, err := oneSeal(ctx, s.reports, `select `+sealColumns+` from audit.seals where size = $1
		order by number limit 1`, size)
	return one, wrap("read a seal", err)
}

// Checkpoint returns the newest checkpoint; empty when there is none.
func (s *Seals) Checkpoint(ctx context.Context) (text string, err error) {
	err = s.reports.QueryRow(ctx,
		`select checkpoint from audit.seals order by number desc limit 1`).Scan(&text)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return text, wrap("read the newest checkpoint", err)
}

// Between calls each with the seals of higher numbers than the first one, up to the second one, in
// their order.
func (s *Seals) Between(
	ctx context.Context, after, upTo int64, each func(*Seal) error,
) error {
	return s.each(ctx, each, `select `+sealColumns+` from audit.seals
		where number > $1 and number <= $2 order by number`, after, upTo)
}

func oneSeal(ctx context.Context, q querier, sql string, args ...any) (*Seal, error) {
	r, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	s, err := pgx.CollectExactlyOneRow(r, func(row pgx.CollectableRow) (s Seal, err error) {
		err = row.Scan(s.fields()...)
		return s, err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // There is none.
	}
	return &s, err
}

func (s *Seal) fields() []any {
	return []any{
		&s.Number, &s.From, &s.To, &s.At, &s.Again, &s.Size, &s.Leaves, &s.Nodes, &s.Checkpoint,
		&s.Closings, &s.FinanceFrom, &s.Format, &s.Definitions,
	}
}
