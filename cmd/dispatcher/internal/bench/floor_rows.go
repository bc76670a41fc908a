package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/provider"
)

// rows are a batch as columns, the form of parameters and COPY. A batch is of one lane, which has
// one topic here.
type rows struct {
	lane, topic     string
	seq             []int64
	id, channel     []string
	partition       []int32
	offset          []int64
	envelope        [][]byte
	produced        []time.Time
	results         []provider.Result
	code, reference []string
	names           []string // of channels, ascending
	counts          []int64  // number of messages on each
}

func (f *Floor) rows(jobs []decide.Job) *rows {
	n := len(jobs)
	r := &rows{
		lane: jobs[0].Lane, topic: jobs[0].Origin.Topic,
		id: make([]string, n), channel: make([]string, n), partition: make([]int32, n),
		offset: make([]int64, n), envelope: make([][]byte, n), produced: make([]time.Time, n),
		results: make([]provider.Result, n), names: f.names, counts: make([]int64, len(f.names)),
	}
	for i := range jobs {
		j, channel := &jobs[i], i%len(f.names)
		r.id[i], r.channel[i] = j.Message.ID, f.names[channel]
		r.partition[i], r.offset[i] = j.Origin.Partition, j.Origin.Offset
		r.envelope[i], r.produced[i] = j.Raw, j.Produced
		r.counts[channel]++
	}
	return r
}

// The statements of a batch.
const (
	insertIDs = `insert into floor.ids (id) select unnest($1::text[]) returning seq`
	// The counters come last, so that they are locked for little more than a commit.
	lockChannels = `
		select from floor.channels where channel = any($1) order by channel for update`
	claimSlots = `
		update floor.channels c set active = c.active + n.n, claimed = c.claimed + n.n
		from unnest($1::text[], $2::bigint[]) as n(channel, n) where c.channel = n.channel`
	freeSlots = `
		update floor.channels c set active = c.active - n.n
		from unnest($1::text[], $2::bigint[]) as n(channel, n) where c.channel = n.channel`
	// A commit without waiting for the disk ends the locks of the counters; flush then waits.
	dontWait     = `set local synchronous_commit = off`
	flush        = `select 1 from pg_logical_emit_message(true, 'floor', '')`
	insertEvents = `insert into floor.outbox (keys, "values") values ($1, $2)`
)

// store makes a batch durable in one transaction. The first statement finds out whether the
// messages are new, as a claim does before it decides.
func (f *Floor) store(ctx context.Context, r *rows) error {
	conn, err := f.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	defer conn.Release() // closes it if the transaction has failed
	first := &pgx.Batch{}
	first.Queue("begin")
	first.Queue(insertIDs, r.id).Query(func(inserted pgx.Rows) (err error) {
		r.seq, err = pgx.AppendRows(make([]int64, 0, len(r.id)), inserted, pgx.RowTo[int64])
		return err
	})
	if err := conn.SendBatch(ctx, first).Close(); err != nil {
		return fmt.Errorf("floor: store ids: %w", err)
	}
	err = r.copyTo(ctx, conn, "messages", []string{
		"seq", "id", "lane", "topic", "kafka_partition", "kafka_offset", "produced_at",
		"expires_at", "channel",
	}, func(i int) []any {
		return []any{
			r.seq[i], r.id[i], r.lane, r.topic, r.partition[i], r.offset[i], r.produced[i],
			r.produced[i].Add(72 * time.Hour), r.channel[i],
		}
	})
	if err != nil {
		return err
	}
	err = r.copyTo(ctx, conn, "payloads", []string{"seq", "envelope"}, func(i int) []any {
		return []any{r.seq[i], r.envelope[i]}
	})
	if err != nil {
		return err
	}
	rest := &pgx.Batch{}
	rest.Queue(insertEvents, r.id, r.events("sending"))
	rest.Queue(lockChannels, r.names)
	rest.Queue(claimSlots, r.names, r.counts)
	commitAndFlush(rest)
	if err := conn.SendBatch(ctx, rest).Close(); err != nil {
		return fmt.Errorf("floor: store messages: %w", err)
	}
	return nil
}

// copyTo stores a row for each message of the batch. PostgreSQL writes the rows of a COPY that are
// on one page in one WAL record.
func (r *rows) copyTo(
	ctx context.Context, conn *pgxpool.Conn, table string, columns []string, row func(i int) []any,
) error {
	_, err := conn.CopyFrom(ctx, pgx.Identifier{"floor", table}, columns,
		pgx.CopyFromSlice(len(r.id), func(i int) ([]any, error) { return row(i), nil }))
	if err != nil {
		return fmt.Errorf("floor: store %s: %w", table, err)
	}
	return nil
}

// commitAndFlush queues what makes a transaction durable.
func commitAndFlush(b *pgx.Batch) {
	for _, statement := range []string{dontWait, "commit", flush} {
		b.Queue(statement)
	}
}

// settle stores the outcomes in one transaction.
func (f *Floor) settle(ctx context.Context, r *rows) error {
	r.code, r.reference = make([]string, len(r.id)), make([]string, len(r.id))
	for i := range r.results {
		result := &r.results[i]
		if result.Outcome != provider.Accepted {
			return notAccepted(result)
		}
		r.code[i], r.reference[i] = result.Code, result.Reference
	}
	conn, err := f.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "begin"); err != nil {
		return fmt.Errorf("floor: settle: %w", err)
	}
	err = r.copyTo(ctx, conn, "outcomes", []string{"seq", "channel", "code", "reference"},
		func(i int) []any { return []any{r.seq[i], r.channel[i], r.code[i], r.reference[i]} })
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	batch.Queue(insertEvents, r.id, r.events("accepted"))
	batch.Queue(lockChannels, r.names)
	batch.Queue(freeSlots, r.names, r.counts)
	commitAndFlush(batch)
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("floor: settle: %w", err)
	}
	return nil
}

// events are the status events of the batch.
func (r *rows) events(state string) [][]byte {
	events := make([][]byte, len(r.id))
	now := time.Now()
	for i := range r.id {
		status := envelope.Status{
			ID: r.id[i], State: state, At: now, Lane: r.lane, Route: "floor",
			Channel: r.channel[i], Attempt: 1, Segments: 1,
		}
		if r.reference != nil {
			status.Code, status.Reference = r.code[i], r.reference[i]
		}
		events[i] = envelope.AppendStatus(make([]byte, 0, 256), status)
	}
	return events
}
