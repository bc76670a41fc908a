package control

import "time"

// TimeOrAgo reads what an operator writes for a bound: a time with its zone, or a duration before
// now.
func TimeOrAgo(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, refusef("write a time with its zone, such as 2026-11-21T10:00:00Z, or how long " +
			"ago it was, such as 2h")
	}
	return at, nil
}
