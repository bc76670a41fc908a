package evidence

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	"dispatcher/cmd/dispatcher/internal/audit"
	"dispatcher/ledger"
)

// WhatCheckpoint means that the log itself differs from what was signed.
const WhatCheckpoint = "checkpoint"

// begins reads where the log begins. Older messages are in no seal.
func (c *comparison) begins(ctx context.Context) error {
	first, err := c.Seals.Number(ctx, 1)
	switch {
	case err != nil:
		return err
	case first != nil:
		c.began = first.From
		return nil
	}
	newest, err := c.Seals.Checkpoint(ctx)
	if newest != "" {
		c.Report([]audit.Mismatch{{
			What: WhatCheckpoint, Stored: "a log without its beginning", Derived: "seal 1",
		}})
	}
	return err
}

// kept returns the seal whose checkpoint was kept. If the log does not have it, kept reports that
// and returns nil.
func (c *comparison) kept(ctx context.Context) (*ledger.Seal, error) {
	if c.Kept == nil {
		return nil, nil //nolint:nilnil // None was kept.
	}
	want := c.Kept.Checkpoint
	s, err := c.Seals.OfSize(ctx, int64(want.Size)) //nolint:gosec // It was signed.
	if err != nil {
		return nil, err
	}
	if s != nil {
		if has, err := c.Keys.Open(s.Checkpoint); err == nil && bytes.Equal(has.Root, want.Root) {
			return s, nil
		}
	}
	c.Report([]audit.Mismatch{{
		What: WhatCheckpoint, Stored: "a log without it",
		Derived: fmt.Sprintf("the checkpoint of %d leaves in %s", want.Size, c.Kept.File),
	}})
	return nil, nil //nolint:nilnil // There is none.
}

// tied checks that each seal between those of the day and the kept one follows the one before it.
// Otherwise somebody with the signer key could replace the seals of the day and leave the rest of
// the log. Seals whose leaves were dropped with their messages are not checked: their messages are
// older than the day.
func (c *comparison) tied(ctx context.Context, kept *ledger.Seal) error {
	from, to := min(c.first, kept.Number), max(c.last, kept.Number)
	before, err := c.Seals.Number(ctx, from)
	if err != nil || before == nil {
		return err
	}
	broken := false
	return c.Seals.Between(ctx, from, to, func(s *ledger.Seal) error {
		dropped := len(s.Leaves) == 0 && s.Size > before.Size && !s.To.After(c.Day.From)
		if err := c.Keys.Check(before, s); err != nil && !dropped && !broken {
			broken = true
			c.Report([]audit.Mismatch{{
				What: WhatCheckpoint, Stored: fmt.Sprintf("a log in which the checkpoint of %d leaves "+
					"does not follow from the seals of the day", kept.Size),
				Derived: err.Error(),
			}})
		}
		one := *s
		before = &one
		return nil
	})
}

// checkSeal reports a seal that is not as it was signed, or does not follow the one before it.
func (c *comparison) checkSeal(ctx context.Context, s *ledger.Seal) {
	if err := c.follows(ctx, s); err != nil {
		c.Report([]audit.Mismatch{{
			What: WhatCheckpoint, Stored: "seal " + strconv.FormatInt(s.Number, 10),
			Derived: err.Error(),
		}})
	}
	if s.Number > c.newest {
		c.newest, c.result.Checkpoint = s.Number, s.Checkpoint
	}
}

// follows returns an error if a seal is not as it was signed, or does not follow the one before it.
func (c *comparison) follows(ctx context.Context, s *ledger.Seal) error {
	before, err := c.Seals.Number(ctx, s.Number-1)
	if err != nil {
		return err
	}
	if before == nil && s.Number > 1 {
		return fmt.Errorf("seal %d is missing", s.Number-1)
	}
	if outOfOrder(before, s) {
		return fmt.Errorf("seal %d has a time at which it was not made", s.Number)
	}
	return c.Keys.Check(before, s)
}

// outOfOrder reports whether the time of a seal is impossible: a seal is made after the period that
// it covers, and after the previous seal. A minute is allowed for clocks that were set back.
func outOfOrder(before, s *ledger.Seal) bool {
	if s.At.Before(s.To) {
		return true
	}
	return before != nil && (before.At.Before(before.To) ||
		s.At.Before(before.At.Add(-time.Minute)))
}
