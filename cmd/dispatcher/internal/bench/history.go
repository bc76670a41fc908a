package bench

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/past"
)

// historyDatabase is the name of the database with the history.
const historyDatabase = "history"

// addHistory makes the dispatcher's runs share a ledger with history.
func (r *rig) addHistory(ctx context.Context, messages int, step func(string)) error {
	if err := r.makeDatabase(ctx, historyDatabase); err != nil {
		return err
	}
	r.history = true
	return past.Fill(ctx, r.servers.Postgres.URLOf(historyDatabase), messages, step)
}

// forgetRouting makes the next run apply its own document, which names its topic.
func (r *rig) forgetRouting(ctx context.Context, database string) error {
	conn, err := pgx.Connect(ctx, r.servers.Postgres.URLOf(database))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the session ends either way
	_, err = conn.Exec(ctx, `truncate dispatcher.routing_versions`)
	return err
}
