package evidence

import (
	"context"
	"slices"
	"time"

	"dispatcher/cmd/dispatcher/internal/seal"
	"dispatcher/ledger"
)

// leavesOf are leaves of the log by the number of their row, oldest first.
type leavesOf map[int64][]seal.Leaf

func (l leavesOf) add(leaf *seal.Leaf) { l[leaf.Seq] = append(l[leaf.Seq], *leaf) }

// between compares the messages, the versions and the windows of limits of full hours. No seal
// spans two hours.
func (c *comparison) between(ctx context.Context, begin, end time.Time) error {
	leaves := leavesOf{}
	limits := windowLeaves{}
	var seals []ledger.Seal
	var from, to time.Time // what the first seals of messages cover
	err := c.Seals.Each(ctx, begin, end, func(s *ledger.Seal) error {
		if !s.Again {
			if from.IsZero() {
				from = s.From
			}
			to = s.To
		}
		if c.first == 0 {
			c.first = s.Number
		}
		c.first, c.last = min(c.first, s.Number), max(c.last, s.Number)
		c.checkSeal(ctx, s)
		c.format2 = c.format2 || s.Format >= 2 && s.At.Before(c.due)
		seals = append(seals, ledger.Seal{
			From: s.From, To: s.To, At: s.At, Again: s.Again, Format: s.Format,
		})
		all, err := seal.ReadLeaves(s.Leaves)
		for i := range all {
			if !limits.add(&all[i]) {
				leaves.add(&all[i])
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	err = c.Seals.Evidence(ctx, begin, end, func(e *ledger.Evidence) error {
		known := leaves[e.Seq]
		delete(leaves, e.Seq)
		if len(known) == 0 && (e.ReceivedAt.Before(from) || !e.ReceivedAt.Before(to)) {
			c.result.Unsealed++
			if !e.ReceivedAt.Before(c.began) && e.ReceivedAt.Before(c.due) {
				c.overdue++
			}
			return nil
		}
		c.result.Messages++
		return c.message(ctx, known, e, lastSeal(seals, e.ReceivedAt))
	})
	if err != nil {
		return err
	}
	c.reportGone(leaves)
	return c.windows(ctx, begin, end, seals, limits)
}

// message compares a message with its leaves, in the format of its last seal. If the provider used
// the reference of the message again for a later one, the receipts under it are no longer those
// that were sealed, so PartLater is not compared.
func (c *comparison) message(
	ctx context.Context, known []seal.Leaf, e *ledger.Evidence, s *ledger.Seal,
) error {
	if s.Format < 2 {
		e.Parts[ledger.PartLater] = e.Later1
	}
	faults := seal.Verify(known, e, s.At)
	later := func(f seal.Fault) bool { return f.Part == ledger.PartNames[ledger.PartLater] }
	if slices.ContainsFunc(faults, later) {
		reused, err := c.Sealed.Reused(ctx, e.Seq)
		if err != nil {
			return err
		}
		if reused {
			faults = slices.DeleteFunc(faults, later)
		}
	}
	c.Report(mismatchesOf(faults))
	return nil
}

// lastSeal is the last seal of the messages that were received at an instant; an empty one for
// none.
func lastSeal(seals []ledger.Seal, received time.Time) *ledger.Seal {
	last := &ledger.Seal{}
	for i := range seals {
		l := &seals[i]
		if !received.Before(l.From) && received.Before(l.To) && l.At.After(last.At) {
			last = l
		}
	}
	return last
}

// reportGone reports rows that have leaves and are not stored.
func (c *comparison) reportGone(leaves leavesOf) {
	for _, gone := range leaves {
		c.Report(mismatchesOf(seal.Verify(gone, nil, time.Time{})))
	}
}
