package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"dispatcher/provider"
)

// Settle writes down what came of attempts, in one round trip (two when nothing of it was new, see
// replicationBarrier) and all or nothing. To settle again what was settled has no effect, so a call
// that failed, in whatever way, is simply repeated.
func (s *Settlements) Settle(ctx context.Context, settlements []Settlement) error {
	if len(settlements) == 0 {
		return nil
	}
	for i := range settlements {
		if n := settlements[i].Notice; n != nil && (n.Kind != Status || len(n.Headers) > 0 || len(n.Value) == 0) {
			return fmt.Errorf("settle message %d: the notice is no plain status event", settlements[i].Seq)
		}
	}
	conn, err := s.hot.Acquire(ctx) // one for both statements, so that the barrier is on the same server
	if err != nil {
		return wrap("settle", err)
	}
	defer conn.Release()
	return wrap("settle", settleIn(ctx, conn, bySeq(settlements)))
}

// executor is a connection or a transaction.
type executor interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// settleIn writes settlements in one round trip; a batch is one transaction.
func settleIn(ctx context.Context, db executor, order []*Settlement) error {
	sql, args := settle, settlementArrays(order)
	if more(order) {
		sql, args = settleMore, append(args, moreArrays(order)...)
	}
	ambiguities, expectations, corrections := ambiguityArrays(order), expectArrays(order), correctedArrays(order)
	repeats := repeatArrays(order)
	if ambiguities == nil && expectations == nil && corrections == nil && repeats == nil {
		tag, err := db.Exec(ctx, sql, args...)
		return barrierUnless(ctx, db, tag.RowsAffected() > 0, err)
	}
	var told int64 // rows of the outbox
	batch := &pgx.Batch{}
	if expectations != nil {
		batch.Queue(expectReceipts, expectations...) // receipts come first in the order of locks
	}
	if repeats != nil {
		batch.Queue(lockRepeated, repeats...)
	}
	batch.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
		told = tag.RowsAffected()
		return nil
	})
	if corrections != nil {
		batch.Queue(corrected, corrections...)
	}
	if ambiguities != nil {
		batch.Queue(recordAmbiguities, ambiguities...)
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
		return s.Hold > 0 || s.Slow != nil || len(s.Refunds) > 0 || s.Unfit || s.Receipts > 0 || s.DeniedParts > 0
	})
}

// settlementArrays are the parameters of settle.
func settlementArrays(order []*Settlement) []any {
	n := len(order)
	seq, attempt, outcome := make([]int64, n), make([]int16, n), make([]string, n)
	code, reference, segments, price := make([]string, n), make([]string, n), make([]int16, n), make([]int64, n)
	state, reason := make([]string, n), make([]string, n)
	var next []pgtype.Timestamptz // null unless a row has one
	tried, duplicate := make([]bool, n), make([]bool, n)
	pinned, left, cut := make([]string, n), make([]string, n), make([]string, n)
	notices := newNoticeArrays(n)
	for i, s := range order {
		seq[i], attempt[i], outcome[i] = s.Seq, int16(s.Attempt), s.Outcome.String()
		code[i], reference[i] = storable(s.Code), storable(cmp.Or(s.Reference, s.Denied))
		segments[i], price[i] = int16(s.Segments), s.PriceMicros
		state[i], reason[i] = string(s.State), storable(s.Reason)
		if !s.NextAt.IsZero() {
			next = room(next, n)
			next[i] = instant(s.NextAt)
		}
		tried[i], duplicate[i] = s.Tried, s.PossibleDuplicate
		pinned[i], left[i], cut[i] = s.Pinned, arrayLiteral(s.PartsLeft), storable(s.PartsCut)
		notices.set(i, s.Notice)
	}
	return append([]any{
		seq, brief(attempt), brief(outcome), brief(code), reference, brief(segments), brief(price),
		brief(state), brief(reason), next, brief(tried), brief(pinned), brief(left), brief(cut), brief(duplicate),
	}, notices.arguments()...)
}

