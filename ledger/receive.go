package ledger

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/provider"
)

// maxReference bounds a reference, in bytes. Receipts for longer ones are neither expected nor
// kept.
const maxReference = provider.MaxReference

// receiveBatch is how many receipts one transaction records, and how many due rows one handles.
const receiveBatch = 500

// Receive records receipts, in transactions of up to 500 that take three round trips each: merge
// them into their rows; lock and read the messages that they are about, of any day; write what
// follows. One more round trip is needed when receipts name attempts by our key, one more when
// receipts changed no row, to find their messages, and one more when some messages are not plain,
// to lock them.
//
// Order and repetition of receipts make no difference: see conclude. A receipt whose attempt is not
// known is kept, and takes effect after the attempt is settled, see Overdue. A receipt with Seq
// makes an unknown attempt accepted. One that says delivered of a denied attempt makes the message
// delivered, not the attempt, see ReceiptCounts. The first final receipt of any part releases the
// active slot that its attempt holds until then.
//
// Receiving the same receipts again has no effect, so the caller repeats a call that failed. What
// it returns together with an error was done.
func (s *Receipts) Receive(ctx context.Context, receipts []Receipt, tell Tell) (Received, error) {
	var all Received
	for chunk := range slices.Chunk(receipts, receiveBatch) {
		err := s.inTx(ctx, tell, func(t *receiptTx) error {
			got, err := t.receive(ctx, chunk)
			all.add(got)
			return err
		})
		if err != nil {
			return all, wrap("receive", err)
		}
	}
	return all, nil
}

// WithKey returns those of the messages that have a receipt with our key for an attempt without an
// answer. The receipt proves that the attempt was taken; Overdue will make it accepted.
func (s *Receipts) WithKey(ctx context.Context, seqs []int64) ([]int64, error) {
	r, err := s.hot.Query(ctx, `
		select distinct a.message_seq from dispatcher.attempts a
		join dispatcher.receipts r on r.message_seq = a.message_seq and r.attempt = a.attempt
		where a.message_seq = any($1) and coalesce(a.outcome, 'unknown') = 'unknown'
		  and r.part is null and r.state <> 'expected'`, seqs)
	if err != nil {
		return nil, wrap("look for receipts with a key", err)
	}
	proved, err := pgx.CollectRows(r, pgx.RowTo[int64])
	return proved, wrap("look for receipts with a key", err)
}

// Reported returns those references of a channel that have a final receipt.
func (s *Receipts) Reported(
	ctx context.Context, channel string, references []string,
) ([]string, error) {
	r, err := s.reports.Query(ctx, `
		select reference from dispatcher.receipts
		where channel = $1 and reference = any($2) and state in ('delivered', 'undelivered')`,
		channel, references)
	if err != nil {
		return nil, wrap("look for receipts", err)
	}
	reported, err := pgx.CollectRows(r, pgx.RowTo[string])
	return reported, wrap("look for receipts", err)
}

// receive records one batch.
func (t *receiptTx) receive(ctx context.Context, receipts []Receipt) (Received, error) {
	folded := fold(receipts)
	given := newReceiptArrays(folded)
	if err := t.findNamed(ctx, given); err != nil {
		return Received{}, err
	}
	var got Received
	batch := &pgx.Batch{}
	batch.Queue("begin")
	changed, proofs := make(map[rowID]int64, len(folded)), map[rowID]bool{}
	picked := make(map[rowID]bool, len(folded))
	batch.Queue(mergeReceipts, given.arguments()...).QueryRow(func(row pgx.Row) error {
		var columns [6]texts
		var seqs []int64
		var proved []bool
		if err := row.Scan(&columns[0], &columns[1], &columns[2], &columns[3], &columns[4],
			&columns[5], &seqs, &proved); err != nil {
			return err
		}
		mixed := rowIDs{columns[0].list(), columns[1].list()}
		met := rowIDs{columns[2].list(), columns[3].list()}
		now := rowIDs{columns[4].list(), columns[5].list()}
		for i, channel := range mixed.channel {
			got.Discrepancies = append(got.Discrepancies, Discrepancy{
				Kind: ReferenceOfAnother, Channel: channel, Reference: mixed.reference[i],
			})
		}
		for i, channel := range met.channel {
			picked[rowID{channel, met.reference[i]}] = true
		}
		for i, seq := range seqs {
			id := rowID{now.channel[i], now.reference[i]}
			changed[id] = seq
			if proved[i] {
				proofs[id] = true
			}
			if seq != 0 {
				got.Matched++
			} else {
				got.Early++
			}
		}
		got.Contradictory = len(mixed.channel)
		return nil
	})
	if err := t.conn.SendBatch(ctx, batch).Close(); err != nil {
		return Received{}, err
	}
	seqs, unchanged := given.decisive(folded, changed)
	if len(unchanged.channel) > 0 {
		var more []int64
		if err := t.conn.QueryRow(ctx, selectAffected, unchanged.channel, unchanged.reference).
			Scan(&more); err != nil {
			return Received{}, err
		}
		seqs = append(seqs, more...)
	}
	if err := t.lockMessages(ctx, seqs); err != nil {
		return Received{}, err
	}
	done, err := t.finish(ctx, picked, proofs, false)
	if err != nil {
		return Received{}, err
	}
	got.Freed = done.freed
	got.Repeated = max(len(receipts)-got.Matched-got.Early-got.Contradictory, 0)
	contradictory, otherID := done.counts()
	got.Matched -= contradictory + otherID
	got.Contradictory, got.OtherID = got.Contradictory+contradictory, otherID
	got.Discrepancies = append(got.Discrepancies, done.discrepancies...)
	return got, nil
}

