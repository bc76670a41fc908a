package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"dispatcher/admission"
	"dispatcher/provider"
)

// Settlements stores the outcomes of attempts, including those of dead instances, and frees their
// slots.
type Settlements struct{ *db }

// UnsaidAwait is how long receipts are awaited for an attempt that a receipt proves to have been
// accepted, and whose settlement said nothing about receipts.
const UnsaidAwait = 72 * time.Hour

// Settlement is the outcome of one attempt and the next state of its message.
type Settlement struct {
	Seq     int64
	ID      string
	Attempt int
	Outcome provider.Outcome
	// Unfit says that the provider does not take this one message, because of its text, its sender or
	// its destination. That does not count against the channel.
	Unfit bool
	// Code is the provider's error code, bounded.
	Code string
	// Reference holds the provider's ids of the accepted parts, separated by spaces.
	Reference string
	// Denied holds the ids that the answer named for parts that were not taken. DeniedParts is how
	// many such parts there are; 0 stands for one. A receipt should never come for them: one that says
	// delivered contradicts the answer.
	Denied      string
	DeniedParts int
	// Segments and PriceMicros are what was accepted and is billed; with an Unknown outcome what may
	// have been accepted.
	Segments    int
	PriceMicros int64

	// State is Accepted, Rejected, Unknown, Retry, Waiting or Failed.
	State  State
	Reason string
	// NextAt is when the message is due, for Retry and Waiting; zero means at once. For Accepted it is
	// when the message goes on to another channel, see ByNoReceipt; zero means never.
	NextAt time.Time
	// Tried adds the attempt's channel to the row's Tried.
	Tried bool
	// Pinned, PartsLeft and PartsCut tie the remaining parts of a partly accepted message to its
	// channel, and to the way in which its text was split for it. PartsCut stays in the row when no
	// part is left.
	Pinned    string
	PartsLeft []int
	PartsCut  string
	// PossibleDuplicate flags the message before its one resend.
	PossibleDuplicate bool

	// Hold is for how long, at most, the attempt keeps its active slot after the answer. A receipt,
	// which needs Await, or a retry under its ticket ends that earlier. 0 gives the slot back at once.
	Hold time.Duration
	// Await is for how long after the settlement receipts are awaited for the parts in Reference.
	// Without them the message then becomes NoReceipt. 0 expects none. With an Unknown outcome it is
	// stored for later, see OpenAmbiguity.Await.
	Await time.Duration
	// Receipts is how many receipts tell everything about the attempt: one for each part that was
	// taken or may have been, or one for the whole where the provider does not report parts. It is not
	// delivered before that many receipts say so. 0 keeps the stored number, which is at first the
	// number of parts that Reference names.
	Receipts int
	// CutShort says that a part of the message was certainly not taken and will not be sent. The
	// message then cannot be delivered, whatever happens to the other parts. It needs Receipts.
	CutShort bool
	// Slow is set when the provider asked to slow down.
	Slow *Slow
	// Refunds give back what the attempt took from limits in money and did not spend. A refund counts
	// only in the window from which the money was taken.
	Refunds []Refund
	// Repeats says that the attempt was made under the key of the one before it, which was charged for
	// the same submission. Then no more goes back than that one was charged.
	Repeats bool

	// Ambiguity is set when no answer came, and when an attempt repeated one without an answer.
	Ambiguity *Ambiguity

	// Notice is a status event without headers, or nil. It is published only if this settlement took
	// effect.
	Notice *Notice
}

// plain reports whether the first attempt of a message was accepted and nothing else has to be
// stored. The message's row then stays as it is.
func (s *Settlement) plain() bool {
	return s.Attempt == 1 && s.State == Accepted && s.Outcome == provider.Accepted &&
		s.NextAt.IsZero() &&
		s.Reason == "" && !s.Tried && !s.PossibleDuplicate && s.Pinned == "" &&
		len(s.PartsLeft) == 0 && s.PartsCut == "" && s.Ambiguity == nil
}

// Slow says that the provider asked to slow down. It lowers the rate of the channel for all
// processes.
type Slow struct {
	RetryAfter time.Duration // how long to submit nothing; 0 when the provider named no time
}

// Refund is an amount that goes back to one limit in money, and to the tallies that counted it.
type Refund struct {
	ScopeRef
	Window admission.Window
	Micros int64
	// Tallies are those that the claim counted the amount in, even if the limit's policy or reserves
	// have changed since.
	Tallies admission.Tallies
}

// Open is an attempt without outcome that a dead instance left behind.
type Open struct {
	Message Message
	Attempt Attempt
	// ClaimedAt is the database's time of the claim.
	ClaimedAt time.Time
	// KeyID is Config.KeyID of the instance; empty for one of an earlier build.
	KeyID string
}

// Settle stores the outcomes of attempts. Those of messages of one day take one round trip if all
// of them are plain or none is, else two. It takes some more when attempts of plain ones have a
// row, or when a receipt inserts a row at the same time. What one round trip stores is stored all
// or none, and durable when Settle returns. Settling an attempt again has no effect, so the caller
// repeats a call that failed.
func (s *Settlements) Settle(ctx context.Context, settlements []Settlement) error {
	if len(settlements) == 0 {
		return nil
	}
	for i := range settlements {
		if n := settlements[i].Notice; n != nil && (n.Kind != Status || len(n.Headers) > 0 ||
			len(n.Value) == 0) {
			return fmt.Errorf("settle message %d: the notice is not a plain status event",
				settlements[i].Seq)
		}
	}
	conn, err := s.hot.Acquire(ctx)
	if err != nil {
		return wrap("settle", err)
	}
	defer conn.Release()
	order := bySeq(settlements)
	s.open.find(order)
	eachDay(len(order), func(i int) int64 { return order[i].Seq }, func(day Day, from, to int) {
		if err == nil {
			err = s.settleDay(ctx, conn, day, order[from:to])
		}
	})
	return wrap("settle", err)
}

