package ledger

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// New rows are stored by COPY: PostgreSQL writes all rows of a page in one WAL record, where an
// insert writes one for each row, and reads binary values without arrays to unnest. The statements
// that change existing rows are in claim_sql.go.
var (
	copyMessages = ofDay(`
	copy dispatcher.messages (seq, id, lane, tenant, topic, kafka_partition, kafka_offset,
	  number_hmac, envelope_hmac, calling_code, sender, state, reason, detail, next_at,
	  expires_at, attempts, finished_at, rounds,
	  seen, waiting_since, waits_for, waits, route, routing_version, draw, draw_size, draw_key_id,
	  first_choice, segments, alphabet, send_at)
	from stdin binary`)

	copyPayloads = ofDay(`
	copy dispatcher.payloads (seq, digest, recipient, envelope, salt) from stdin binary`)

	copyAttempts = ofDay(`
	copy dispatcher.attempts (message_seq, attempt, channel, reason, segments, price_micros,
	  currency, ranking, claimed_at, instance, ticket_at, leaves_at)
	from stdin binary`)
)

// copyNew stores new messages, their payloads, and attempts that are not kept in open_claims.
func (t *Tx) copyNew(ctx context.Context, fresh, attempts []int) (err error) {
	store := func(
		table string, statement *dayStatement, which []int, write func(rows *copied, at int),
	) {
		t.eachDay(which, func(day Day, some []int) {
			if err != nil {
				return
			}
			rows := copies.Get().(*copied)
			rows.buf = append(rows.buf[:0], copyHeader...)
			for _, at := range some {
				write(rows, at)
			}
			err = t.send(ctx, table, statement.on(day), rows)
			if err == nil && cap(rows.buf) <= mostKept { // after an error pgx may still read it
				copies.Put(rows)
			}
		})
	}
	store("messages", copyMessages, fresh, t.copyMessage)
	store("payloads", copyPayloads, fresh, t.copyPayload)
	store("attempts", copyAttempts, attempts, t.copyAttempt)
	return err
}

// send runs one COPY. It calls the tracer itself, because pgx does not trace CopyFrom of PgConn.
func (t *Tx) send(ctx context.Context, table, statement string, rows *copied) error {
	conn := t.conn.Conn()
	tracer, traced := t.claims.config.Tracer.(pgx.CopyFromTracer)
	if traced {
		ctx = tracer.TraceCopyFromStart(ctx, conn, pgx.TraceCopyFromStartData{
			TableName: pgx.Identifier{"dispatcher", table},
		})
	}
	tag, err := conn.PgConn().CopyFrom(ctx, rows.reader(), statement)
	if traced {
		tracer.TraceCopyFromEnd(ctx, conn, pgx.TraceCopyFromEndData{CommandTag: tag, Err: err})
	}
	return err
}

// copyMessage adds a new message with its decision.
func (t *Tx) copyMessage(rows *copied, at int) {
	m, d := &t.seen.Messages[at], &t.decisions.Each[at]
	state, reason, next, plan, number := m.State, m.Reason, m.NextAt, &m.Plan, 0
	if d.State != "" {
		state, reason, next = d.State, d.Reason, d.NextAt
		if d.Plan.Version > 0 {
			plan = &d.Plan
		}
	}
	if state == Sending {
		number = d.Attempt.Number
	}
	var finished, waiting, scheduled time.Time
	rounds := 0
	switch state { //nolint:exhaustive // The others set no time.
	case Dead, Failed, Rejected:
		finished = t.seen.Now
	case Waiting:
		waiting = t.seen.Now
	case Scheduled:
		scheduled = next
	}
	if d.NewRound {
		rounds = 1
	}
	rows.row(32)
	rows.bigint(m.Seq)
	rows.text(m.ID)
	rows.text(m.Lane)
	rows.text(m.Tenant)
	rows.text(m.Origin.Topic)
	rows.integer(m.Origin.Partition)
	rows.bigint(m.Origin.Offset)
	rows.bigintOrNull(m.NumberHMAC)
	rows.bigintOrNull(m.EnvelopeHMAC)
	rows.smallintOrNull(int(m.CallingCode))
	rows.textOrNull(m.Sender)
	rows.text(string(state))
	rows.textOrNull(reason)
	rows.textOrNull(storable(m.Detail))
	rows.time(next)
	rows.time(m.ExpiresAt)
	rows.smallint(number)
	rows.time(finished)
	rows.smallint(rounds)
	rows.jsonb(string(d.Seen))
	rows.time(waiting)
	rows.textOrNull(d.WaitsFor)
	rows.jsonb(encodeWaits(d.Waits))
	rows.textOrNull(plan.Route)
	rows.bigintOrNull(plan.Version)
	if plan.Size > 0 {
		rows.bigint(plan.Draw)
	} else {
		rows.null()
	}
	rows.bigintOrNull(plan.Size)
	rows.textOrNull(plan.KeyID)
	rows.textOrNull(plan.FirstChoice)
	rows.smallintOrNull(plan.Segments)
	rows.textOrNull(plan.Alphabet)
	rows.time(scheduled)
}

