package tier

import (
	"testing"
	"time"
)

// Eventually is Within for LongestWait.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	Within(t, LongestWait, what, ok)
}

// Pauses between two checks of Within. After a slow check it waits longer, so that most of the
// machine's time is left to what the test waits for.
const (
	firstPause   = time.Millisecond
	usualPause   = 50 * time.Millisecond
	longestPause = 300 * time.Millisecond
)

// Within waits until ok returns true, and fails the test if that takes longer than timeout. what
// says in the error what did not happen. It polls, so use it where there is no event to wait for.
func Within(t testing.TB, timeout time.Duration, what string, ok func() bool) {
	t.Helper()
	pause := firstPause
	for end := time.Now().Add(timeout); ; {
		began := time.Now()
		if ok() {
			return
		}
		now := time.Now()
		if now.After(end) {
			t.Fatalf("not within %s: %s", timeout, what)
		}
		time.Sleep(min(max(pause, 3*now.Sub(began)), longestPause))
		pause = min(2*pause, usualPause)
	}
}
