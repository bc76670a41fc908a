package evidence

import (
	"context"
	"fmt"
	"time"

	"dispatcher/cmd/dispatcher/internal/audit"
	"dispatcher/cmd/dispatcher/internal/seal"
	"dispatcher/ledger"
)

// windowLeaves are the windows of limits that the log has, by the number of their leaf.
type windowLeaves map[int64]*ledger.Windows

// add adds a leaf if it is one of windows.
func (l windowLeaves) add(leaf *seal.Leaf) bool {
	w := ledger.WindowsOf(leaf.Seq, &leaf.Parts)
	if w != nil {
		l[leaf.Seq] = w
	}
	return w != nil
}

// windows compares the windows of limits that ended in full hours, minute by minute. It compares
// only minutes that a first seal of format 2 covers. Windows are dropped some time after they
// ended, the oldest first. So a minute with fewer windows than were sealed is reported only if
// older windows are still stored.
func (c *comparison) windows(
	ctx context.Context, begin, end time.Time, seals []ledger.Seal, leaves windowLeaves,
) error {
	err := c.Sealed.Windows(ctx, begin, end, func(now *ledger.Windows) error {
		was := leaves[now.Seq()]
		delete(leaves, now.Seq())
		switch {
		case was == nil && !coversWindows(seals, now.Ended):
			return nil
		case was == nil:
			c.reportWindows(now, seal.Inserted, windowCount(now.Count), "nothing: none was sealed")
			return nil
		case was.Hash == now.Hash && was.Count == now.Count:
			c.result.Windows += now.Count
			return nil
		}
		return c.differ(ctx, was, now.Count)
	})
	if err != nil {
		return err
	}
	for _, was := range leaves {
		if err := c.differ(ctx, was, 0); err != nil {
			return err
		}
	}
	return nil
}

// differ reports windows that are not as they were sealed, unless they were dropped as too old.
func (c *comparison) differ(ctx context.Context, was *ledger.Windows, now int64) error {
	if now < was.Count {
		older, err := c.Sealed.KeepsWindows(ctx, was)
		if err != nil {
			return err
		}
		if !older {
			c.result.WindowsDropped += was.Count - now
			return nil
		}
	}
	what := seal.Changed
	if now == 0 {
		what = seal.Deleted
	}
	c.reportWindows(was, what, windowCount(now)+" in limit_windows, or other values",
		"the "+windowCount(was.Count)+" that were sealed")
	return nil
}

func (c *comparison) reportWindows(w *ledger.Windows, what, stored, derived string) {
	c.Report([]audit.Mismatch{{
		ID: fmt.Sprintf("windows of a %s that ended at %s", w.Length,
			w.Ended.UTC().Format("2006-01-02 15:04Z07:00")),
		What: what, Stored: stored, Derived: derived,
	}})
}

func windowCount(n int64) string {
	if n == 1 {
		return "1 window"
	}
	return fmt.Sprintf("%d windows", n)
}

// coversWindows reports whether a seal has the windows that ended in a minute.
func coversWindows(seals []ledger.Seal, ended time.Time) bool {
	for i := range seals {
		l := &seals[i]
		if !l.Again && l.Format >= 2 && !ended.Before(l.From) && ended.Before(l.To) {
			return true
		}
	}
	return false
}
