package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/provider"
)

// Receipts records the receipts of providers, and closes messages whose receipts do not come in
// time.
type Receipts struct{ *db }

// Receipt is what a provider reports about a part of a message after it accepted the message.
type Receipt struct {
	Channel string
	// Reference is the provider's id of the part; it may be empty when Seq is set.
	Reference string
	// Seq and Attempt name the submission when the receipt carries our key, which the caller has
	// checked; both are 0 when it does not.
	Seq     int64
	Attempt int
	State   provider.ReceiptState
	// Cause and Code are stored as they are. Both are bounded and hold no number and no text.
	Cause provider.Cause
	Code  string
	// At is when the receipt arrived, by this machine's clock; the zero time means now.
	At time.Time
}

// Received is the result of Receive.
type Received struct {
	ReceiptCounts
	// Discrepancies are the receipts that disagree with what is stored, for the log.
	Discrepancies []Discrepancy
}

// ReceiptCounts counts receipts by their effect. Each receipt is counted once.
type ReceiptCounts struct {
	Matched int // said something new about a known attempt
	Early   int // are kept because their attempt is not known, or not yet
	// Repeated changed nothing. A pending receipt for an attempt that is not known is one of them.
	Repeated int
	// Contradictory contradict what is stored: they say delivered of an attempt that the provider had
	// denied, or their key names another message than the one their reference belongs to.
	Contradictory int
	// OtherID carry the key of an attempt, but another reference than its answer named.
	OtherID int
	// Freed is how many active slots the receipts gave back.
	Freed int64
}

func (r *Received) add(more Received) {
	r.Matched += more.Matched
	r.Early += more.Early
	r.Repeated += more.Repeated
	r.Contradictory += more.Contradictory
	r.OtherID += more.OtherID
	r.Freed += more.Freed
	r.Discrepancies = append(r.Discrepancies, more.Discrepancies...)
}

// Discrepancy is a receipt that disagrees with what is stored.
type Discrepancy struct {
	Kind    DiscrepancyKind
	Channel string
	// Reference is the id in the receipt, Answered the ids in the provider's answer to the submit.
	// Either may be empty.
	Reference, Answered string
}

// DiscrepancyKind says how a receipt disagrees with what is stored.
type DiscrepancyKind uint8

// Kinds of discrepancies.
const (
	// DeliveredThoughDenied: the receipt says delivered, and the provider had answered that it did not
	// take the attempt.
	DeliveredThoughDenied DiscrepancyKind = iota + 1
	// ReferenceOfAnother: the key and the reference of the receipt name different messages.
	ReferenceOfAnother
	// UnderAnotherID: the key names an attempt whose answer named another reference.
	UnderAnotherID
)

// Swept is the result of Overdue.
type Swept struct {
	Closed int // messages whose state changed
	// Contradictory and OtherID count receipts that came before the settlement of their attempt, see
	// ReceiptCounts.
	Contradictory, OtherID int
	Discrepancies          []Discrepancy
}

// Closing is a message whose state changes because of a receipt, or because none came. State is
// Accepted, Delivered, Undelivered or NoReceipt. It is the state that the message already has when
// the only change is that it may have reached the subscriber twice. Closing holds what a status
// event needs.
type Closing struct {
	Seq               int64
	ID                string
	Lane, Tenant      string
	Route             string // empty when none matched
	Segments          int
	PossibleDuplicate bool
	// Envelope is the record's value as it was received.
	Envelope []byte

	State State
	// Channel and Attempt say which attempt the receipts are about, and Reference holds the provider's
	// ids of it, separated by spaces.
	Channel   string
	Attempt   int
	Reference string
	// Cause and Code come from the receipt that set the state; empty with NoReceipt.
	Cause provider.Cause
	Code  string
	// At is when the state was reached, by the database's clock.
	At time.Time
}

// Tell composes the status event of a message whose state changes, or returns nil for none. It is
// called while rows are locked: it must be quick and must not use the ledger. It is called again
// when the transaction is repeated.
type Tell func(*Closing) *Notice

// Overdue handles up to limit parts of messages that are due:
//
//   - parts without a receipt in time, whose messages become NoReceipt;
//   - parts whose receipt came before the settlement of their attempt, due at once;
//   - parts that a receipt with our key made while their attempt had no answer.
//
// A row of awaited that is due counts as a part, even when all its receipts have come. Rows of
// awaited and due parts that another transaction has locked are skipped, so any number of instances
// may call Overdue. It waits only for locked parts of messages that a row of awaited lists, see
// fallDue.
func (s *Receipts) Overdue(ctx context.Context, limit int, tell Tell) (swept Swept, err error) {
	for more := true; more && limit > 0; {
		var done finished
		err := s.inTx(ctx, tell, func(t *receiptTx) (err error) {
			size := min(limit, receiveBatch)
			took, looked, finished, err := t.overdue(ctx, size)
			more, done, limit = took == awaitedBatch || looked == size, finished,
				limit-max(took, looked)
			return err
		})
		if err != nil {
			return swept, wrap("close what is overdue", err)
		}
		contradictory, otherID := done.counts()
		swept.Closed, swept.Contradictory, swept.OtherID = swept.Closed+done.closed,
			swept.Contradictory+contradictory, swept.OtherID+otherID
		swept.Discrepancies = append(swept.Discrepancies, done.discrepancies...)
	}
	return swept, nil
}

// awaitedBatch is how many rows of awaited one transaction takes. Each row names the messages of
// one settlement, so the transaction reads a few thousand rows of receipts, nearly all of which
// have their receipt.
const awaitedBatch = 10

// overdue handles one batch. took is how many rows of awaited it took, looked how many parts it
// handled.
func (t *receiptTx) overdue(
	ctx context.Context, limit int,
) (took, looked int, done finished, err error) {
	picked := map[rowID]bool{}
	var seqs []int64
	batch := &pgx.Batch{}
	batch.Queue("begin")
	batch.Queue(fallDue, awaitedBatch).QueryRow(func(row pgx.Row) error { return row.Scan(&took) })
	batch.Queue(pickDue, limit).Query(func(rows pgx.Rows) error {
		var id rowID
		var seq int64
		_, err := pgx.ForEachRow(rows, []any{&id.channel, &id.reference, &seq}, func() error {
			picked[id] = true
			seqs = append(seqs, seq)
			return nil
		})
		return err
	})
	if err := t.conn.SendBatch(ctx, batch).Close(); err != nil {
		return 0, 0, finished{}, err
	}
	if err := t.lockMessages(ctx, slices.Clone(seqs)); err != nil {
		return 0, 0, finished{}, err
	}
	done, err = t.finish(ctx, picked, picked, true)
	return took, len(seqs), done, err
}

// Drop deletes receipts that have had no known message for longer than older, and for a day at
// least: forged ones, those of messages that another system sent, and those of attempts that were
// settled without expecting any. It works in batches of a few milliseconds. It returns how many it
// deleted, also with an error.
func (s *Receipts) Drop(ctx context.Context, older time.Duration) (dropped int64, err error) {
	for n := int64(1); n > 0; dropped += n {
		if err := s.reports.QueryRow(ctx, `select dispatcher.drop_early_receipts($1)`, older).
			Scan(&n); err != nil {
			return dropped, wrap("drop receipts", err)
		}
	}
	return dropped, nil
}
