package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// receiptTx books receipts, or looks at rows that are due, in one transaction.
type receiptTx struct {
	conn *pgxpool.Conn
	tell Tell

	standings []receiptStatus // ascending by seq
}

// rowID is the key of a row of receipts.
type rowID struct{ channel, reference string }

// wholeRow is the row of a receipt that names an attempt and no reference, while the attempt has
// none.
func wholeRow(channel string, seq int64, attempt int) rowID {
	return rowID{channel, fmt.Sprintf(" %d.%d", seq, attempt)}
}

// inTx runs work in a transaction, which work has to begin and to commit.
func (s *Receipts) inTx(ctx context.Context, tell Tell, work func(*receiptTx) error) error {
	conn, err := s.hot.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	err = work(&receiptTx{conn: conn, tell: tell})
	if err != nil {
		rollback(ctx, conn)
	}
	return err
}

// look locks what is affected and reads it, see lockAttemptRows. What was queued before is done
// first, in the same round trip.
func (t *receiptTx) look(ctx context.Context, batch *pgx.Batch, affected string, args ...any) error {
	batch.Queue(fmt.Sprintf(lockAttemptRows, affected, UnsaidAwait/time.Hour), args...).Query(t.readTries)
	batch.Queue(fmt.Sprintf(lockMessageRows, affected), args...).Query(t.readStatuses)
	batch.Queue(fmt.Sprintf(readParts, affected), args...).Query(t.readParts)
	return t.conn.SendBatch(ctx, batch).Close()
}

// readTries begins the standings: attempts come first in the order of locks.
func (t *receiptTx) readTries(rows pgx.Rows) error {
	var seq int64
	var a attemptStatus
	_, err := pgx.ForEachRow(rows, []any{
		&seq, &a.number, &a.channel, &a.outcome, &a.reference, &a.held, &a.freed, &a.receipt, &a.owed, &a.cut, &a.proved,
		&a.segments, &a.denied, &a.contradicted, &a.within, &a.left, &a.heir, &a.resend,
	}, func() error {
		if n := len(t.standings); n == 0 || t.standings[n-1].closing.Seq != seq {
			t.standings = append(t.standings, receiptStatus{closing: Closing{Seq: seq}})
		}
		s := &t.standings[len(t.standings)-1]
		s.tries = append(s.tries, a)
		return nil
	})
	return err
}

// readStatuses walks the messages beside the standings, which are in the same order.
func (t *receiptTx) readStatuses(rows pgx.Rows) error {
	defer rows.Close()
	for next := 0; rows.Next(); {
		var c Closing
		var s receiptStatus
		if err := rows.Scan(&c.Seq, &c.ID, &c.Lane, &c.Tenant, &c.Route, &c.Segments, &c.PossibleDuplicate, &c.Envelope,
			&s.state, &s.attempts, &c.At); err != nil {
			return err
		}
		for next < len(t.standings) && t.standings[next].closing.Seq < c.Seq {
			next++
		}
		if next == len(t.standings) || t.standings[next].closing.Seq != c.Seq {
			continue
		}
		c.At = c.At.UTC()
		t.standings[next].closing, t.standings[next].state, t.standings[next].attempts = c, s.state, s.attempts
	}
	return rows.Err()
}

// readParts walks the parts beside the standings.
func (t *receiptTx) readParts(rows pgx.Rows) error {
	var seq int64
	var number, next int
	var p part
	var received pgtype.Timestamptz
	_, err := pgx.ForEachRow(rows, []any{
		&seq, &number, &p.channel, &p.reference, &p.byKey, &p.state, &p.word.cause, &p.word.code, &received, &p.due, &p.awaited,
	}, func() error {
		for next < len(t.standings) && t.standings[next].closing.Seq < seq {
			next++
		}
		if next == len(t.standings) || t.standings[next].closing.Seq != seq {
			return nil
		}
		p.word.at = moment(received)
		tries := t.standings[next].tries
		for i := range tries {
			if tries[i].number == number {
				tries[i].parts = append(tries[i].parts, p)
			}
		}
		return nil
	})
	return err
}

// finished is what came of a transaction.
type finished struct {
	closed   int
	freed    int64
	oddities []Discrepancy
}

// counts are how many receipts say delivered of what was not taken, and how many name their attempt
// otherwise than its answer did.
func (f *finished) counts() (contradictory, otherID int) {
	for i := range f.oddities {
		switch f.oddities[i].Kind {
		case DeliveredThoughDenied:
			contradictory++
		case UnderAnotherID:
			otherID++
		case ReferenceOfAnother:
		}
	}
	return contradictory, otherID
}

// finish concludes what was read, writes what changes and commits. With all set each of the picked
// rows is written, else only those that somebody has to look at again. They are the rows that the
// transaction has locked: no other may be written once attempts are, for who has one of those
// locked waits for the attempts. news are the rows that have not been counted before.
func (t *receiptTx) finish(ctx context.Context, picked, news map[rowID]bool, all bool) (finished, error) {
	w := t.conclude(picked, news, all)
	batch := &pgx.Batch{}
	w.queue(batch)
	var tag string
	batch.Queue("commit").Exec(func(ct pgconn.CommandTag) error {
		tag = ct.String()
		return nil
	})
	if err := t.conn.SendBatch(ctx, batch).Close(); err != nil {
		return finished{}, err
	}
	if tag != "COMMIT" { // PostgreSQL answers COMMIT with ROLLBACK when the transaction had failed
		return finished{}, fmt.Errorf("commit was answered with %s", tag)
	}
	return finished{closed: len(w.closed.seq), oddities: w.oddities, freed: w.freed()}, nil
}

// conclude gathers what changes.
func (t *receiptTx) conclude(picked, news map[rowID]bool, all bool) *receiptWrites {
	w := &receiptWrites{}
	for i := range t.standings {
		s := &t.standings[i]
		s.conclude()
		if s.flagged {
			w.flagged = append(w.flagged, s.closing.Seq)
		}
		if s.closing.State != "" {
			if s.closing.State != s.state {
				w.close(&s.closing)
			}
			if n := t.notice(&s.closing); n != nil {
				w.notices = append(w.notices, *n)
			}
		}
		for j := range s.tries {
			tr := &s.tries[j]
			if tr.accepted || tr.named || tr.frees || tr.says.state != "" || tr.contradicts() {
				w.try(s.closing.Seq, tr)
			}
			for k := range tr.parts {
				p := &tr.parts[k]
				id := rowID{p.channel, p.reference}
				if news[id] {
					w.odd(tr, p)
				}
				if !picked[id] {
					continue
				}
				switch wait := s.lookAgain(tr, p); {
				case all && tr.isDenied() && p.byKey && p.state != string(Delivered):
					w.drop(p)
				case wait > 0 || all:
					w.look(p, wait)
				}
			}
		}
	}
	return w
}

func (t *receiptTx) notice(c *Closing) *Notice {
	if t.tell == nil {
		return nil
	}
	return t.tell(c)
}
