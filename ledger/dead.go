package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// DeadRecords reads the records that could not be used, and stores that one is published again.
type DeadRecords struct {
	*db
	messages *Messages
}

// Errors of DeadRecords.
var (
	// ErrNoDeadRecord means that no dead record has this id or position.
	ErrNoDeadRecord = errors.New("the ledger has no dead record of this name")
	// ErrPayloadGone means that the payload of the record was dropped.
	ErrPayloadGone = errors.New("the record is not kept any more")
	// ErrPayloadHidden means that the login may not read numbers and texts.
	ErrPayloadHidden = errors.New("this login may not read numbers and texts")
	// ErrReplayed means that the record was replayed after the caller read it.
	ErrReplayed = errors.New("the record has been replayed meanwhile")
	// ErrIDTaken means that another message has the id.
	ErrIDTaken = errors.New("another message has the id")
)

// DeadRecord is a record that could not be used, without number and text.
type DeadRecord struct {
	Seq    int64
	ID     string // empty when it has no usable id
	Lane   string
	Tenant string
	Reason string // a bounded word
	Detail string // a sentence for its producer
	Origin Origin
	// ReceivedAt is when it was stored.
	ReceivedAt time.Time
	// Replay is when it was last published again; nil for never.
	Replay *Replay
}

// Replay is a dead record that was published again.
type Replay struct {
	At     time.Time
	Author string
	Via    Via    // how it came in; empty where it was not recorded
	As     string // the id that it was published under
}

// DeadFilter selects dead records. The zero value selects all.
type DeadFilter struct {
	// Lane, Topic and Reason are names; empty means any.
	Lane, Topic, Reason string
	// Since selects records received at that time or later; zero means any time.
	Since time.Time
	// Below selects numbers lower than this one, to read the next page; 0 for no bound.
	Below int64
	// Open leaves out replayed records.
	Open bool
}

const (
	deadColumns = `
	select d.seq, coalesce(d.id, ''), d.lane, d.tenant, coalesce(d.reason, ''), d.detail, d.topic,
	  d.kafka_partition, d.kafka_offset, d.received_at, d.replayed_at,
	  coalesce(d.replayed_by, ''), coalesce(d.replayed_as, ''), coalesce(d.replayed_via, '')
	from facts.dead_records d`

	// deadMatching is the condition of a filter; $1 to $6 are its arguments.
	deadMatching = `
	where ($1 = '' or d.lane = $1) and ($2 = '' or d.topic = $2) and ($3 = '' or d.reason = $3)
	  and ($4::timestamptz is null or d.received_at >= $4) and ($5::bigint = 0 or d.seq < $5)
	  and (not $6::boolean or d.replayed_at is null)`

	listDead  = deadColumns + deadMatching + ` order by d.seq desc limit $7`
	countDead = `select count(*) from facts.dead_records d` + deadMatching

	// latestDead reads the latest dead record with an id, $1, or with a position in Kafka; null for
	// any.
	latestDead = deadColumns + `
	where ($1::text is null or d.id = $1)
	  and ($2::text is null
	    or d.topic = $2 and d.kafka_partition = $3::int and d.kafka_offset = $4::bigint)
	order by d.received_at desc, d.seq desc limit 1`
)

func (f *DeadFilter) arguments() []any {
	return []any{f.Lane, f.Topic, f.Reason, instant(f.Since), f.Below, f.Open}
}

// List lists the records that match, newest first, limit at most.
func (s *DeadRecords) List(ctx context.Context, f *DeadFilter, limit int) ([]DeadRecord, error) {
	return rows(ctx, s.db, scanDead, listDead, append(f.arguments(), limit)...)
}

// Count is how many records match.
func (s *DeadRecords) Count(ctx context.Context, f *DeadFilter) (n int64, err error) {
	err = s.reports.QueryRow(ctx, countDead, f.arguments()...).Scan(&n)
	return n, wrap("count dead records", err)
}

// Find reads the latest dead record with an id.
func (s *DeadRecords) Find(ctx context.Context, id string) (DeadRecord, error) {
	return s.latest(ctx, id, nil, nil, nil)
}

// At reads the latest dead record with a position in Kafka.
func (s *DeadRecords) At(ctx context.Context, o Origin) (DeadRecord, error) {
	return s.latest(ctx, nil, o.Topic, o.Partition, o.Offset)
}

