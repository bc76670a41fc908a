package pipeline

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestScheduleNamesEachTimeOnceAndInOrder(t *testing.T) {
	t.Parallel()
	s, at := newSchedule(), func(d time.Duration) time.Time { return noon.Add(d) }
	for _, d := range []time.Duration{
		time.Second, time.Second - 2*time.Millisecond, time.Second, time.Hour, 3 * time.Millisecond,
		7 * time.Millisecond,
		0, -time.Second, farthest + time.Second, // these are not scheduled
	} {
		s.add(at(d), noon)
	}
	now := noon
	for _, want := range []time.Duration{
		5 * time.Millisecond, 10 * time.Millisecond, time.Second,
		time.Hour,
	} {
		got, ok := s.soonest(now)
		if !ok || !got.Equal(at(want)) {
			t.Errorf("after %s comes %s, want %s", now.Sub(noon), got.Sub(noon), want)
		}
		now = at(want)
	}
	if got, ok := s.soonest(now); ok {
		t.Errorf("after the last comes %s", got)
	}
}

func TestScheduleIsBoundedAndStillNamesTheSoonest(t *testing.T) {
	t.Parallel()
	s := newSchedule()
	for i := range 3 * maxScheduled {
		s.add(noon.Add(time.Minute+time.Duration(i)*grain), noon)
	}
	if len(s.heap) != maxScheduled || len(s.known) != maxScheduled {
		t.Errorf("%d times are remembered", len(s.heap))
	}
	s.add(noon.Add(time.Second), noon)
	if got, _ := s.soonest(noon); !got.Equal(noon.Add(time.Second)) {
		t.Errorf("got the next time in %s", got.Sub(noon))
	}
}

// TestDueRowsAreClaimedWhenTheyBecomeDue: at that time, but not more often than each gap and not
// less often than each interval.
func TestDueRowsAreClaimedWhenTheyBecomeDue(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ due, want time.Duration }{
		{0, dueInterval},
		{120 * time.Millisecond, 120*time.Millisecond + clockSlack},
		{dueGap / 2, dueGap},
		{time.Second, dueInterval},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &Dispatcher{clock: newClock(), due: newSchedule(), nudge: make(chan struct{}, 1)}
			began := time.Now()
			database := began.Add(-time.Hour) // whose clock differs
			d.clock.read(database, began, began)
			if tc.due > 0 {
				d.due.add(database.Add(tc.due), database)
			}
			timer := time.NewTimer(time.Hour)
			if !d.awaitDue(t.Context(), timer, began) || time.Since(began) != tc.want {
				t.Errorf("due after %s, claimed after %s", tc.due, time.Since(began))
			}
		})
	}
}

// TestARowPutOffMeanwhileMovesTheNextClaim: the loop is already waiting when another claim of the
// process puts a row off.
func TestARowPutOffMeanwhileMovesTheNextClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &Dispatcher{clock: newClock(), due: newSchedule(), nudge: make(chan struct{}, 1)}
		began := time.Now()
		d.clock.read(began, began, began)
		go func() {
			time.Sleep(70 * time.Millisecond)
			d.due.add(began.Add(90*time.Millisecond), time.Now())
		}()
		timer := time.NewTimer(time.Hour)
		if d.awaitDue(t.Context(), timer,
			began); time.Since(began) != 90*time.Millisecond+clockSlack {
			t.Errorf("claimed after %s", time.Since(began))
		}
		// A row that becomes due while the last run is in progress is claimed, too.
		d.due.add(began.Add(100*time.Millisecond), time.Now())
		waited := time.Now()
		time.Sleep(60 * time.Millisecond) // longer than the gap
		if d.awaitDue(t.Context(), timer, waited); time.Since(waited) != 60*time.Millisecond {
			t.Errorf("claimed after %s", time.Since(waited))
		}
	})
}
