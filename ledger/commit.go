package ledger

import (
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// commitTag is how the server answered a COMMIT; empty without an answer.
type commitTag string

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
