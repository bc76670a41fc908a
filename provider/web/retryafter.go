package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter reads the header of that name (RFC 9110 section 10.2.3), in seconds or as a date; zero when
// there is none that can be read, or when it has passed.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if seconds > 0 && seconds < 1e6 {
			return time.Duration(seconds * float64(time.Second))
		}
		return 0
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
