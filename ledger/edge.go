package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// edgeSettings keep a question about the newest rows at the right edge of its indexes,
// whatever the statistics of a table say that has grown since they were taken.
const edgeSettings = `
	select set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
	  set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)`

// atEdge asks a question about the newest rows, in one round trip. It takes no
// connection from claims and settlements.
func atEdge[T any](ctx context.Context, d *db, scan pgx.RowToFunc[T], sql string, args ...any) (out []T, err error) {
	batch := &pgx.Batch{}
	batch.Queue("begin read only")
	batch.Queue(edgeSettings)
	batch.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		out, err = pgx.CollectRows(rows, scan)
		return err
	})
	batch.Queue("commit")
	err = d.reports.SendBatch(ctx, batch).Close() // before what it reads is returned
	return out, err
}