func (s *DeadRecords) latest(ctx context.Context, args ...any) (DeadRecord, error) {
	found, err := rows(ctx, s.db, scanDead, latestDead, args...)
	if err == nil && len(found) == 0 {
		err = ErrNoDeadRecord
	}
	if err != nil {
		return DeadRecord{}, err
	}
	return found[0], nil
}

func scanDead(r pgx.CollectableRow) (d DeadRecord, err error) {
	var at *time.Time
	var replay Replay
	err = r.Scan(&d.Seq, &d.ID, &d.Lane, &d.Tenant, &d.Reason, &d.Detail, &d.Origin.Topic,
		&d.Origin.Partition, &d.Origin.Offset, &d.ReceivedAt, &at, &replay.Author, &replay.As,
		&replay.Via)
	d.ReceivedAt = d.ReceivedAt.UTC()
	if at != nil {
		replay.At = at.UTC()
		d.Replay = &replay
	}
	return d, err
}

// Payload returns the record as it was read, with number and text. It returns ErrPayloadHidden to a
// login that may not read them, and ErrPayloadGone when the payload was dropped.
func (s *DeadRecords) Payload(ctx context.Context, seq int64) (raw []byte, err error) {
	may, err := s.messages.payloads(ctx)
	switch {
	case err != nil:
		return nil, wrap("read a record", err)
	case !may:
		return nil, ErrPayloadHidden
	}
	err = s.reports.QueryRow(ctx, `select envelope from dispatcher.payloads where seq = $1`, seq).
		Scan(&raw)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrPayloadGone
	}
	return raw, wrap("read a record", err)
}

// Holder is the number of the message that has an id, if the id is still recognised; 0 for none.
func (s *DeadRecords) Holder(ctx context.Context, id string) (seq int64, err error) {
	err = s.reports.QueryRow(ctx, `select seq from facts.ids where id = $1`, id).Scan(&seq)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return seq, wrap("read an id", err)
}

// Replaying asks to publish a dead record again.
type Replaying struct {
	Record *DeadRecord // as the caller read it
	// As is the id to publish it under. If it is the record's own, that id is released first.
	As             string
	Author, Reason string
	Via            Via
}

// replayed stores a replay, unless there was another one after the one at $6, which the caller
// read.
const replayed = `
	with noted as (
	  insert into dispatcher.operator_actions (author, reason, action, subject, message_seq, new_id,
	    via)
	  select $1, $2, 'replay', $3, $4, $5, $7
	  where (select max(at) from dispatcher.operator_actions where message_seq = $4)
	    is not distinct from $6::timestamptz
	  returning id
	)
	select exists (select from noted)`

// Replay stores that a dead record is published again, and releases its id if the record is to keep
// it. This is one transaction, and the caller publishes only after its commit: before it the id is
// taken, and the record would not be a new message. It returns ErrReplayed when the record was
// replayed after the caller read it, and ErrIDTaken when another message has the record's own id.
func (s *DeadRecords) Replay(ctx context.Context, r *Replaying) error {
	d, subject := r.Record, r.Record.ID
	if subject == "" {
		subject = d.Origin.String()
	}
	var last *time.Time
	if d.Replay != nil {
		last = &d.Replay.At
	}
	return wrap("note a replay", pgx.BeginFunc(ctx, s.hot, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(`select set_config('lock_timeout', $1, true)`, releaseWait)
		batch.Queue(`select pg_advisory_xact_lock($1, $2)`, replayLock, int32(d.Seq))
		free, noted := true, false
		if r.As == d.ID {
			batch.Queue(`select dispatcher.release_dead($1)`, d.Seq).QueryRow(
				func(row pgx.Row) error { return row.Scan(&free) })
		}
		batch.Queue(replayed, storable(r.Author), storable(r.Reason), subject, d.Seq, r.As, last, r.Via).
			QueryRow(func(row pgx.Row) error { return row.Scan(&noted) })
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
		switch {
		case !noted:
			return ErrReplayed
		case !free:
			return ErrIDTaken
		}
		return nil
	}))
}

const (
	// replayLock is the first key of the advisory lock of a replay; the second is the record's.
	replayLock = 0x64656164
	// releaseWait bounds how long the release of an id waits for running claims, because other
	// sessions queue behind it.
	releaseWait = "2s"
)