func (t *Tx) copyPayload(rows *copied, at int) {
	m := &t.seen.Messages[at]
	rows.row(5)
	rows.bigint(m.Seq)
	rows.bigint(m.Digest)
	rows.bigintOrNull(m.Recipient)
	rows.bytea(m.Envelope)
	if m.Salt == ([SaltSize]byte{}) {
		rows.null()
	} else {
		rows.bytea(m.Salt[:])
	}
}

func (t *Tx) copyAttempt(rows *copied, at int) {
	a := &t.decisions.Each[at].Attempt
	var ticket time.Time
	if a.Ticket != nil {
		ticket = a.Ticket.AcceptedAt
	}
	rows.row(12)
	rows.bigint(t.seen.Messages[at].Seq)
	rows.smallint(a.Number)
	rows.text(a.Channel)
	rows.text(string(a.Reason))
	rows.smallint(a.Segments)
	rows.bigint(a.PriceMicros)
	rows.text(a.Currency)
	rows.jsonb(string(a.Ranking))
	rows.time(t.seen.Now)
	rows.bigint(t.instance)
	rows.time(ticket)
	rows.time(a.LeavesAt)
}

// copied are rows in the binary format of COPY (PostgreSQL manual, COPY, "Binary Format").
type copied struct{ buf []byte }

// copyHeader is the signature, no flags, and no extension.
const copyHeader = "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// copies are used again if they have at most mostKept bytes: a claim needs a hundred kilobytes for
// each.
var copies = sync.Pool{New: func() any { return &copied{} }}

const mostKept = 1 << 20

// reader appends the trailer and returns a reader of all rows.
func (c *copied) reader() *bytes.Reader {
	const trailer = 0xffff // -1 in place of the number of columns
	c.buf = binary.BigEndian.AppendUint16(c.buf, trailer)
	return bytes.NewReader(c.buf)
}

// row begins the next row.
func (c *copied) row(columns uint16) { c.buf = binary.BigEndian.AppendUint16(c.buf, columns) }

func (c *copied) null() { c.size(-1) }

func (c *copied) size(n int) {
	c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(n)) //nolint:gosec // -1, or that of a value.
}

func (c *copied) bigint(n int64) {
	c.size(8)
	c.buf = binary.BigEndian.AppendUint64(c.buf, uint64(n)) //nolint:gosec // Two's complement.
}

func (c *copied) integer(n int32) {
	c.size(4)
	c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(n)) //nolint:gosec // Two's complement.
}

func (c *copied) smallint(n int) {
	c.size(2)
	c.buf = binary.BigEndian.AppendUint16(c.buf, uint16(n)) //nolint:gosec // The columns hold so much.
}

func (c *copied) text(s string) {
	c.size(len(s))
	c.buf = append(c.buf, s...)
}

func (c *copied) bytea(b []byte) {
	c.size(len(b))
	c.buf = append(c.buf, b...)
}

// The next three write null for zero and for the empty text.

func (c *copied) bigintOrNull(n int64) {
	if n == 0 {
		c.null()
		return
	}
	c.bigint(n)
}

func (c *copied) smallintOrNull(n int) {
	if n == 0 {
		c.null()
		return
	}
	c.smallint(n)
}

func (c *copied) textOrNull(s string) {
	if s == "" {
		c.null()
		return
	}
	c.text(s)
}

// jsonb writes a version byte before the text.
func (c *copied) jsonb(s string) {
	if s == "" {
		c.null()
		return
	}
	c.size(1 + len(s))
	c.buf = append(append(c.buf, 1), s...)
}

// epoch is the epoch of PostgreSQL's binary timestamps, in Unix seconds.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

func (c *copied) time(t time.Time) {
	if t.IsZero() {
		c.null()
		return
	}
	c.bigint(sinceEpoch(t))
}

// sinceEpoch is a time as PostgreSQL sends it, in microseconds.
func sinceEpoch(t time.Time) int64 {
	return (t.Unix()-epoch)*1_000_000 + int64(t.Nanosecond()/1000)
}
