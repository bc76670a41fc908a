package pipeline

import (
	"testing"
	"time"
)

func TestAnswerTimesAreThoseOfTheLastMinutes(t *testing.T) {
	t.Parallel()
	var a answerTimes
	now := time.Unix(1_795_000_000, 0)
	if got := a.recent(now); got != nil {
		t.Errorf("%v before the first answer", got)
	}
	for _, took := range []time.Duration{
		0, time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond, time.Hour,
	} {
		a.add(took, now)
	}
	var sum, near int64
	for bound, n := range a.recent(now.Add(4 * time.Minute)) {
		sum += n
		if bound >= 100_000 && bound < 120_001 {
			near += n
		}
	}
	if sum != 5 || near != 2 {
		t.Errorf("%d answers, %d of them at 100 ms: %v", sum, near, a.recent(now))
	}
	a.add(time.Second, now.Add(5*time.Minute)) // replaces the first minute
	for bound, n := range a.recent(now.Add(5 * time.Minute)) {
		if n != 1 || bound < 1_000_000 || bound > 1_200_000 {
			t.Errorf("%d at %d us", n, bound)
		}
	}
	if got := a.recent(now.Add(time.Hour)); got != nil {
		t.Errorf("%v after an hour", got)
	}
}
