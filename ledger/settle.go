package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dispatcher/admission"
	"dispatcher/provider"
)

// Settlements writes down what became of attempts, also of those whose instance is dead, and frees
// their slots.
type Settlements struct{ *db }

// UnsaidAwait is for how long receipts are awaited of an attempt that a receipt proves to have been
// taken, and whose settlement said nothing about receipts.
const UnsaidAwait = 72 * time.Hour

// Settlement writes down what came of one attempt and where its message goes next.
type Settlement struct {
	Seq     int64
	ID      string
	Attempt int
	Outcome provider.Outcome
	// Unfit says that the provider answered that it does not take this one message, for its text,
	// its sender, or where it goes: that says nothing against the channel.
	Unfit bool
	// Code is the provider's own word, bounded.
	Code string
	// Reference holds the provider's ids of the accepted parts, separated by spaces.
	Reference string
	// Denied holds the ids that the answer named of parts that were not taken, and DeniedParts is
	// how many such parts there are; 0 stands for one. A receipt should never come for them: one
	// that says delivered contradicts the answer.
	Denied      string
	DeniedParts int
	// Segments and PriceMicros are what was accepted, hence is billed; for an Unknown outcome what
	// may have been.
	Segments    int
	PriceMicros int64

	// State is Accepted, Rejected, Unknown, Retry, Waiting or Failed.
	State  State
	Reason string
	// NextAt is set for Retry and Waiting. The zero time means at once, by the database's clock. Set
	// for Accepted, it is when the message goes on to another channel, see ByNoReceipt.
	NextAt time.Time
	// Tried adds the attempt's channel to the row's Tried.
	Tried bool
	// Pinned, PartsLeft and PartsCut tie the rest of a partly accepted message to its channel, and
	// to the way in which its text was cut for that. PartsCut stays in the row when no part is left
	// any more.
	Pinned    string
	PartsLeft []int
	PartsCut  string
	// PossibleDuplicate flags the message before its one resend.
	PossibleDuplicate bool

	// Hold keeps the attempt's active slot for so long after the answer, until a receipt, which
	// needs Await, or a retry under its ticket; 0 gives it back at once.
	Hold time.Duration
	// Await says that receipts are expected for the parts in Reference, until so long after the
	// settlement: without them the message becomes NoReceipt then. 0 expects none. With an Unknown
	// outcome it is kept for what becomes known later, see OpenAmbiguity.Await.
	Await time.Duration
	// Receipts is how many receipts tell all that can be told about the attempt: one for each part
	// that was taken or may have been, or one for the whole where the provider tells of the whole.
	// Before so many parts have been told of, it is not delivered. 0 leaves it at what is known, at
	// first at the number of parts that Reference names.
	Receipts int
	// CutShort says that a part of the message certainly was not taken and will not be sent any
	// more, whatever became of the others: it cannot be delivered. It needs Receipts.
	CutShort bool
	// Slow is set when the provider asked to slow down.
	Slow *Slow
	// Refunds give back what the attempt took of limits in money and did not spend. They count only
	// in the window that it was taken in.
	Refunds []Refund

	// Ambiguity is set when nobody answered, and when an attempt repeated one that nobody had
	// answered.
	Ambiguity *Ambiguity

	// Notice is a status event without headers, or nil. It is published only if this
	// settlement was the one that took effect.
	Notice *Notice
}

// plain reports whether the first attempt of a message was accepted and nothing else is to be
// noted: then the message's row stays as it is.
func (s *Settlement) plain() bool {
	return s.Attempt == 1 && s.State == Accepted && s.Outcome == provider.Accepted &&
		s.NextAt.IsZero() &&
		s.Reason == "" && !s.Tried && !s.PossibleDuplicate && s.Pinned == "" &&
		len(s.PartsLeft) == 0 && s.PartsCut == "" && s.Ambiguity == nil
}

// Slow says that the provider asked to slow down. It lowers the rate of the channel for all
// processes.
type Slow struct {
	RetryAfter time.Duration // nothing is to be submitted for so long; 0 when it named no time
}

