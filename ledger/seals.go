package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Seal is one entry of the log. It covers messages received in [From, To), as they were at At.
type Seal struct {
	Number   int64
	From, To time.Time
	At       time.Time
	// Again says that these messages were sealed before. Leaves then holds only what has changed.
	Again bool
	// Closings says that it covers the closings of days made in [From, To), and no messages. Then
	// Again is true too: it is false only for the first seal of messages.
	Closings bool
	// FinanceFrom is set if it also covers the finance rows made in [FinanceFrom, To). Seals of
	// earlier builds cover none.
	FinanceFrom *time.Time
	// Format is 1 in seals of earlier builds: PartLater of their messages has no receipts and no
	// details of dead records. In format 2, seals with Again false also cover the windows of limits
	// that ended in [From, To).
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

const (
	sealColumns = `number, from_at, to_at, at, again, size, leaves, nodes, checkpoint, closings,
	  finance_from, format, definitions`
	lastSeal = `select ` + sealColumns + ` from audit.seals order by number desc limit 1`
)

// Forget empties the leaves of seals whose messages are older than facts, the retention of their
// rows. The log stays valid: the checkpoints and nodes stay. Leaves of closings and finance rows
// stay too.
func (s *Seals) Forget(ctx context.Context, facts time.Duration) error {
	_, err := s.reports.Exec(ctx, `select dispatcher.forget_leaves(clock_timestamp() - $1::interval)`,
		facts)
	return wrap("forget old leaves", err)
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

// Between calls each with the seals whose numbers are above after, up to upTo, in their order.
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
