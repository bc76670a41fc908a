package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"dispatcher/provider"
)

// receiptTx records receipts, or handles due rows, in one transaction.
type receiptTx struct {
	conn *pgxpool.Conn
	tell Tell

	statuses []receiptStatus // ascending by seq
}

// rowID is the key of a row of receipts.
type rowID struct{ channel, reference string }

// wholeRow is the row of a receipt that names an attempt and no reference, when the attempt has no
// reference or several.
func wholeRow(channel string, seq int64, attempt int) rowID {
	return rowID{channel, fmt.Sprintf(" %d.%d", seq, attempt)}
}

// inTx calls work with a connection. work begins and commits the transaction itself.
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

// lockMessages locks messages and reads them into t.statuses, see lockAttemptRows.
func (t *receiptTx) lockMessages(ctx context.Context, seqs []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	slices.Sort(seqs)
	seqs = slices.Compact(seqs)
	t.statuses = slices.Grow(t.statuses, len(seqs))
	batch := &pgx.Batch{}
	eachOf(seqs, func(day Day, some []int64) {
		batch.Queue(lockAttemptRows.on(day), some, UnsaidAwait).Query(t.readTries)
	})
	t.queueReads(batch, readMessageRows, seqs)
	if err := t.conn.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	if others := t.setPlain(); len(others) > 0 {
		batch = &pgx.Batch{}
		t.queueReads(batch, lockMessageRows, others)
		if err := t.conn.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
	}
	return t.leaveOutMoved(ctx)
}

// leaveOutMoved leaves out the messages whose receipts have moved to past_receipts: one that comes
// later changes nothing. It looks after the receipts were read. So those of a message that is not
// left out were all there.
func (t *receiptTx) leaveOutMoved(ctx context.Context) error {
	var old, moved []int64
	for i := range t.statuses {
		if c := &t.statuses[i].closing; DayAt(c.At)-DayOf(c.Seq) >= receiptsStay {
			old = append(old, c.Seq)
		}
	}
	if old == nil {
		return nil
	}
	if err := t.conn.QueryRow(ctx, selectMoved, old).Scan(&moved); err != nil {
		return err
	}
	t.statuses = slices.DeleteFunc(t.statuses, func(s receiptStatus) bool {
		return slices.Contains(moved, s.closing.Seq)
	})
	return nil
}

// queueReads reads messages, by readMessageRows or lockMessageRows, and their parts.
func (t *receiptTx) queueReads(batch *pgx.Batch, messages *dayStatement, seqs []int64) {
	eachOf(seqs, func(day Day, some []int64) {
		batch.Queue(messages.on(day), some).Query(t.readStatuses)
	})
	batch.Queue(readParts, seqs).Query(t.readParts)
}

// eachOf calls do with the messages of each day. seqs must ascend.
func eachOf(seqs []int64, do func(day Day, some []int64)) {
	eachDay(len(seqs), func(i int) int64 { return seqs[i] },
		func(day Day, from, to int) { do(day, seqs[from:to]) })
}

// setPlain sets plain and the state of plain messages, and returns the others, which have to be
// locked. Their parts are removed, because they are read again.
func (t *receiptTx) setPlain() (others []int64) {
	for i := range t.statuses {
		s := &t.statuses[i]
		first := &s.tries[0]
		s.plain = s.state == Sending && s.attempts == 1 && first.number == 1 &&
			first.outcome == provider.Accepted.String()
		switch {
		case !s.plain:
			others = append(others, s.closing.Seq)
			for j := range s.tries {
				s.tries[j].parts = nil
			}
		case first.receipt == Delivered:
			s.state = Delivered
		default:
			s.state = Accepted
		}
	}
	return others
}

// readTries reads the attempts and creates the statuses. It runs first, because attempts come
// before messages in the lock order.
func (t *receiptTx) readTries(rows pgx.Rows) error {
	var seq int64
	var a attemptStatus
	_, err := pgx.ForEachRow(rows, []any{
		&seq, &a.number, repeats(&a.channel), repeats(&a.outcome), &a.reference, &a.held, &a.freed,
		repeats(&a.receipt),
		&a.expected, &a.cut, &a.proved,
		&a.segments, &a.denied, &a.contradicted, &a.within, &a.left, &a.laterUnderKey, &a.resend,
		&a.further,
	}, func() error {
		if n := len(t.statuses); n == 0 || t.statuses[n-1].closing.Seq != seq {
			t.statuses = append(t.statuses, receiptStatus{closing: Closing{Seq: seq}})
		}
		s := &t.statuses[len(t.statuses)-1]
		s.tries = append(s.tries, a)
		return nil
	})
	return err
}