// fold merges the receipts of a batch that name the same part in the same way: the best one is
// kept, and the first of equal ones. It leaves out receipts that no settlement can ever name.
// Receipts that name a part by different keys stay apart, because mergeReceipts decides which of
// them are right.
func fold(receipts []Receipt) []Receipt {
	type name struct {
		rowID
		seq     int64
		attempt int
	}
	at := make(map[name]int, len(receipts))
	out := make([]Receipt, 0, len(receipts))
	for i := range receipts {
		r := receipts[i]
		r.Reference, r.Code = storable(r.Reference), storable(r.Code)
		if len(r.Reference) > maxReference || strings.Contains(r.Reference, " ") {
			continue // no settlement can name it
		}
		key := name{rowID: rowID{r.Channel, r.Reference}, seq: r.Seq}
		if r.Reference == "" {
			key.attempt = r.Attempt
		}
		known, ok := at[key]
		if !ok {
			at[key] = len(out)
			out = append(out, r)
			continue
		}
		if was := out[known]; better(r.State.String(), was.State.String()) {
			r.Attempt = was.Attempt
			out[known] = r
		}
	}
	return out
}

// receiptArrays are receipts column by column. known is the message that a receipt names by our
// key, 0 for none. first and attempt are the attempt named by the first receipt of the batch that
// is about the same part and has a key, see share.
type receiptArrays struct {
	channel, reference, state, cause, code []string
	seq, known, first, ago                 []int64
	attempt                                []int16
}

func newReceiptArrays(receipts []Receipt) *receiptArrays {
	n := len(receipts)
	a := &receiptArrays{
		channel: make([]string, n), reference: make([]string, n), state: make([]string, n),
		cause: make([]string, n), code: make([]string, n),
		seq: make([]int64, n), known: make([]int64, n), first: make([]int64, n),
		ago: make([]int64, n), attempt: make([]int16, n),
	}
	for i := range receipts {
		r := &receipts[i]
		a.channel[i], a.reference[i], a.state[i], a.code[i] = r.Channel, r.Reference,
			r.State.String(), r.Code
		a.seq[i], a.attempt[i] = r.Seq, int16(r.Attempt)
		if r.State == provider.Undelivered {
			a.cause[i] = string(r.Cause)
		}
		if !r.At.IsZero() {
			a.ago[i] = max(time.Since(r.At), 0).Microseconds()
		}
	}
	return a
}

// findNamed finds the attempts that receipts name by our key.
func (t *receiptTx) findNamed(ctx context.Context, a *receiptArrays) error {
	var at []int
	var seq []int64
	var attempt []int16
	var channel []string
	for i := range a.seq {
		if a.seq[i] != 0 {
			at, seq = append(at, i), append(seq, a.seq[i])
			attempt, channel = append(attempt, a.attempt[i]), append(channel, a.channel[i])
		}
		a.attempt[i] = 0
	}
	if at == nil {
		return nil
	}
	rows, err := t.conn.Query(ctx, namedAttempts, seq, attempt, channel)
	if err != nil {
		return err
	}
	var nr int64
	var reference string
	_, err = pgx.ForEachRow(rows, []any{&nr, &reference}, func() error {
		i := at[nr-1]
		a.known[i], a.attempt[i] = seq[nr-1], attempt[nr-1]
		if a.reference[i] == "" {
			a.reference[i] = reference
		}
		return nil
	})
	a.share()
	return err
}

// share sets, for all receipts about a part, the attempt that the first of them names by our key.
func (a *receiptArrays) share() {
	first := map[rowID]int{}
	for i, seq := range a.known {
		id := rowID{a.channel[i], a.reference[i]}
		if _, ok := first[id]; !ok && seq != 0 {
			first[id] = i
		}
	}
	for i := range a.known {
		if at, ok := first[rowID{a.channel[i], a.reference[i]}]; ok {
			a.first[i], a.attempt[i] = a.known[at], a.attempt[at]
		}
	}
}

// arguments are the parameters of mergeReceipts.
func (a *receiptArrays) arguments() []any {
	return []any{
		a.channel, a.reference, a.seq, a.first, a.attempt, a.state, a.cause, a.code, a.ago,
	}
}

// decisive returns the messages of receipts that can change more than their own row: those that the
// receipts name by key, and those of the rows that changed, which are given. unchanged are the rows
// of the other receipts.
func (a *receiptArrays) decisive(
	receipts []Receipt, changed map[rowID]int64,
) (seqs []int64, unchanged rowIDs) {
	for i := range receipts {
		if !receipts[i].State.Final() && receipts[i].Seq == 0 || a.reference[i] == "" {
			continue
		}
		seq, ok := changed[rowID{a.channel[i], a.reference[i]}]
		if !ok {
			unchanged.channel = append(unchanged.channel, a.channel[i])
			unchanged.reference = append(unchanged.reference, a.reference[i])
		}
		for _, one := range []int64{seq, a.known[i]} {
			if one != 0 {
				seqs = append(seqs, one)
			}
		}
	}
	return seqs, unchanged
}

// rowIDs are keys of rows of receipts, column by column.
type rowIDs struct{ channel, reference []string }
