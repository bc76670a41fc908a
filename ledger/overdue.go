package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Overdue looks at up to limit parts of messages that somebody has to look at: those that no
// receipt came for in time, whose messages become NoReceipt; those whose receipt came before their
// settlement, which have been due since then; and those whose attempt had not been answered when a
// receipt with our key came. It returns what came of them. Rows that somebody else has locked are
// passed over, so that any number of instances may call it.
func (s *Receipts) Overdue(ctx context.Context, limit int, tell Tell) (swept Swept, err error) {
	for limit > 0 {
		var looked int
		var done finished
		err := s.inTx(ctx, tell, func(t *receiptTx) (err error) {
			looked, done, err = t.overdue(ctx, min(limit, receiveBatch))
			return err
		})
		if err != nil {
			return swept, wrap("close what is overdue", err)
		}
		contradictory, otherID := done.counts()
		swept.Closed, swept.Contradictory, swept.OtherID = swept.Closed+done.closed, swept.Contradictory+contradictory, swept.OtherID+otherID
		swept.Oddities = append(swept.Oddities, done.oddities...)
		limit -= looked
		if looked < receiveBatch {
			break
		}
	}
	return swept, nil
}

// overdue looks at one batch.
func (t *receiptTx) overdue(ctx context.Context, limit int) (looked int, done finished, err error) {
	picked := map[rowID]bool{}
	var seqs []int64
	batch := &pgx.Batch{}
	batch.Queue("begin")
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
		return 0, finished{}, err
	}
	if len(seqs) > 0 {
		if err := t.look(ctx, &pgx.Batch{}, affectedBySeq, seqs); err != nil {
			return 0, finished{}, err
		}
	}
	done, err = t.finish(ctx, picked, picked, true)
	return len(seqs), done, err
}

// dropReceiptsBatch is how many receipts one transaction drops.
const dropReceiptsBatch = 5000

// Drop drops receipts whose message has not become known for so long: forged ones, those of
// messages that somebody else sent, and those of attempts that were settled without expecting any.
// It works in batches of a few milliseconds and returns how many it dropped, also with an error.
func (s *Receipts) Drop(ctx context.Context, older time.Duration) (dropped int64, err error) {
	for n := int64(dropReceiptsBatch); n == dropReceiptsBatch; dropped += n {
		if err := s.reports.QueryRow(ctx, dropEarly, older, dropReceiptsBatch).Scan(&n); err != nil {
			return dropped, wrap("drop receipts", err)
		}
	}
	return dropped, nil
}
