package ledger

import (
	"testing"
	"time"
)

// TestHoursOfADay follow each other from its beginning to its end: 25 where clocks go back, 23
// where they go forward.
func TestHoursOfADay(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	for date, want := range map[string]int{"2026-10-25": 25, "2026-03-29": 23, "2026-11-21": 24} {
		noon, err := time.ParseInLocation("2006-01-02 15", date+" 12", zone)
		if err != nil {
			t.Fatal(err)
		}
		day := NewBusinessDay(noon, zone)
		at, n := day.From, 0
		for hour := range day.hours() {
			if n++; !hour.From.Equal(at) || hour.To.Sub(hour.From) != time.Hour || hour.Date != date {
				t.Errorf("%s, hour %d: %+v", date, n, hour)
			}
			at = hour.To
		}
		if n != want || !at.Equal(day.To) {
			t.Errorf("%s has %d hours and ends at %s", date, n, at)
		}
	}
}
