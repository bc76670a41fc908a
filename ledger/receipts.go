package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/provider"
)

// Receipts books what providers say later, and what they do not say in time.
type Receipts struct{ *db }

// Receipt is a provider's later word on a part of a message.
type Receipt struct {
	Channel string
	// Reference is the provider's id of the part; it may be empty when Seq is set.
	Reference string
	// Seq and Attempt name the submission when the receipt carries our own key; both are 0 when it
	// does not. The caller has checked them.
	Seq     int64
	Attempt int
	State   provider.ReceiptState
	// Cause and Code are stored as they are; both are bounded and show no number and no text.
	Cause provider.Cause
	Code  string
	// At is when it arrived, on this machine's clock; the zero time is now.
	At time.Time
}

// Received is what became of receipts.
type Received struct {
	ReceiptCounts
	// Oddities are those that the books and the receipts disagree about: for the log.
	Oddities []Discrepancy
}

// ReceiptCounts counts receipts by what became of them. Each counts once.
type ReceiptCounts struct {
	Matched int // those that said something new about a known attempt
	Early   int // those that are kept because nobody knows their attempt, or not yet
	// those that changed nothing; also what is pending for an attempt that nobody knows
	Repeated int
	// Contradictory are those that cannot be true together with what is booked: an attempt was
	// delivered that its provider had answered it did not take, or a reference belongs to another
	// message than the first one that it was known to belong to.
	Contradictory int
	// OtherID are those that are about an attempt by its key, and name it by another reference than
	// its answer did.
	OtherID int
	// Freed is how many active slots they gave back.
	Freed int64
}

// add sums up.
func (r *Received) add(more Received) {
	r.Matched += more.Matched
	r.Early += more.Early
	r.Repeated += more.Repeated
	r.Contradictory += more.Contradictory
	r.OtherID += more.OtherID
	r.Freed += more.Freed
	r.Oddities = append(r.Oddities, more.Oddities...)
}

// Discrepancy is a receipt that says something else than the books do.
type Discrepancy struct {
	Kind    DiscrepancyKind
	Channel string
	// Reference is what the receipt names, and Answered what the provider's answer named; either
	// may be empty.
	Reference, Answered string
}

// DiscrepancyKind says what is odd about a receipt.
type DiscrepancyKind uint8

// What may be odd about a receipt.
const (
	// DeliveredThoughDenied: it says delivered, and the provider had answered that it did not take
	// the attempt.
	DeliveredThoughDenied DiscrepancyKind = iota + 1
	// ReferenceOfAnother: by its key it is about another message than by its reference.
	ReferenceOfAnother
	// UnderAnotherID: its key names an attempt whose answer named another reference.
	UnderAnotherID
)

// Swept is what came of looking at what was due.
type Swept struct {
	Closed int // messages that came to another state
	// Contradictory and OtherID are how many receipts turned out to be so when their attempt was
	// settled, see ReceiptCounts.
	Contradictory, OtherID int
	Oddities               []Discrepancy
}

// Closing is a message that a receipt, or the want of one, brings to a state: Accepted, Delivered,
// Undelivered or NoReceipt. It has what a status event needs. When a receipt shows that the message
// may have reached the subscriber twice, and that is all it changes, State is the state that the
// message has.
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
	// Channel and Attempt are those that the receipts are about, and Reference the provider's ids
	// of that attempt.
	Channel   string
	Attempt   int
	Reference string
	// Cause and Code are those of the receipt that decided; empty with NoReceipt.
	Cause provider.Cause
	Code  string
	// At is when the state was reached, by the database's clock.
	At time.Time
}

// Tell composes the status event of a message that a receipt brings to a state, or returns nil for
// none. It is called while rows are locked: it must be quick and must not use the ledger. When
// the transaction has to be made again, it is called again.
type Tell func(*Closing) *Notice

// Overdue looks at up to limit parts of messages that somebody has to look at: those that no
// receipt came for in time, whose messages become NoReceipt; those whose receipt came before their
// settlement, which have been due since then; and those whose attempt had not been answered when a
// receipt with our key came. It returns what came of them. A settlement whose receipts fall due
// counts as a part, also when all of them have come. What somebody else has locked to look at is
// passed over, so that any number of instances may call it.
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
		swept.Oddities = append(swept.Oddities, done.oddities...)
	}
	return swept, nil
}

// awaitedBatch is how many rows of awaited one transaction takes. Each names the messages of one
// settlement, so it reads some thousand rows at most, nearly all of which have their receipt.
const awaitedBatch = 10

// overdue looks at one batch. It returns how many rows of awaited it took, and how many parts it
// looked at.
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
	if err := t.look(ctx, slices.Clone(seqs)); err != nil {
		return 0, 0, finished{}, err
	}
	done, err = t.finish(ctx, picked, picked, true)
	return took, len(seqs), done, err
}

// dropReceiptsBatch is how many receipts one transaction drops.
const dropReceiptsBatch = 5000

// Drop drops receipts whose message has not become known for so long: forged ones, those of
// messages that somebody else sent, and those of attempts that were settled without expecting any.
// It works in batches of a few milliseconds and returns how many it dropped, also with an error.
func (s *Receipts) Drop(ctx context.Context, older time.Duration) (dropped int64, err error) {
	for n := int64(dropReceiptsBatch); n == dropReceiptsBatch; dropped += n {
		if err := s.reports.QueryRow(ctx, dropEarly, older, dropReceiptsBatch).
			Scan(&n); err != nil {
			return dropped, wrap("drop receipts", err)
		}
	}
	return dropped, nil
}
