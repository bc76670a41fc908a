package ledger

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// commitTag is how the server answered a COMMIT; empty without an answer.
type commitTag string

// queueEarly adds a COMMIT that ends the locks of the transaction before the disk and a standby
// have it, so that others do not wait for their disk too. Then it waits for both.
func (c *commitTag) queueEarly(batch *pgx.Batch) {
	batch.Queue("set local synchronous_commit = off")
	c.queue(batch)
	batch.Queue(replicationBarrier)
}

// queue adds a COMMIT to a batch.
func (c *commitTag) queue(batch *pgx.Batch) {
	batch.Queue("commit").Exec(func(ct pgconn.CommandTag) error {
		*c = commitTag(ct.String())
		return nil
	})
}

// err is nil after a commit. PostgreSQL answers COMMIT with ROLLBACK when the transaction had
// failed.
func (c *commitTag) err() error {
	if *c == "COMMIT" {
		return nil
	}
	return fmt.Errorf("commit was answered with %s", *c)
}

// atOnce runs what queue adds to a batch as one transaction of one round trip, see queueEarly.
func atOnce(ctx context.Context, conn *pgxpool.Conn, queue func(*pgx.Batch)) error {
	batch := &pgx.Batch{}
	batch.Queue("begin")
	queue(batch)
	var commit commitTag
	commit.queueEarly(batch)
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		rollback(ctx, conn)
		return err
	}
	return commit.err()
}
