// Package evidence compares what is stored with the log of hashes, for "audit verify".
// docs/evidence.md says what is in the log. The package only reads.
package evidence

import (
	"context"
	"fmt"
	"time"

	"dispatcher/cmd/dispatcher/internal/audit"
	"dispatcher/cmd/dispatcher/internal/seal"
	"dispatcher/ledger"
)

// Compared is the result of the comparison with the log.
type Compared struct {
	// Messages were compared. Unsealed are not in the log yet, or were received before it began.
	Messages int `json:"messages"`
	Unsealed int `json:"unsealed"`
	// Closings of the day were compared, with its figures. The newest may be among Unsealed.
	Closings int `json:"closings"`
	// TopUps, Reconciliations, OptOuts and Actions made since the beginning of the day were compared.
	// OptOuts are beginnings and ends of opt-outs, Actions what operators and guards did. Those of the
	// day may be among Unsealed.
	TopUps          int `json:"top_ups"`
	Reconciliations int `json:"reconciliations"`
	OptOuts         int `json:"opt_outs"`
	Actions         int `json:"actions"`
	// Windows of limits that ended on the day were compared. WindowsDropped were sealed, but had been
	// dropped as too old before they could be compared.
	Windows        int64 `json:"windows"`
	WindowsDropped int64 `json:"windows_dropped"`
	// Definitions of views and functions were compared. DefinitionChanges are those that were sealed
	// since the day began and that a migration or another version of PostgreSQL explains.
	Definitions       int                `json:"definitions"`
	DefinitionChanges []DefinitionChange `json:"definition_changes"`
	// Checkpoint is the newest checkpoint that covers the day.
	Checkpoint string `json:"checkpoint"`
}

// Kept is a checkpoint that was kept elsewhere, in a file.
type Kept struct {
	seal.Checkpoint
	File string
}

// Config says what to compare.
type Config struct {
	Seals  *ledger.Seals
	Sealed *ledger.Sealed
	Keys   *seal.Keys
	Kept   *Kept // nil for none
	Day    ledger.BusinessDay
	Now    time.Time // by the database's clock
	// Report is called with differences, and Done with how many hours have been compared.
	Report func([]audit.Mismatch)
	Done   func(hours int64)
}

// sealedWithin is how soon messages are sealed at the latest. The dispatcher seals them when they
// are some minutes old.
const sealedWithin = time.Hour

// comparison is the state of Compare.
type comparison struct {
	Config
	result Compared

	began       time.Time // when the first messages of the log were received
	due         time.Time // messages received before it must be sealed
	overdue     int       // those that are not
	first, last int64     // numbers of the seals of messages of the day; 0 for none
	newest      int64     // number of the newest seal that was checked
	format2     bool      // a seal of the day has format 2 and is more than an hour old
}

// hours compares the day in steps that each begin at an hour with seals. So it holds the leaves of
// one hour, and hours without seals cost nothing.
func (c *comparison) hours(ctx context.Context) error {
	from := c.Day.From.UTC().Truncate(time.Hour)
	for from.Before(c.Day.To) {
		next, err := c.Sealed.NextFrom(ctx, from.Add(time.Hour))
		if err != nil {
			return err
		}
		to := next.UTC().Truncate(time.Hour)
		if next.IsZero() || to.After(c.Day.To) {
			to = c.Day.To.Add(time.Hour - 1).UTC().Truncate(time.Hour)
		}
		if err := c.between(ctx, from, to); err != nil {
			return err
		}
		c.Done(int64(to.Sub(c.Day.From) / time.Hour))
		from = to
	}
	return nil
}

// Compare compares the messages, versions and windows of a day with the log, hour by hour, then its
// figures, the finance rows made since it began, and the definitions of views and functions. It
// reports each difference.
func Compare(ctx context.Context, config Config) (Compared, error) {
	c := comparison{Config: config, due: config.Now.Add(-sealedWithin)}
	c.result.DefinitionChanges = []DefinitionChange{}
	err := c.run(ctx)
	return c.result, err
}

func (c *comparison) run(ctx context.Context) error {
	if err := c.begins(ctx); err != nil {
		return err
	}
	kept, err := c.kept(ctx)
	if err != nil {
		return err
	}
	if err := c.hours(ctx); err != nil {
		return err
	}
	if c.overdue > 0 {
		c.Report([]audit.Mismatch{{
			What: WhatCheckpoint, Stored: fmt.Sprintf("a log without %d messages of the day", c.overdue),
			Derived: "one that has them: they are more than an hour old",
		}})
	}
	if kept != nil && c.first > 0 {
		if err := c.tied(ctx, kept); err != nil {
			return err
		}
	}
	if err := c.later(ctx); err != nil {
		return err
	}
	return c.definitions(ctx)
}
