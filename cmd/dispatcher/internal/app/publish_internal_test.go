package app

import (
	"context"
	"errors"
	"testing"
)

// TestReportsArePublishedUntilItSucceeds and none has to wait: then they are not published again
// before a day changes.
func TestReportsArePublishedUntilItSucceeds(t *testing.T) {
	t.Parallel()
	calls, troubles := 0, 0
	fails := errors.New("no storage")
	d := &days{
		changed: true,
		publish: func(context.Context) (again bool, err error) {
			calls++
			if calls < 3 {
				return false, fails
			}
			return calls == 3, nil
		},
		trouble: func(string, error) { troubles++ },
	}
	for range 5 {
		d.publishDays(t.Context())
	}
	if calls != 4 || troubles != 2 {
		t.Errorf("got %d calls, %d troubles", calls, troubles)
	}
	d.changed = true
	d.publishDays(t.Context())
	if calls != 5 {
		t.Error("a closed day was not published")
	}
	(&days{changed: true}).publishDays(t.Context()) // publishing is not configured
}
