package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// overFlag is a duration that may be given in days, as in routing documents.
type overFlag time.Duration

// String writes whole days as days.
func (f *overFlag) String() string {
	const day = 24 * time.Hour
	if d := time.Duration(*f); d > 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return time.Duration(*f).String()
}

// Type names the value in help.
func (f *overFlag) Type() string { return "duration" }

// Set reads the syntax of time.ParseDuration, or a whole number of days.
func (f *overFlag) Set(text string) error {
	const day = 24 * time.Hour
	wrong := errors.New("that is not a time span: write for example 90m, 12h or 2d")
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

// versionFlag is an optional flag that names a routing version.
type versionFlag struct {
	version int64
	given   bool
	least   int64 // 0 where "before the first" is meaningful
}

// String is empty for a flag that was not given, so that the help shows no default.
func (f *versionFlag) String() string {
	if !f.given {
		return ""
	}
	return strconv.FormatInt(f.version, 10)
}

// Type names the value in help.
func (f *versionFlag) Type() string { return "version" }

// Set reads the number of a version.
func (f *versionFlag) Set(text string) error {
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil || version < f.least {
		advice := "write a number of \"dispatcher routing history\""
		if f.least == 0 {
			advice += ", or 0 for an empty database"
		}
		return errors.New("that is not a version: " + advice)
	}
	f.version, f.given = version, true
	return nil
}

// versionNamed reads an argument that names a version.
func versionNamed(text string) (int64, error) {
	f := versionFlag{least: 1}
	if err := f.Set(text); err != nil {
		return 0, fmt.Errorf("%q: %w", text, err)
	}
	return f.version, nil
}
