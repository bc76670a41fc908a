package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Throughput counts the attempts of one channel that were claimed within one interval.
type Throughput struct {
	At       time.Time // the beginning of the interval
	Channel  string
	Attempts int64
	Accepted int64 // how many of Attempts were accepted so far
}

// Throughput counts attempts by channel and interval, from within ago to the beginning of the
// running interval, by the database's clock. An interval in which a channel did nothing has no row.
// Rows are ordered by interval and channel.
//
// Like Faults it reads the newest block ranges of the attempts, and costs as much.
func (s *Messages) Throughput(
	ctx context.Context, within, interval time.Duration,
) ([]Throughput, error) {
	out, err := atEdge(ctx, s.db, scanThroughput, `
		select date_bin($2, a.claimed_at, 'epoch'::timestamptz), a.channel, count(*),
		  count(*) filter (where a.outcome = 'accepted')
		from dispatcher.all_attempts a
		where a.claimed_at >= date_bin($2, now() - $1::interval, 'epoch'::timestamptz)
		  and a.claimed_at < date_bin($2, now(), 'epoch'::timestamptz)
		group by 1, 2 order by 1, 2`, within, interval)
	return out, wrap("count attempts by interval", err)
}

func scanThroughput(row pgx.CollectableRow) (Throughput, error) {
	var t Throughput
	err := row.Scan(&t.At, &t.Channel, &t.Attempts, &t.Accepted)
	t.At = t.At.UTC()
	return t, err
}
