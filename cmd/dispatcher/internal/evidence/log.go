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
	look, err := c.Seals.OfSize(ctx, int64(want.Size)) //nolint:gosec // It was signed.
	if err != nil {
		return nil, err
	}
	if look != nil {
		if has, err := c.Keys.Open(look.Checkpoint); err == nil && bytes.Equal(has.Root, want.Root) {
			return look, nil
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
	return c.Seals.Between(ctx, from, to, func(look *ledger.Seal) error {
		dropped := len(look.Leaves) == 0 && look.Size > before.Size && !look.To.After(c.Day.From)
		if err := c.Keys.Check(before, look); err != nil && !dropped && !broken {
			broken = true
			c.Report([]audit.Mismatch{{
				What: WhatCheckpoint, Stored: fmt.Sprintf("a log in which the checkpoint of %d leaves "+
					"does not follow from the looks of the day", kept.Size),
				Derived: err.Error(),
			}})
		}
		one := *look
		before = &one
		return nil
	})
}

// checkLook reports a seal that is not as it was signed, or does not follow the one before it.
func (c *comparison) checkLook(ctx context.Context, look *ledger.Seal) {
	if err := c.follows(ctx, look); err != nil {
		c.Report([]audit.Mismatch{{
			What: WhatCheckpoint, Stored: "seal " + strconv.FormatInt(look.Number, 10),
			Derived: err.Error(),
		}})
	}
	if look.Number > c.newest {
		c.newest, c.result.Checkpoint = look.Number, look.Checkpoint
	}
}

// follows returns an error if a seal is not as it was signed, or does not follow the one before it.
func (c *comparison) follows(ctx context.Context, look *ledger.Seal) error {
	before, err := c.Seals.Number(ctx, look.Number-1)
	if err != nil {
		return err
	}
	if before == nil && look.Number > 1 {
		return fmt.Errorf("seal %d is missing", look.Number-1)
	}
	if outOfOrder(before, look) {
		return fmt.Errorf("seal %d has a time at which it was not made", look.Number)
	}
	return c.Keys.Check(before, look)
}

// outOfOrder reports whether the time of a seal is impossible: a seal is made after the period that
// it covers, and after the previous seal. A minute is allowed for clocks that were set back.
func outOfOrder(before, look *ledger.Seal) bool {
	if look.At.Before(look.To) {
		return true
	}
	return before != nil && (before.At.Before(before.To) ||
		look.At.Before(before.At.Add(-time.Minute)))
}