// Refund is an amount that goes back to one limit in money, and to what it was counted in apart.
type Refund struct {
	ScopeRef
	Window admission.Window
	Micros int64
	// Tallies are those of the claim: whatever the limit keeps for lanes or leaves to processes by
	// now.
	Tallies admission.Tallies
}

// Open is an attempt without outcome that a lost instance left behind.
type Open struct {
	Message Message
	Attempt Attempt
	// ClaimedAt is the database's time of the claim.
	ClaimedAt time.Time
}

// Settle writes down what came of attempts: those of messages of one day in one round trip (two
// when nothing of it was new, see replicationBarrier) and all or nothing. To settle again what was
// settled has no effect, so a call that failed, in whatever way, is simply repeated.
func (s *Settlements) Settle(ctx context.Context, settlements []Settlement) error {
	if len(settlements) == 0 {
		return nil
	}
	for i := range settlements {
		if n := settlements[i].Notice; n != nil && (n.Kind != Status || len(n.Headers) > 0 ||
			len(n.Value) == 0) {
			return fmt.Errorf("settle message %d: the notice is no plain status event",
				settlements[i].Seq)
		}
	}
	// one for both statements, so that the barrier is on the same server
	conn, err := s.hot.Acquire(ctx)
	if err != nil {
		return wrap("settle", err)
	}
	defer conn.Release()
	order := bySeq(settlements)
	eachDay(len(order), func(i int) int64 { return order[i].Seq }, func(day Day, from, to int) {
		if err == nil {
			err = settleIn(ctx, conn, day, order[from:to], false)
		}
		if isDuplicate(err) {
			err = settleIn(ctx, conn, day, order[from:to], true)
		}
	})
	return wrap("settle", err)
}

// executor is a connection or a transaction.
type executor interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// settleIn writes settlements of messages of one day in one round trip; a batch is one transaction.
// Without merge it fails when receipts come at the same moment, see expectReceipts.
func settleIn(
	ctx context.Context, db executor, day Day, order []*Settlement, merge bool,
) error {
	sql, args := settle.on(day), settlementArrays(order)
	if more(order) {
		sql, args = settleMore.on(day), append(args, moreArrays(order)...)
	}
	ambiguities, expectations, corrections := ambiguityArrays(order),
		expectArrays(order, merge), correctedArrays(order)
	repeats := repeatArrays(order)
	if ambiguities == nil && expectations == nil && corrections == nil && repeats == nil {
		tag, err := db.Exec(ctx, sql, args...)
		return barrierUnless(ctx, db, tag.RowsAffected() > 0, err)
	}
	var told int64 // rows of the outbox
	batch := &pgx.Batch{}
	if expectations != nil {
		batch.Queue(expectReceipts.on(day), expectations...) // receipts come first in the order of locks
	}
	if repeats != nil {
		batch.Queue(lockRepeated.on(day), repeats...)
	}
	batch.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
		told = tag.RowsAffected()
		return nil
	})
	if corrections != nil {
		batch.Queue(corrected.on(day), corrections...)
	}
	if ambiguities != nil {
		batch.Queue(recordAmbiguities.on(day), ambiguities...)
	}
	err := db.SendBatch(ctx, batch).Close()
	return barrierUnless(ctx, db, told > 0, err)
}

// barrierUnless is the replication barrier of a settlement that published nothing: it may have been
// written before.
func barrierUnless(ctx context.Context, db executor, told bool, err error) error {
	if err == nil && !told {
		_, err = db.Exec(ctx, replicationBarrier)
	}
	return err
}

// bySeq is the order in which settlements lock: ascending by message and attempt.
func bySeq(settlements []Settlement) []*Settlement {
	order := make([]*Settlement, len(settlements))
	for i := range settlements {
		order[i] = &settlements[i]
	}
	slices.SortStableFunc(order, func(a, b *Settlement) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Attempt, b.Attempt))
	})
	return order
}

// more reports whether one of the settlements needs settleMore.
func more(order []*Settlement) bool {
	return slices.ContainsFunc(order, func(s *Settlement) bool {
		return s.Hold > 0 || s.Slow != nil || len(s.Refunds) > 0 || s.Unfit || s.Receipts > 0 ||
			s.DeniedParts > 0
	})
}
