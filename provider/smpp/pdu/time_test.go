package pdu

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
)

func TestTimesAreWrittenAsTheStandardWantsThem(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 11, 30, 5, 320e6, time.FixedZone("", 3600))
	if got := FormatTime(at); got != "261121103005300+" {
		t.Errorf("absolute %q", got)
	}
	for d, want := range map[time.Duration]string{
		0:                               "000000000001000R",
		90 * time.Minute:                "000000013000000R",
		31*24*time.Hour + 2*time.Second: "000101000002000R",
		400 * 24 * time.Hour:            "010110000000000R",
		1 << 62:                         "990000000000000R",
	} {
		if got := FormatPeriod(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestTimesReadBackUnchanged(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tier.Check(t, func(t *rapid.T) {
		at := start.Add(
			time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "tenths")) * 100 * time.Millisecond)
		text := FormatTime(at)
		got, err := time.Parse("060102150405.0 00+", text[:12]+"."+text[12:13]+" "+text[13:])
		if err != nil || !got.Equal(at) {
			t.Fatalf("absolute %v is %q, which reads %v, %v", at, text, got, err)
		}
		d := time.Duration(rapid.Int64Range(1, 1e8).Draw(t, "seconds")) * time.Second
		var years, months, days, hours, minutes, seconds int64
		_, err = fmt.Sscanf(FormatPeriod(d), "%02d%02d%02d%02d%02d%02d000R",
			&years, &months, &days, &hours, &minutes, &seconds)
		days += 360*years + 30*months
		left := time.Duration(seconds+60*(minutes+60*(hours+24*days))) * time.Second
		if err != nil || left != d {
			t.Fatalf("relative %v is %q, which reads %v, %v", d, FormatPeriod(d), left, err)
		}
	})
}
