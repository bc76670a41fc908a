package tier

import (
	"testing"
	"time"
)

// business is the time zone in which the days of the tests end, but for those whose days end in
// UTC.
const business = "Europe/London"

// OneWindow returns when no window of that length (a minute, an hour or a day) ends for a while, so
// that a test that counts in one of them does not meet the next one half-way. It leaves a test 20 s
// of a minute, a minute of an hour, and five minutes of a day.
func OneWindow(t testing.TB, length time.Duration) {
	t.Helper()
	zone, err := time.LoadLocation(business)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	time.Sleep(max(untilSteady(now.UTC(), length), untilSteady(now.In(zone), length)))
}

// AfterMidnight returns when the day is so old, for a test that moves back what it has stored and
// wants it on the same day.
func AfterMidnight(t testing.TB, age time.Duration) {
	t.Helper()
	zone, err := time.LoadLocation(business)
	if err != nil {
		t.Fatal(err)
	}
	year, month, day := time.Now().In(zone).Date()
	time.Sleep(time.Until(time.Date(year, month, day, 0, 0, 0, 0, zone).Add(age)))
}

// untilSteady is how long a test has to wait. Windows of an hour and less end when the clock of UTC
// says so. A day ends at the midnight of the zone; its first minute counts as the end of the day
// before, because some tests move what they have stored ten seconds back.
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
