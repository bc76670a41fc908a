package main

import (
	"errors"
	"time"

	"github.com/spf13/pflag"

	"dispatcher/ledger"
)

// ambiguousFilter are the flags that say which ambiguous messages are meant.
type ambiguousFilter struct {
	all                   bool
	channel, lane, before string
}

func (f *ambiguousFilter) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.all, "all", false, "also those that ended without anybody knowing")
	flags.StringVar(&f.channel, "channel", "", "those of this channel only")
	flags.StringVar(&f.lane, "lane", "", "those of this lane only")
	flags.StringVar(&f.before, "before", "", "those that became ambiguous before this time, such as 2026-11-21T10:00:00Z")
}

// given reports whether the flags leave anything out, so that they may be settled together.
func (f *ambiguousFilter) given() bool { return f.channel != "" || f.lane != "" || f.before != "" }

func (f *ambiguousFilter) parse() (ledger.AmbiguousFilter, error) {
	parsed := ledger.AmbiguousFilter{Ended: f.all, Channel: f.channel, Lane: f.lane}
	if f.before == "" {
		return parsed, nil
	}
	var err error
	if parsed.Before, err = time.Parse(time.RFC3339, f.before); err != nil {
		return parsed, errors.New("--before: write a time with its zone, such as 2026-11-21T10:00:00Z")
	}
	return parsed, nil
}