// readStatuses reads the messages into the statuses. Both are in the same order.
func (t *receiptTx) readStatuses(rows pgx.Rows) error {
	next := 0
	var s receiptStatus
	c := &s.closing
	_, err := pgx.ForEachRow(rows, []any{
		&c.Seq, &c.ID, repeats(&c.Lane), repeats(&c.Tenant), repeats(&c.Route), &c.Segments,
		&c.PossibleDuplicate,
		&c.Envelope, &s.attempts, &s.furtherPending, &c.At, repeats(&s.state),
	}, func() error {
		for next < len(t.statuses) && t.statuses[next].closing.Seq < c.Seq {
			next++
		}
		if next == len(t.statuses) || t.statuses[next].closing.Seq != c.Seq {
			return nil
		}
		c.At = c.At.UTC()
		found := s
		found.tries = t.statuses[next].tries
		t.statuses[next] = found
		return nil
	})
	return err
}

// readParts reads the parts into the attempts of the statuses. Both are in the same order.
func (t *receiptTx) readParts(rows pgx.Rows) error {
	var seq int64
	var number, next int
	var p part
	var received pgtype.Timestamptz
	_, err := pgx.ForEachRow(rows, []any{
		&seq, &number, repeats(&p.channel), &p.reference, &p.byKey, repeats(&p.state),
		repeats(&p.word.cause), repeats(&p.word.code), &received, &p.due, &p.awaited,
	}, func() error {
		for next < len(t.statuses) && t.statuses[next].closing.Seq < seq {
			next++
		}
		if next == len(t.statuses) || t.statuses[next].closing.Seq != seq {
			return nil
		}
		p.word.at = moment(received)
		tries := t.statuses[next].tries
		for i := range tries {
			if tries[i].number == number {
				tries[i].parts = append(tries[i].parts, p)
			}
		}
		return nil
	})
	return err
}

// finished is the result of a transaction.
type finished struct {
	closed        int
	freed         int64
	discrepancies []Discrepancy
}

// counts returns how many receipts say delivered of an attempt that was denied, and how many carry
// the key of an attempt but another reference than its answer named.
func (f *finished) counts() (contradictory, otherID int) {
	for i := range f.discrepancies {
		switch f.discrepancies[i].Kind {
		case DeliveredThoughDenied:
			contradictory++
		case UnderAnotherID:
			otherID++
		case ReferenceOfAnother:
		}
	}
	return contradictory, otherID
}

// finish concludes what was read, writes what changes and commits. picked are the rows of receipts
// that the transaction has locked. With all set it writes when each of them is due next, otherwise
// only for those that are due again. It writes no other row of receipts once attempts are locked: a
// transaction that has such a row locked may be waiting for the attempts. news are the rows whose
// discrepancies are not counted yet.
func (t *receiptTx) finish(
	ctx context.Context, picked, news map[rowID]bool, all bool,
) (finished, error) {
	batch := &pgx.Batch{}
	w := t.changes(picked, news, all)
	w.queue(batch)
	var commit commitTag
	commit.queueEarly(batch)
	if err := t.conn.SendBatch(ctx, batch).Close(); err != nil {
		return finished{}, err
	}
	if err := commit.err(); err != nil {
		return finished{}, err
	}
	return finished{closed: w.moved, discrepancies: w.discrepancies, freed: w.freed()}, nil
}

