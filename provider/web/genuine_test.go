package web_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/web"
)

func TestStampsAreFreshForAsLongAsTheVendorNeeds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for age, want := range map[time.Duration]error{
		0: nil, 5 * time.Minute: nil, -5 * time.Minute: nil,
		5*time.Minute + time.Second: provider.ErrStale, -5*time.Minute - time.Second: provider.ErrStale, 400 * 24 * time.Hour: provider.ErrStale,
	} {
		if err := web.CheckStamp(strconv.FormatInt(now.Add(-age).Unix(), 10), now, web.Tolerance); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%s old: %v, want %v", age, err, want)
		}
	}
	for age, want := range map[time.Duration]error{25 * time.Hour: nil, 25*time.Hour + time.Second: provider.ErrStale, -5*time.Minute - time.Second: provider.ErrStale} {
		if err := web.CheckAge(now.Add(-age), now, web.RetryTolerance(24*time.Hour)); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("retried, %s old: %v, want %v", age, err, want)
		}
	}
	for stamp, want := range map[string]error{
		"": provider.ErrMalformed, "today": provider.ErrMalformed, "1e9": provider.ErrMalformed, "99999999999999999999": provider.ErrMalformed,
		"9223372036854775807": provider.ErrStale, "-9223372036854775808": provider.ErrStale, "0": provider.ErrStale,
	} {
		if err := web.CheckStamp(stamp, now, web.Tolerance); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", stamp, err, want)
		}
	}
}

func TestASignatureIsThatOfAnyLiveSecret(t *testing.T) {
	t.Parallel()
	sign := func(secret string) []byte { return []byte("signed by " + secret) }
	for given, want := range map[string]bool{"signed by a": true, "signed by b": true, "signed by c": false, "": false, "signed by ": false} {
		if got := web.SignedByAny([]string{"a", "b"}, []byte(given), sign); got != want {
			t.Errorf("%q: %t", given, got)
		}
	}
	if web.SignedByAny(nil, nil, sign) {
		t.Error("nobody has signed it")
	}
}
