package pipeline

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestASharedDeadlineEndsWithTheLastAnswer, or at its time, so that no timer stays.
func TestASharedDeadlineEndsWithTheLastAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answered, late := newSharedDeadline(time.Now().Add(time.Second), 2),
			newSharedDeadline(time.Now().Add(time.Second), 2)
		answered.done()
		late.done()
		if answered.ctx.Err() != nil {
			t.Fatal("it ended before the last answer")
		}
		answered.done()
		if !errors.Is(answered.ctx.Err(), context.Canceled) {
			t.Errorf("after the last answer: %v", answered.ctx.Err())
		}
		<-time.After(time.Second + time.Millisecond)
		if !errors.Is(late.ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("after its time: %v", late.ctx.Err())
		}
		late.done()
	})
}