// changes concludes each message and collects what has to be written.
func (t *receiptTx) changes(picked, news map[rowID]bool, all bool) *receiptWrites {
	w := &receiptWrites{}
	for i := range t.statuses {
		s := &t.statuses[i]
		s.conclude()
		if s.flagged {
			w.flagged = append(w.flagged, s.closing.Seq)
		}
		if s.closing.State != "" {
			if s.closing.State != s.state {
				w.moved++
				if !s.toldByAttempt() {
					w.close(&s.closing)
				}
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
					w.discrepancy(tr, p)
				}
				if !picked[id] {
					continue
				}
				switch wait := s.dueAgain(tr, p); {
				case all && tr.isDenied() && p.byKey && p.state != string(Delivered):
					w.drop(s.closing.Seq, p)
				case wait > 0 || all:
					w.schedule(p, wait)
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

// receiptWrites are the changes to write, column by column.
type receiptWrites struct {
	tries struct {
		answers                       bool // some answer changes, or is contradicted
		seq                           []int64
		number                        []int16
		accepted, frees               []bool
		reference, state, cause, code []string
		at, contradicted              []pgtype.Timestamptz
	}
	closed struct {
		seq           []int64
		state, reason []string
		duplicate     []bool
	}
	due struct {
		channel, reference []string
		wait               []*int64 // microseconds; nil for never
	}
	dropped struct {
		seq                []int64
		channel, reference []string
	}
	moved   int              // messages whose state changes
	flagged []int64          // messages that may have reached their subscribers twice
	slots   map[string]int64 // freed, by channel
	notices []Notice

	discrepancies []Discrepancy // for the log
}

// try adds the changes of an attempt.
func (w *receiptWrites) try(seq int64, s *attemptStatus) {
	c := &w.tries
	c.seq, c.number = append(c.seq, seq), append(c.number, int16(s.number))
	c.accepted, c.frees = append(c.accepted, s.accepted), append(c.frees, s.frees)
	c.reference, c.state = append(c.reference, s.reference), append(c.state, string(s.says.state))
	c.cause, c.code = append(c.cause, string(s.says.cause)), append(c.code, s.says.code)
	c.at, c.contradicted = append(c.at, instant(s.says.at)),
		append(c.contradicted, instant(s.contradictedAt()))
	c.answers = c.answers || s.accepted || s.named || s.contradicts()
	if s.frees {
		if w.slots == nil {
			w.slots = map[string]int64{}
		}
		w.slots[s.channel]++
	}
}

// discrepancy adds the discrepancy of a part, if it has one.
func (w *receiptWrites) discrepancy(s *attemptStatus, p *part) {
	kind := DeliveredThoughDenied
	switch {
	case s.otherID(p):
		kind = UnderAnotherID
	case !s.contradictedBy(p):
		return
	}
	d := Discrepancy{Kind: kind, Channel: p.channel, Reference: p.reference, Answered: s.reference}
	if p.whole() {
		d.Reference = ""
	}
	w.discrepancies = append(w.discrepancies, d)
}

// close adds the new state of a message. Its reason is the cause of undelivered.
func (w *receiptWrites) close(c *Closing) {
	w.closed.seq, w.closed.state = append(w.closed.seq, c.Seq),
		append(w.closed.state, string(c.State))
	w.closed.reason, w.closed.duplicate = append(w.closed.reason, string(c.Cause)),
		append(w.closed.duplicate, c.PossibleDuplicate)
}

// schedule adds when a part is due next; 0 is never.
func (w *receiptWrites) schedule(p *part, wait time.Duration) {
	w.due.channel, w.due.reference = append(w.due.channel, p.channel),
		append(w.due.reference, p.reference)
	var micros *int64
	if wait > 0 {
		n := wait.Microseconds()
		micros = &n
	}
	w.due.wait = append(w.due.wait, micros)
}

// drop deletes the row of an id that was denied, when its time is over and no receipt says
// delivered.
func (w *receiptWrites) drop(seq int64, p *part) {
	w.dropped.seq = append(w.dropped.seq, seq)
	w.dropped.channel, w.dropped.reference = append(w.dropped.channel, p.channel),
		append(w.dropped.reference, p.reference)
}

// freed is how many slots are given back.
func (w *receiptWrites) freed() (n int64) {
	for _, count := range w.slots {
		n += count
	}
	return n
}

// queue adds the statements, in the lock order.
func (w *receiptWrites) queue(batch *pgx.Batch) {
	if c := &w.due; len(c.channel) > 0 {
		batch.Queue(updateDue, c.channel, c.reference, c.wait)
	}
	if c := &w.dropped; len(c.channel) > 0 {
		batch.Queue(dropRows, c.seq, c.channel, c.reference)
	}
	c, m := &w.tries, &w.closed
	eachDay(len(c.seq), func(i int) int64 { return c.seq[i] }, func(day Day, i, j int) {
		if !c.answers {
			batch.Queue(updateReceived.on(day), c.seq[i:j], brief(c.number[i:j]), c.state[i:j],
				brief(c.cause[i:j]), brief(c.code[i:j]), c.at[i:j], brief(c.frees[i:j]))
			return
		}
		batch.Queue(updateAttemptRows.on(day), c.seq[i:j], c.number[i:j], c.accepted[i:j],
			c.reference[i:j], c.state[i:j], c.cause[i:j], c.code[i:j], c.at[i:j], c.frees[i:j],
			c.contradicted[i:j])
	})
	eachDay(len(m.seq), func(i int) int64 { return m.seq[i] }, func(day Day, i, j int) {
		batch.Queue(updateStatuses.on(day), m.seq[i:j], m.state[i:j], m.reason[i:j],
			m.duplicate[i:j])
	})
	eachDay(len(w.flagged), func(i int) int64 { return w.flagged[i] }, func(day Day, i, j int) {
		batch.Queue(flagMessages.on(day), w.flagged[i:j])
	})
	if len(w.slots) > 0 {
		channels := slices.Sorted(maps.Keys(w.slots))
		counts := make([]int64, len(channels))
		for i, name := range channels {
			counts[i] = w.slots[name]
		}
		batch.Queue(freeSlots, channels, counts)
	}
	for _, box := range pack(w.notices) {
		batch.Queue(insertOutbox, box.kind, box.keys, box.values, box.headers)
	}
}
