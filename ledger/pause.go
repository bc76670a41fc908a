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

// Repeat calls try until it succeeds, while its error says that the database is unavailable. The
// pause between two tries doubles from first to longest. It returns the last error, which may be
// one of unavailability only when ctx has ended.
func Repeat(ctx context.Context, first, longest time.Duration, try func() error) error {
	for pause := first; ; pause = min(2*pause, longest) {
		err := try()
		if !Unavailable(err) || !Pause(ctx, pause) {
			return err
		}
	}
}
