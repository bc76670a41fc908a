package pdu

import (
	"testing"
	"time"

	"pgregory.net/rapid"
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

func TestParseTimeReadsBothForms(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		at := now.Add(
			time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "tenths")) * 100 * time.Millisecond)
		if got, err := ParseTime(FormatTime(at), now); err != nil || !got.Equal(at) {
			t.Fatalf("absolute %v: %v, %v", at, got, err)
		}
		d := time.Duration(rapid.Int64Range(1, 1e8).Draw(t, "seconds")) * time.Second
		if got, err := ParseTime(FormatPeriod(d), now); err != nil || got.Sub(now) != d {
			t.Fatalf("relative %v: %v, %v", d, got.Sub(now), err)
		}
	})
	if got, err := ParseTime("260102030405004-", now); err != nil ||
		!got.Equal(now.Add(time.Hour)) {
		t.Errorf("an hour behind UTC: %v, %v", got, err)
	}
	for _, bad := range []string{"", "2601", "26010203040500x+", "260102030405000x"} {
		if _, err := ParseTime(bad, now); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
