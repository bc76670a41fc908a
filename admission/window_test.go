package admission_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config/tier"
)

func TestDaysAreCutInTheBusinessTimeZone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		zone, now, start, end string
		hours                 float64
	}{
		"winter":                            {"Europe/London", "2026-01-10T23:59:59Z", "2026-01-10T00:00:00Z", "2026-01-11T00:00:00Z", 24},
		"summer":                            {"Europe/London", "2026-07-10T23:30:00Z", "2026-07-10T23:00:00Z", "2026-07-11T23:00:00Z", 24},
		"clocks go forward: 23":             {"Europe/London", "2026-03-29T12:00:00Z", "2026-03-29T00:00:00Z", "2026-03-29T23:00:00Z", 23},
		"clocks go back: 25":                {"Europe/London", "2026-10-25T12:00:00Z", "2026-10-24T23:00:00Z", "2026-10-26T00:00:00Z", 25},
		"no midnight: 23":                   {"America/Santiago", "2026-09-06T12:00:00Z", "2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z", 23},
		"the day before no midnight":        {"America/Santiago", "2026-09-06T03:30:00Z", "2026-09-05T04:00:00Z", "2026-09-06T04:00:00Z", 24},
		"the last hour twice: 25":           {"America/Santiago", "2026-04-05T03:30:00Z", "2026-04-04T03:00:00Z", "2026-04-05T04:00:00Z", 25},
		"two midnights: 25, from the first": {"America/Havana", "2026-11-01T05:30:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", 25},
	} {
		z := zone(t, tc.zone)
		now := at(t, tc.now)
		start, end := admission.Day.Start(now, z), admission.Day.End(now, z)
		if !start.Equal(at(t, tc.start)) || !end.Equal(at(t, tc.end)) || end.Sub(start).Hours() != tc.hours {
			t.Errorf("%s: [%s, %s), want [%s, %s)", name, start, end, tc.start, tc.end)
		}
	}
}

func TestWindowsTileTheTime(t *testing.T) {
	t.Parallel()
	var zones []*time.Location
	for _, name := range []string{
		"UTC", "Europe/London", "Asia/Kathmandu", "America/New_York", "America/Santiago", "America/Havana", "Atlantic/Azores",
		"Africa/Cairo", "Asia/Beirut", "Australia/Lord_Howe", "Pacific/Chatham",
	} {
		zones = append(zones, zone(t, name))
	}
	tier.Check(t, func(t *rapid.T) {
		z := rapid.SampledFrom(zones).Draw(t, "zone")
		w := rapid.SampledFrom([]admission.Window{admission.Second, admission.Minute, admission.Hour, admission.Day}).Draw(t, "window")
		now := time.Unix(rapid.Int64Range(1_700_000_000, 1_900_000_000).Draw(t, "now"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanos"))
		start, end := w.Start(now, z), w.End(now, z)
		if start.After(now) || !end.After(now) {
			t.Fatalf("%s is not in [%s, %s)", now, start, end)
		}
		if !w.Start(end, z).Equal(end) || !w.Start(end.Add(-1), z).Equal(start) || !w.End(start, z).Equal(end) {
			t.Fatalf("window [%s, %s) is not adjacent to its neighbours", start, end)
		}
	})
}

// TestEveryDayOfTheseZonesHasItsHours checks every day, so that it meets every clock change.
func TestEveryDayOfTheseZonesHasItsHours(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Europe/London", "America/Santiago", "America/Havana", "Atlantic/Azores", "Africa/Cairo", "Asia/Beirut"} {
		z := zone(t, name)
		lengths := map[time.Duration]int{}
		start := admission.Day.Start(time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC), z)
		for start.Year() < 2029 {
			end := admission.Day.End(start, z)
			lengths[end.Sub(start)]++
			if !admission.Day.Start(end.Add(-1), z).Equal(start) {
				t.Fatalf("%s: the day from %s to %s does not contain its last moment", name, start.In(z), end.In(z))
			}
			start = end
		}
		if len(lengths) != 3 || lengths[23*time.Hour] < 3 || lengths[23*time.Hour] > 4 || lengths[25*time.Hour] < 3 || lengths[25*time.Hour] > 4 {
			t.Errorf("%s: %v", name, lengths)
		}
	}
}