// moreArrays are the parameters that settleMore takes beyond those of settle.
func moreArrays(order []*Settlement) []any {
	hold, slow, unfit, denied := make([]int64, len(order)), make([]int64, len(order)), make([]bool, len(order)), make([]int16, len(order))
	for i, s := range order {
		denied[i] = int16(s.DeniedParts) //nolint:gosec // Segments of a message.
		hold[i], slow[i], unfit[i] = s.Hold.Microseconds(), -1, s.Unfit
		if s.Slow != nil {
			slow[i] = max(s.Slow.RetryAfter, 0).Microseconds()
		}
	}
	refunds, tallies := refundArrays(order)
	args := append([]any{brief(hold), brief(slow)}, refunds...)
	args = append(append(args, saidArrays(order)...), brief(unfit))
	return append(append(args, tallies...), brief(denied))
}

// refundArrays are the refunds of settlements, which they name by their position, and the tallies
// of each.
func refundArrays(order []*Settlement) (refunds, tallies []any) {
	nr, channel, scope, lane, pool := []int64{}, []string{}, []string{}, []string{}, []string{}
	seconds, micros := []int32{}, []int64{}
	for i, s := range order {
		for _, r := range s.Refunds {
			nr, channel, scope = append(nr, int64(i+1)), append(channel, r.Channel), append(scope, r.Scope.String())
			seconds, micros = append(seconds, int32(r.Window.Seconds())), append(micros, max(r.Micros, 0))
			lane, pool = append(lane, r.Tallies.Lane), append(pool, r.Tallies.Pool)
		}
	}
	return []any{nr, channel, scope, seconds, micros}, []any{lane, pool}
}

// saidArrays are what the settlements say about receipts, see settleNames.
func saidArrays(order []*Settlement) []any {
	n := len(order)
	owed, within, telling, cut := make([]int16, n), make([]int64, n), make([]bool, n), make([]bool, n)
	for i, s := range order {
		if s.Receipts > 0 {
			owed[i], telling[i], within[i], cut[i] = s.said()
		}
	}
	return []any{brief(owed), brief(telling), brief(within), brief(cut)}
}

// correctedArrays are the parameters of corrected; nil when no settlement says anything about
// receipts.
func correctedArrays(order []*Settlement) []any {
	var seq, within []int64
	var attempt, owed []int16
	var outcome []string
	var telling, cut []bool
	for _, s := range order {
		if s.Receipts <= 0 {
			continue
		}
		o, t, w, c := s.said()
		seq, attempt, outcome = append(seq, s.Seq), append(attempt, int16(s.Attempt)), append(outcome, s.Outcome.String())
		owed, telling, within, cut = append(owed, o), append(telling, t), append(within, w), append(cut, c)
	}
	if seq == nil {
		return nil
	}
	return []any{seq, attempt, outcome, owed, telling, within, cut}
}

// said is what a settlement says about receipts, of which it names a number, see settleNames;
// within is in microseconds.
func (s *Settlement) said() (owed int16, telling bool, within int64, cut bool) {
	known := names(s.Reference)
	slices.Sort(known)
	telling = s.Receipts != len(slices.Compact(known)) || s.CutShort || s.Outcome == provider.Unknown
	return int16(s.Receipts), telling, max(s.Await, 0).Microseconds(), s.CutShort //nolint:gosec // Segments of a message.
}

// noticeArrays gathers at most one notice for each row, empty where there is none.
type noticeArrays struct {
	keys     []string
	values   [][]byte
	complete bool // every row has one
}

func newNoticeArrays(n int) noticeArrays {
	return noticeArrays{keys: make([]string, n), values: make([][]byte, n), complete: true}
}

func (a *noticeArrays) set(i int, n *Notice) {
	if n == nil {
		a.values[i], a.complete = []byte{}, false
		return
	}
	a.keys[i], a.values[i] = n.Key, n.Value
}

func (a *noticeArrays) arguments() []any { return []any{a.keys, a.values, a.complete} }

// storable makes a provider's word fit for a text column, which takes neither broken
// UTF-8 nor a zero byte: one odd answer must not keep a batch from being settled.
func storable(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// arrayLiteral is the text form of an array of small numbers; empty for none.
func arrayLiteral(numbers []int) string {
	if len(numbers) == 0 {
		return ""
	}
	b := []byte{'{'}
	for i, n := range numbers {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return string(append(b, '}'))
}