// settling is a settlement that is being stored. open is its attempt if this process keeps it, see
// openAttempts.
type settling struct {
	*Settlement
	open *openAttempt
}

// settleDay settles attempts of messages of one day. The plain ones come last, because the others
// may be sent again at once. They are a transaction of their own, so that each locks in order.
func (s *Settlements) settleDay(
	ctx context.Context, conn *pgxpool.Conn, day Day, order []settling,
) error {
	plain, others := apart(order)
	if err := s.store(ctx, conn, day, others, queueAny); err != nil {
		return err
	}
	err := s.store(ctx, conn, day, plain, queuePlain)
	if !isStored(err) {
		return err
	}
	// Some attempts have a row: receipts named them, or the answer to this call was lost before.
	stored, err := queried(ctx, conn, pgx.RowTo[int64], selectStored.on(day), seqsOf(plain))
	if err != nil {
		return err
	}
	if err := s.store(ctx, conn, day, those(plain, stored, true), queueAny); err != nil {
		return err
	}
	rest := those(plain, stored, false)
	if err := s.store(ctx, conn, day, rest, queuePlain); !isStored(err) {
		return err
	}
	return s.store(ctx, conn, day, rest, queueAny)
}

func seqsOf(order []settling) []int64 {
	seqs := make([]int64, len(order))
	for i, s := range order {
		seqs[i] = s.Seq
	}
	return seqs
}

// those returns the settlements whose messages are among seqs, or the others.
func those(order []settling, seqs []int64, among bool) (some []settling) {
	for _, s := range order {
		if slices.Contains(seqs, s.Seq) == among {
			some = append(some, s)
		}
	}
	return some
}

// apart separates the settlements for which queuePlain is enough from all others. Several of one
// message stay together: between two transactions the message would have a state that it never had.
func apart(order []settling) (plain, others []settling) {
	for i, s := range order {
		alone := (i == 0 || order[i-1].Seq != s.Seq) &&
			(i+1 == len(order) || order[i+1].Seq != s.Seq)
		if alone && s.open != nil && s.plain() && !s.needsMore() {
			plain = append(plain, s)
		} else {
			others = append(others, s)
		}
	}
	return plain, others
}

// store stores settlements of messages of one day in one round trip, all or none. queue adds their
// statements; with merge set, receipts that they expect may have a row already. Without it the
// batch fails when a receipt inserts the same row at the same time, see expectReceipts.
func (s *Settlements) store(
	ctx context.Context, conn *pgxpool.Conn, day Day, order []settling,
	queue func(batch *pgx.Batch, day Day, order []settling, merge bool),
) error {
	if len(order) == 0 {
		return nil
	}
	over := s.open.over(order)
	once := func(merge bool) error {
		return atOnce(ctx, conn, func(batch *pgx.Batch) {
			queue(batch, day, order, merge)
			if len(over) > 0 {
				batch.Queue(deleteOver, overArrays(over)...)
			}
		})
	}
	err := once(false)
	if isDuplicate(err) && !isStored(err) {
		err = once(true)
	}
	if err == nil {
		s.open.settled(order)
	}
	return err
}

// queuePlain queues plain settlements, see apart.
func queuePlain(batch *pgx.Batch, day Day, order []settling, merge bool) {
	batch.Queue(insertSettled.on(day), settledArrays(order)...)
	if expectations := expectArrays(order, merge); expectations != nil {
		batch.Queue(expectReceipts.on(day), expectations...)
	}
	batch.Queue(freeSlots, slotArrays(order)...)
	if keys, values := plainNotices(order); len(keys) > 0 {
		batch.Queue(insertOutbox, string(Status), keys, values, nil)
	}
}

// queueAny queues any settlements.
func queueAny(batch *pgx.Batch, day Day, order []settling, merge bool) {
	if open := openRowArrays(order); open != nil {
		batch.Queue(insertOpen.on(day), open...) // nobody can have locked a row that is not there
	}
	if expectations := expectArrays(order, merge); expectations != nil {
		batch.Queue(expectReceipts.on(day), expectations...) // receipts are first in the lock order
	}
	if repeats := repeatArrays(order); repeats != nil {
		batch.Queue(lockRepeated.on(day), repeats...)
	}
	batch.Queue(settle.on(day), settlementArrays(order)...)
	if corrections := correctedArrays(order); corrections != nil {
		batch.Queue(corrected.on(day), corrections...)
	}
	if ambiguities := ambiguityArrays(order); ambiguities != nil {
		batch.Queue(recordAmbiguities.on(day), ambiguities...)
	}
}

// bySeq is the order in which settlements lock: ascending by message and attempt.
func bySeq(settlements []Settlement) []settling {
	order := make([]settling, len(settlements))
	for i := range settlements {
		order[i].Settlement = &settlements[i]
	}
	slices.SortStableFunc(order, func(a, b settling) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Attempt, b.Attempt))
	})
	return order
}

// needsMore reports whether the settlement stores more than its outcome and the state of its
// message.
func (s *Settlement) needsMore() bool {
	return s.Hold > 0 || s.Slow != nil || len(s.Refunds) > 0 || s.Unfit || s.Receipts > 0 ||
		s.DeniedParts > 0 || strings.ContainsFunc(s.Reference, isOddSpace)
}

// isOddSpace reports whether names splits at the character, and PostgreSQL does not.
func isOddSpace(r rune) bool { return r != ' ' && unicode.IsSpace(r) }
