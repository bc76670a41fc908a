package main

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// overFlag is a time span that may be written in days, as routing documents write them.
type overFlag time.Duration

// String writes whole days as such.
func (f *overFlag) String() string {
	const day = 24 * time.Hour
	if d := time.Duration(*f); d > 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return time.Duration(*f).String()
}

// Type names the value in help.
func (f *overFlag) Type() string { return "duration" }

// Set reads what time.ParseDuration does, or a whole number of days.
func (f *overFlag) Set(text string) error {
	const day = 24 * time.Hour
	wrong := errors.New("that is no time span: write for example 90m, 12h or 2d")
	if digits, days := strings.CutSuffix(text, "d"); days {
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/int64(day) {
			return wrong
		}
		*f = overFlag(time.Duration(n) * day)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return wrong
	}
	*f = overFlag(d)
	return nil
}
