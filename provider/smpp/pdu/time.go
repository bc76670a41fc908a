package pdu

import (
	"fmt"
	"time"
)

// FormatTime writes t as an absolute time in UTC: "YYMMDDhhmmsstnnp" with tenths of
// a second and no offset (section 7.1.1.1).
func FormatTime(t time.Time) string {
	buf := t.UTC().AppendFormat(make([]byte, 0, maxTime), "060102150405")
	tenths := byte(t.Nanosecond() / int(100*time.Millisecond))
	return string(append(buf, '0'+tenths, '0', '0', '+'))
}

// FormatPeriod writes d as a relative time: "YYMMDDhhmmss000R" (section 7.1.1.2). It
// is rounded down to seconds, months count 30 days and years 12 months, and d is
// bounded to 1 second below and 99 years above.
func FormatPeriod(d time.Duration) string {
	const day = 24 * time.Hour
	d = min(max(d, time.Second), 99*360*day)
	days := int(d / day)
	rest := d % day
	return fmt.Sprintf("%02d%02d%02d%02d%02d%02d000R", days/360, days%360/30, days%30,
		int(rest/time.Hour), int(rest%time.Hour/time.Minute), int(rest%time.Minute/time.Second))
}

// ParseTime reads what FormatTime or FormatPeriod, or a peer, wrote. A relative time
// counts from now. The offset of an absolute time is in quarter hours.
func ParseTime(s string, now time.Time) (time.Time, error) {
	if len(s) != maxTime-1 {
		return time.Time{}, &FieldError{"time", "has not 16 characters"}
	}
	var n [8]int
	for i, at := range [...]int{0, 2, 4, 6, 8, 10, 12, 13} {
		width := 2
		if at == 12 {
			width = 1
		}
		v, ok := digits(s[at : at+width])
		if !ok {
			return time.Time{}, &FieldError{"time", "holds something else than digits"}
		}
		n[i] = v
	}
	offset := time.Duration(n[7]) * 15 * time.Minute
	switch s[15] {
	case 'R':
		days := n[0]*360 + n[1]*30 + n[2]
		return now.Add(time.Duration(days*24+n[3])*time.Hour + time.Duration(n[4])*time.Minute + time.Duration(n[5])*time.Second), nil
	case '-':
		offset = -offset
	case '+':
	default:
		return time.Time{}, &FieldError{"time", "ends in none of +, - and R"}
	}
	t := time.Date(2000+n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], n[6]*int(100*time.Millisecond), time.UTC)
	return t.Add(-offset), nil
}

func digits(s string) (int, bool) {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}
