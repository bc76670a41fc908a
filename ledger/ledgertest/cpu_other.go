//go:build !linux

package ledgertest

import (
	"testing"
	"time"
)

var began = time.Now()

// CPUTime is known on Linux alone. Elsewhere it is the time by the clock.
func CPUTime(testing.TB) time.Duration { return time.Since(began) }
