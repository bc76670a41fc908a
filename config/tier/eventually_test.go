package tier_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"dispatcher/config/tier"
)

// failing records the error of a test that fails.
type failing struct {
	testing.TB
	message string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestWithinWaitsUntilTheConditionHoldsAndNoLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		tier.Within(t, time.Minute, "two seconds have passed", func() bool {
			return time.Since(began) >= 2*time.Second
		})
		if took := time.Since(began); took > 2*time.Second+50*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		f, began := &failing{TB: t}, time.Now()
		ended := make(chan struct{})
		go func() { // Fatalf ends its goroutine
			defer close(ended)
			tier.Within(f, time.Minute, "it never holds", func() bool {
				time.Sleep(time.Second) // a slow check
				return false
			})
		}()
		<-ended
		if want := "not within 1m0s: it never holds"; f.message != want {
			t.Errorf("got %q after %s, want %q", f.message, time.Since(began), want)
		}
	})
}
