package tier

import (
	"testing"
	"time"
)

// business is the time zone in which the days of most tests end; the others use UTC.
const business = "Europe/London"

// OneWindow waits for the next window of that length (a minute, an hour or a day) if the current
// one is about to end, so that a test that counts in one window does not cross into the next. It
// leaves a test 20 s of a minute, a minute of an hour, and five minutes of a day.
func OneWindow(t testing.TB, length time.Duration) {
	t.Helper()
	zone, err := time.LoadLocation(business)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	time.Sleep(max(untilSteady(now.UTC(), length), untilSteady(now.In(zone), length)))
}

// untilSteady is how long a test has to wait. Windows of up to an hour end by the UTC clock. A day
// ends at the midnight of the zone. Its first minute counts as the end of the day before, because
// some tests move times back by ten seconds.
func untilSteady(now time.Time, length time.Duration) time.Duration {
	end, need := now.Truncate(length).Add(length), 20*time.Second
	switch {
	case length > time.Hour:
		year, month, day := now.Add(-time.Minute).Date()
		end, need = time.Date(year, month, day+1, 0, 1, 0, 0, now.Location()), 6*time.Minute
	case length > time.Minute:
		need = time.Minute
	}
	if left := end.Sub(now); left < need {
		return left
	}
	return 0
}
