package ledger

import (
	"encoding/json"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"dispatcher/admission"
)

// messageColumns are the columns of a message m in the order of messageRow.targets.
const messageColumns = `m.seq, m.id, m.lane, m.tenant, m.topic, m.kafka_partition, m.kafka_offset,
	m.state, coalesce(m.reason, ''), m.next_at, m.expires_at,
	coalesce(m.route, ''), coalesce(m.routing_version, 0), coalesce(m.draw, 0),
	coalesce(m.draw_size, 0), coalesce(m.draw_key_id, ''), coalesce(m.first_choice, ''),
	coalesce(m.segments, 0), coalesce(m.alphabet, ''),
	m.received_at, m.attempts, m.tried, m.rounds, coalesce(m.pinned, ''), m.parts_left,
	coalesce(m.parts_cut, ''), m.possible_duplicate,
	m.waiting_since, coalesce(m.waits_for, ''), coalesce(m.waits::text, ''),
	coalesce(m.same_key, ''), m.same_key_until, coalesce(m.same_key_account, ''),
	coalesce(m.number_hmac, 0)`

// messageRow is a Message while it is scanned, with the times that may be null.
type messageRow struct {
	m                  Message
	nextAt, expiresAt  pgtype.Timestamptz
	waitingSince       pgtype.Timestamptz
	sameKeyUntil       pgtype.Timestamptz
	waits              string
	partsLeft          []int
	receivedAt         time.Time
	attempts, segments int
}

// targets are the scan targets for a row of messageColumns.
func (r *messageRow) targets() []any {
	m := &r.m
	return []any{
		&m.Seq, &m.ID, &m.Lane, &m.Tenant, &m.Origin.Topic, &m.Origin.Partition, &m.Origin.Offset,
		&m.State, &m.Reason, &r.nextAt, &r.expiresAt,
		&m.Plan.Route, &m.Plan.Version, &m.Plan.Draw, &m.Plan.Size,
		&m.Plan.KeyID, &m.Plan.FirstChoice, &r.segments, &m.Plan.Alphabet,
		&r.receivedAt, &r.attempts, &m.Tried, &m.Rounds, &m.Pinned, &r.partsLeft, &m.PartsCut,
		&m.PossibleDuplicate,
		&r.waitingSince, &m.WaitsFor, &r.waits, &m.SameKey, &r.sameKeyUntil, &m.SameKeyAccount,
		&m.NumberHMAC,
	}
}

// message is the Message of a scanned row.
func (r *messageRow) message() Message {
	r.m.NextAt, r.m.ExpiresAt, r.m.ReceivedAt = moment(r.nextAt), moment(r.expiresAt),
		r.receivedAt.UTC()
	r.m.Attempts, r.m.Plan.Segments, r.m.PartsLeft = r.attempts, r.segments, r.partsLeft
	r.m.WaitingSince, r.m.Waits = moment(r.waitingSince), decodeWaits(r.waits)
	r.m.SameKeyUntil = moment(r.sameKeyUntil)
	return r.m
}

// dueRow is a due message, with its ticket if it has one.
type dueRow struct {
	messageRow
	accepted, claimed, taken pgtype.Timestamptz
	optedOut, open           bool
}

func (r *dueRow) targets() []any {
	return append(r.messageRow.targets(), &r.m.Envelope, &r.accepted, &r.claimed, &r.optedOut,
		&r.open, &r.taken, &r.m.ReceiptCame)
}

// message is the Message of a scanned row.
func (r *dueRow) message() Message {
	m := r.messageRow.message()
	m.MayBeTaken, m.TakenAt = r.open, moment(r.taken)
	if r.accepted.Valid {
		m.Ticket = ticket(r.accepted.Time, r.claimed.Time)
	}
	return m
}

// recordColumns are the columns of a message m of facts.messages, in the order of
// recordRow.targets. Envelope and salt are null for a login that may not read payloads.
func recordColumns(payloads bool) string {
	payload := `null::bytea[]`
	if payloads {
		payload = `(select array[p.envelope, p.salt] from dispatcher.payloads p where p.seq = m.seq)`
	}
	return messageColumns + `, ` + payload + recordRest
}

