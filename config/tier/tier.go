// Package tier divides the tests into two tiers. The fast tier is what go test ./... runs: it
// touches every guarantee in some minutes. The long tier, switched on by LONG_TESTS=1, runs every
// test in its full size and draws fresh seeds for properties. Only tests import it.
package tier

import (
	"flag"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Long reports whether the long tier runs.
func Long() bool { return os.Getenv("LONG_TESTS") == "1" }

// Size returns the size of a test in the tier that runs.
func Size[T any](fast, long T) T {
	if Long() {
		return long
	}
	return fast
}

// Sample returns every nth of the cases of a test in the fast tier, beginning with the first, and
// all of them in the long one.
func Sample[T any](cases []T, n int) (some []T) {
	for i := 0; i < len(cases); i += Size(n, 1) {
		some = append(some, cases[i])
	}
	return some
}

// LongOnly skips a test that runs in the long tier alone. Nothing else skips a test:
// TestNothingIsSkippedButByTheTier checks every package.
func LongOnly(t testing.TB) {
	t.Helper()
	if !Long() {
		t.Skip("the long tier runs this story: LONG_TESTS=1")
	}
}

// LongestWait is how long a test waits for what has to happen. It is more than a loaded machine
// ever takes, so only a test that fails waits so long.
const LongestWait = 90 * time.Second

// fastSeed is the seed of every property in the fast tier, so that a fresh clone cannot fail by a
// draw that was never seen before. The flag -rapid.seed wins.
const fastSeed = "20260101"

// It is set before any test runs, since rapid reads its flags without a lock.
func init() {
	if !Long() {
		_ = flag.Set("rapid.seed", fastSeed) // the flag takes any number
	}
}

// Check is rapid.Check with a fixed seed in the fast tier and a fresh one in the long tier.
func Check(t rapid.TB, property func(*rapid.T)) {
	t.Helper()
	rapid.Check(t, property)
}
