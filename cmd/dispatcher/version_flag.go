package main

import (
	"errors"
	"fmt"
	"strconv"
)

// versionFlag is a flag that names a routing version and may be left out.
type versionFlag struct {
	version int64
	given   bool
	least   int64 // 0 where "before the first" makes sense
}

// String is empty for a flag that was not given, so that help shows no default.
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
		return errors.New("that is no version: " + advice)
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