const recordRest = `, m.finished_at,
	coalesce(m.seen::text, ''), coalesce(m.detail, ''), coalesce(m.envelope_hmac, 0),
	 coalesce(m.calling_code, 0), coalesce(m.sender, '')`

// recordRow is a Record without attempts while it is scanned.
type recordRow struct {
	messageRow
	payloads bool     // whether this login may read them
	payload  [][]byte // envelope and salt; nil for none
	finished pgtype.Timestamptz
	seen     string
}

func (r *recordRow) targets() []any {
	return append(r.messageRow.targets(), &r.payload, &r.finished, &r.seen, &r.m.Detail,
		&r.m.EnvelopeHMAC, &r.m.CallingCode, &r.m.Sender)
}

// record is the Record of a scanned row.
func (r *recordRow) record() Record {
	m := r.message()
	if r.payload != nil {
		m.Envelope = r.payload[0]
		copy(m.Salt[:], r.payload[1])
	}
	return Record{
		Message: m, PayloadGone: r.payloads && m.Envelope == nil, PayloadHidden: !r.payloads,
		FinishedAt: moment(r.finished), Seen: document(r.seen),
	}
}

// attemptRow is an AttemptRecord while addAttempts scans it.
type attemptRow struct {
	a              AttemptRecord
	ranking        string
	settled        pgtype.Timestamptz
	ticketAt       pgtype.Timestamptz
	receiptAt      pgtype.Timestamptz
	contradictedAt pgtype.Timestamptz
}

func (r *attemptRow) targets() []any {
	a := &r.a
	return []any{
		&a.Number, &a.Channel, &a.Reason, &a.Segments, &a.PriceMicros, &a.Currency, &r.ranking,
		&a.Outcome, &a.Unfit, &a.Code, &a.Reference,
		&a.ClaimedAt, &r.settled, &a.Instance, &a.Answers, &r.ticketAt,
		&a.Receipt, &a.Cause, &a.ReceiptCode, &r.receiptAt, &r.contradictedAt,
	}
}

// attempt is the AttemptRecord of a scanned row.
func (r *attemptRow) attempt() AttemptRecord {
	r.a.ClaimedAt, r.a.SettledAt = r.a.ClaimedAt.UTC(), moment(r.settled)
	r.a.Ranking, r.a.ReceiptAt = document(r.ranking), moment(r.receiptAt)
	r.a.ContradictedAt = moment(r.contradictedAt)
	if r.ticketAt.Valid {
		r.a.Ticket = ticket(r.ticketAt.Time, r.a.ClaimedAt)
	}
	return r.a
}

// document is JSON that was read as text; nil for none.
func document(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(text)
}

// instant is a time as a parameter: the zero time is null.
func instant(t time.Time) pgtype.Timestamptz {
	return pgtype.Timestamptz{Time: t, Valid: !t.IsZero()}
}

// moment is the inverse of instant.
func moment(t pgtype.Timestamptz) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}

// waitJSON is an entry of messages.waits.
type waitJSON struct {
	Reason string  `json:"reason"`
	On     string  `json:"on,omitempty"`
	Millis float64 `json:"ms"`
}

// encodeWaits returns JSON; empty for nil, which keeps the column as it is.
func encodeWaits(waits []Wait) string {
	if waits == nil {
		return ""
	}
	list := make([]waitJSON, len(waits))
	for i, w := range waits {
		list[i] = waitJSON{w.Reason, w.On, float64(w.For.Microseconds()) / 1000}
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic("ledger: " + err.Error()) // words and a finite number always encode
	}
	return string(text)
}

// decodeWaits reads the JSON of encodeWaits. It returns nil for text that it cannot read: waits are
// for people, and no decision depends on them.
func decodeWaits(text string) []Wait {
	if text == "" {
		return nil
	}
	var list []waitJSON
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil
	}
	waits := make([]Wait, len(list))
	for i, w := range list {
		waits[i] = Wait{
			Reason: w.Reason, On: w.On,
			For: time.Duration(math.Round(w.Millis*1000)) * time.Microsecond,
		}
	}
	return waits
}

// ticket lets an attempt that was claimed at a time use the slot of a part that was accepted
// earlier.
func ticket(accepted, claimed time.Time) *admission.Ticket {
	t := admission.NewTicket(accepted.UTC())
	t = t.CheckIn(claimed.UTC())
	return &t
}
