package evidence

import (
	"context"
	"fmt"

	"dispatcher/cmd/dispatcher/internal/audit"
	"dispatcher/cmd/dispatcher/internal/seal"
	"dispatcher/ledger"
)

// later compares with the log the closings of a day, with its figures, and all finance rows made
// since the day began. Their seals are made after the day, so hours does not read them. A seal that
// was deleted is found because its number is missing.
func (c *comparison) later(ctx context.Context) error {
	missing, err := c.Seals.Missing(ctx, c.Day.From)
	if err != nil {
		return err
	}
	if missing > 0 {
		c.Report([]audit.Mismatch{{
			What: WhatCheckpoint, Stored: "a log that goes on after the day",
			Derived: fmt.Sprintf("%d more seals", missing),
		}})
	}
	leaves := leavesOf{}
	var closings, finance ledger.Seal // From and To of what the seals cover, and At of the last one
	finance.From = c.Day.From
	err = c.Seals.EachOfClosings(ctx, c.Day.From, func(s *ledger.Seal) error {
		closings.To, closings.At = s.To, s.At
		if s.FinanceFrom != nil {
			if finance.To.IsZero() {
				finance.From = *s.FinanceFrom
			}
			finance.To, finance.At = s.To, s.At
		}
		all, err := seal.ReadLeaves(s.Leaves)
		ours := false
		for i := range all {
			date, _, closing := ledger.ClosingOf(all[i].Seq)
			kind, _ := ledger.FinanceOf(all[i].Seq)
			if closing && date == c.Day.Date || kind != nil {
				leaves.add(&all[i])
				ours = true
			}
		}
		if ours {
			c.checkSeal(ctx, s)
		}
		return err
	})
	if err == nil {
		err = c.closings(ctx, &closings, leaves)
	}
	if err == nil {
		err = c.finance(ctx, &finance, leaves)
	}
	if err != nil {
		return err
	}
	c.reportGone(leaves)
	return nil
}

// closings compares the closings of a day, and its figures, with their leaves. It removes these
// from leaves, so that those of deleted rows are left. covered has the end of what is sealed, and
// the time of the last seal.
func (c *comparison) closings(
	ctx context.Context, covered *ledger.Seal, leaves leavesOf,
) error {
	return c.Seals.ClosingsOf(ctx, c.Day.Date, func(e *ledger.Evidence) error {
		known := leaves[e.Seq]
		figuresAlone := e.ReceivedAt.IsZero()
		if figuresAlone && len(known) > 0 {
			return nil // Its leaves are left, so it is reported as deleted.
		}
		delete(leaves, e.Seq)
		if len(known) == 0 && !figuresAlone && !e.ReceivedAt.Before(covered.To) {
			c.result.Unsealed++
			return nil
		}
		c.result.Closings++
		c.Report(mismatchesOf(seal.Verify(known, e, covered.At)))
		return nil
	})
}

// finance does the same as closings for the finance rows made since covered.From.
func (c *comparison) finance(
	ctx context.Context, covered *ledger.Seal, leaves leavesOf,
) error {
	return c.Seals.Finance(ctx, covered.From, func(e *ledger.Evidence) error {
		known := leaves[e.Seq]
		delete(leaves, e.Seq)
		if len(known) == 0 && !e.ReceivedAt.Before(covered.To) {
			if e.ReceivedAt.Before(c.Day.To) {
				c.result.Unsealed++
			}
			return nil
		}
		switch kind, _ := ledger.FinanceOf(e.Seq); kind {
		case ledger.TopUpKind:
			c.result.TopUps++
		case ledger.ReconciliationKind:
			c.result.Reconciliations++
		case ledger.OptOutKind, ledger.OptOutEndKind:
			c.result.OptOuts++
		default:
			c.result.Actions++
		}
		c.Report(mismatchesOf(seal.Verify(known, e, covered.At)))
		return nil
	})
}
