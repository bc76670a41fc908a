package ledger

import (
	"context"
	"time"
)

// Pause waits between two tries to reach the database, or between two polls of it; false means that
// ctx has ended.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
