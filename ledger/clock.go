package ledger

import (
	"context"
	"time"
)

// Clock reads the database's clock.
func (l *Ledger) Clock(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := l.hot.QueryRow(ctx, `select clock_timestamp()`).Scan(&now)
	return now.UTC(), wrap("read the clock", err)
}
