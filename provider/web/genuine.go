package web

import (
	"crypto/hmac"
	"fmt"
	"strconv"
	"time"

	"dispatcher/provider"
)

// Tolerance is how far the time in a signed callback may be ahead of ours, and behind it for vendors that sign each attempt
// anew: as much as clocks and a slow way make up.
const Tolerance = 5 * time.Minute

// RetryTolerance is Tolerance into the past for vendors that call again for so long and do not say whether they sign anew: if
// they do not, a shorter one would refuse what an outage here has held up. Within it a repeated callback is
// recognised by what marks it, and otherwise by the database.
func RetryTolerance(after time.Duration) time.Duration { return after + time.Hour }

// SignedByAny reports whether one of the secrets that are valid at once made a signature. All of them are tried, each in
// constant time, so that nothing shows which one it was.
func SignedByAny[S any](secrets []S, given []byte, sign func(secret S) []byte) bool {
	genuine := false
	for _, secret := range secrets {
		genuine = hmac.Equal(given, sign(secret)) || genuine
	}
	return genuine
}

// CheckStamp checks the time of a signed callback, in seconds since 1970: ErrMalformed when it is no number, and
// otherwise as Fresh.
func CheckStamp(stamp string, now time.Time, late time.Duration) error {
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return fmt.Errorf("its time is no number: %w", provider.ErrMalformed)
	}
	return CheckAge(time.Unix(seconds, 0), now, late)
}

// CheckAge is ErrStale for a time that is further behind now than late, or further ahead than Tolerance.
func CheckAge(at, now time.Time, late time.Duration) error {
	if age := now.Sub(at); age > late || age < -Tolerance {
		return provider.ErrStale
	}
	return nil
}
