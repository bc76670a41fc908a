package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Waiting counts the messages that wait for a channel or for their next try, per lane.
// Messages whose time has not come (Scheduled) are not among them.
func (s *Claims) Waiting(ctx context.Context) (map[string]int64, error) {
	r, err := s.hot.Query(ctx, `select queue, count(*) from dispatcher.messages where queue is not null group by queue`)
	if err != nil {
		return nil, wrap("count waiting messages", err)
	}
	counts, err := collectCounts(r)
	return counts, wrap("count waiting messages", err)
}

// WaitingFor counts the messages that wait for each of the texts that Decision.WaitsFor gave.
func (s *Claims) WaitingFor(ctx context.Context, on []string) (map[string]int64, error) {
	r, err := s.hot.Query(ctx, `
		select waits_for, count(*) from dispatcher.messages
		where next_at is not null and waits_for = any($1) and state = 'waiting' group by waits_for`, on)
	if err != nil {
		return nil, wrap("count waiting messages", err)
	}
	counts, err := collectCounts(r)
	return counts, wrap("count waiting messages", err)
}

// Due counts the rows that have come due, up to limit and without those whose Message.Seq is among
// except. It takes no lock: who wants them claims with Claim.Due, and another instance may be
// quicker.
func (s *Claims) Due(ctx context.Context, limit int, except ...int64) (int, error) {
	var n int
	err := s.hot.QueryRow(ctx, `
		select count(*) from (select from dispatcher.messages where next_at <= now() and seq <> all($2::bigint[]) limit $1) due`,
		limit, append([]int64{}, except...)).Scan(&n)
	return n, wrap("count due messages", err)
}

// collectCounts reads a count for each word.
func collectCounts(rows pgx.Rows) (map[string]int64, error) {
	counts := map[string]int64{}
	var word string
	var n int64
	_, err := pgx.ForEachRow(rows, []any{&word, &n}, func() error {
		counts[word] = n
		return nil
	})
	return counts, err
}
