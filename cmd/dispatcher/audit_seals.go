package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dispatcher/cmd/dispatcher/internal/audit"
	"dispatcher/cmd/dispatcher/internal/seal"
	"dispatcher/config"
	"dispatcher/ledger"
)

// sealed is the result of the comparison with the log.
type sealed struct {
	// Messages were compared. Unsealed are not in the log yet, or were received before it began.
	Messages int `json:"messages"`
	Unsealed int `json:"unsealed"`
	// Closings of the day were compared, with its figures. The newest may be among Unsealed.
	Closings int `json:"closings"`
	// TopUps, Reconciliations and Actions made since the beginning of the day were compared. Actions
	// are what operators and guards did. Those of the day may be among Unsealed.
	TopUps          int `json:"top_ups"`
	Reconciliations int `json:"reconciliations"`
	Actions         int `json:"actions"`
	// Checkpoint is the newest checkpoint that covers the day.
	Checkpoint string `json:"checkpoint"`

	began       time.Time // when the first messages of the log were received
	due         time.Time // messages received before it must be sealed
	overdue     int       // those that are not
	first, last int64     // numbers of the looks at messages of the day; 0 for none
}

// sealedWithin is how soon messages are sealed at the latest. The dispatcher seals them when they
// are some minutes old.
const sealedWithin = time.Hour

// whatCheckpoint: the log itself differs from what was signed.
const whatCheckpoint = "checkpoint"

// verifySeals compares the messages and versions of a day with the log, hour by hour, then its
// figures and the finance rows made since it began, and reports each difference. It calls done
// after each hour.
func verifySeals(
	ctx context.Context, store *ledger.Seals, keyFile, keptFile string, day ledger.BusinessDay,
	now time.Time, report func([]audit.Mismatch), done func(hours int64),
) (s sealed, err error) {
	lines, err := config.SealKeys(keyFile)
	if err != nil {
		return s, usage(err)
	}
	keys, err := seal.ParseKeys(keyFile, lines)
	if err != nil {
		return s, usage(err)
	}
	if err := s.begins(ctx, store, now, report); err != nil {
		return s, err
	}
	var kept *ledger.Seal
	if keptFile != "" {
		if kept, err = lookOf(ctx, store, keys, keptFile, report); err != nil {
			return s, err
		}
	}
	hour := day.From.UTC().Truncate(time.Hour)
	for ; hour.Before(day.To); hour = hour.Add(time.Hour) {
		if err := s.hour(ctx, store, keys, hour, report); err != nil {
			return s, err
		}
		done(int64(hour.Sub(day.From)/time.Hour) + 1)
	}
	if s.overdue > 0 {
		report([]audit.Mismatch{{
			What: whatCheckpoint, Stored: fmt.Sprintf("a log without %d messages of the day", s.overdue),
			Derived: "one that has them: they are more than an hour old",
		}})
	}
	if kept != nil && s.first > 0 {
		if err := s.tied(ctx, store, keys, kept, day, report); err != nil {
			return s, err
		}
	}
	return s, s.later(ctx, store, keys, day, report)
}

// begins reads where the log begins. Messages that are older than that are in no look of it.
func (s *sealed) begins(
	ctx context.Context, store *ledger.Seals, now time.Time, report func([]audit.Mismatch),
) error {
	s.due = now.Add(-sealedWithin)
	first, err := store.Number(ctx, 1)
	switch {
	case err != nil:
		return err
	case first != nil:
		s.began = first.From
		return nil
	}
	newest, err := store.Checkpoint(ctx)
	if newest != "" {
		report([]audit.Mismatch{{
			What: whatCheckpoint, Stored: "a log without its beginning", Derived: "seal 1",
		}})
	}
	return err
}

// lookOf returns the look whose checkpoint was kept in a file. If the log has none, it reports that
// and returns nil.
func lookOf(
	ctx context.Context, store *ledger.Seals, keys *seal.Keys, path string,
	report func([]audit.Mismatch),
) (*ledger.Seal, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usage(err)
	}
	want, err := keys.Open(string(text))
	if err != nil {
		return nil, usage(fmt.Errorf("%s: %w", path, err))
	}
	look, err := store.OfSize(ctx, int64(want.Size)) //nolint:gosec // It was signed.
	if err != nil {
		return nil, err
	}
	if look != nil {
		if has, err := keys.Open(look.Checkpoint); err == nil && bytes.Equal(has.Root, want.Root) {
			return look, nil
		}
	}
	report([]audit.Mismatch{{
		What: whatCheckpoint, Stored: "a log without it",
		Derived: fmt.Sprintf("the checkpoint of %d leaves in %s", want.Size, path),
	}})
	return nil, nil //nolint:nilnil // There is none.
}

// tied checks that each look between those of the day and the one whose checkpoint was kept follows
// the one before it. So whoever has the signer key cannot write the looks of the day anew and leave
// the rest of the log. A look whose leaves were dropped with their messages, which are older than
// the day, cannot be followed.
func (s *sealed) tied(
	ctx context.Context, store *ledger.Seals, keys *seal.Keys, kept *ledger.Seal,
	day ledger.BusinessDay, report func([]audit.Mismatch),
) error {
	from, to := min(s.first, kept.Number), max(s.last, kept.Number)
	before, err := store.Number(ctx, from)
	if err != nil || before == nil {
		return err
	}
	broken := false
	return store.Between(ctx, from, to, func(look *ledger.Seal) error {
		dropped := len(look.Leaves) == 0 && look.Size > before.Size && !look.To.After(day.From)
		if err := keys.Check(before, look); err != nil && !dropped && !broken {
			broken = true
			report([]audit.Mismatch{{
				What: whatCheckpoint, Stored: fmt.Sprintf("a log in which the checkpoint of %d leaves "+
					"does not follow from the looks of the day", kept.Size),
				Derived: err.Error(),
			}})
		}
		one := *look
		before = &one
		return nil
	})
}

// hour compares the messages and versions of an hour. Looks of the log do not span two hours.
func (s *sealed) hour(
	ctx context.Context, store *ledger.Seals, keys *seal.Keys, hour time.Time,
	report func([]audit.Mismatch),
) error {
	leaves := map[int64][]seal.Leaf{}
	var sealedFrom, sealedTo time.Time
	var looks []ledger.Seal // without leaves
	err := store.Each(ctx, hour, hour.Add(time.Hour), func(look *ledger.Seal) error {
		if !look.Again {
			if sealedFrom.IsZero() {
				sealedFrom = look.From
			}
			sealedTo = look.To
		}
		if s.first == 0 {
			s.first = look.Number
		}
		s.first, s.last = min(s.first, look.Number), max(s.last, look.Number)
		s.checkLook(ctx, store, keys, look, report)
		looks = append(looks, ledger.Seal{From: look.From, To: look.To, At: look.At})
		all, err := seal.ReadLeaves(look.Leaves)
		for _, leaf := range all {
			leaves[leaf.Seq] = append(leaves[leaf.Seq], leaf)
		}
		return err
	})
	if err != nil {
		return err
	}
	err = store.Evidence(ctx, hour, hour.Add(time.Hour), func(e *ledger.Evidence) error {
		known := leaves[e.Seq]
		delete(leaves, e.Seq)
		if len(known) == 0 && (e.ReceivedAt.Before(sealedFrom) || !e.ReceivedAt.Before(sealedTo)) {
			s.Unsealed++
			if !e.ReceivedAt.Before(s.began) && e.ReceivedAt.Before(s.due) {
				s.overdue++
			}
			return nil
		}
		s.Messages++
		report(mismatchesOf(seal.Verify(known, e, lastLook(looks, e.ReceivedAt))))
		return nil
	})
	for _, gone := range leaves {
		report(mismatchesOf(seal.Verify(gone, nil, time.Time{})))
	}
	return err
}

// later compares with the log the closings of a day, with its figures, and all finance rows made
// since the day began. Looks at them are made after the day, so that one which is gone is no look
// of the hours above: its number is missing.
func (s *sealed) later(
	ctx context.Context, store *ledger.Seals, keys *seal.Keys, day ledger.BusinessDay,
	report func([]audit.Mismatch),
) error {
	missing, err := store.Missing(ctx, day.From)
	if err != nil {
		return err
	}
	if missing > 0 {
		report([]audit.Mismatch{{
			What: whatCheckpoint, Stored: "a log that goes on after the day",
			Derived: fmt.Sprintf("%d more seals", missing),
		}})
	}
	leaves := map[int64][]seal.Leaf{}
	var closings, finance ledger.Seal // From and To of what the looks cover, and At of the last one
	finance.From = day.From
	err = store.EachOfClosings(ctx, day.From, func(look *ledger.Seal) error {
		closings.To, closings.At = look.To, look.At
		if look.FinanceFrom != nil {
			if finance.To.IsZero() {
				finance.From = *look.FinanceFrom
			}
			finance.To, finance.At = look.To, look.At
		}
		all, err := seal.ReadLeaves(look.Leaves)
		ours := false
		for _, leaf := range all {
			date, _, closing := ledger.ClosingOf(leaf.Seq)
			kind, _ := ledger.FinanceOf(leaf.Seq)
			if closing && date == day.Date || kind != nil {
				leaves[leaf.Seq], ours = append(leaves[leaf.Seq], leaf), true
			}
		}
		if ours {
			s.checkLook(ctx, store, keys, look, report)
		}
		return err
	})
	if err == nil {
		err = s.closings(ctx, store, day, &closings, leaves, report)
	}
	if err == nil {
		err = s.finance(ctx, store, day, &finance, leaves, report)
	}
	if err != nil {
		return err
	}
	for _, gone := range leaves {
		report(mismatchesOf(seal.Verify(gone, nil, time.Time{})))
	}
	return nil
}

// closings compares the closings of a day, and its figures, with their leaves, and deletes these.
func (s *sealed) closings(
	ctx context.Context, store *ledger.Seals, day ledger.BusinessDay, looks *ledger.Seal,
	leaves map[int64][]seal.Leaf, report func([]audit.Mismatch),
) error {
	return store.ClosingsOf(ctx, day.Date, func(e *ledger.Evidence) error {
		known := leaves[e.Seq]
		figuresAlone := e.ReceivedAt.IsZero()
		if figuresAlone && len(known) > 0 {
			return nil // Its leaves are left, so it is reported as deleted.
		}
		delete(leaves, e.Seq)
		if len(known) == 0 && !figuresAlone && !e.ReceivedAt.Before(looks.To) {
			s.Unsealed++
			return nil
		}
		s.Closings++
		report(mismatchesOf(seal.Verify(known, e, looks.At)))
		return nil
	})
}

// finance compares the finance rows made since a day began with their leaves, and deletes these.
func (s *sealed) finance(
	ctx context.Context, store *ledger.Seals, day ledger.BusinessDay, looks *ledger.Seal,
	leaves map[int64][]seal.Leaf, report func([]audit.Mismatch),
) error {
	return store.Finance(ctx, looks.From, func(e *ledger.Evidence) error {
		known := leaves[e.Seq]
		delete(leaves, e.Seq)
		if len(known) == 0 && !e.ReceivedAt.Before(looks.To) {
			if e.ReceivedAt.Before(day.To) {
				s.Unsealed++
			}
			return nil
		}
		switch kind, _ := ledger.FinanceOf(e.Seq); kind {
		case ledger.TopUpKind:
			s.TopUps++
		case ledger.ReconciliationKind:
			s.Reconciliations++
		default:
			s.Actions++
		}
		report(mismatchesOf(seal.Verify(known, e, looks.At)))
		return nil
	})
}

// lastLook is the time of the last look at the messages that were received at an instant.
func lastLook(looks []ledger.Seal, received time.Time) (at time.Time) {
	for i := range looks {
		l := &looks[i]
		if !received.Before(l.From) && received.Before(l.To) && l.At.After(at) {
			at = l.At
		}
	}
	return at
}

// checkLook reports if a look is not as signed, or does not follow the one before it.
func (s *sealed) checkLook(
	ctx context.Context, store *ledger.Seals, keys *seal.Keys, look *ledger.Seal,
	report func([]audit.Mismatch),
) {
	if err := follows(ctx, store, keys, look); err != nil {
		report([]audit.Mismatch{{
			What: whatCheckpoint, Stored: "seal " + strconv.FormatInt(look.Number, 10),
			Derived: err.Error(),
		}})
	}
	s.Checkpoint = look.Checkpoint
}

// follows returns an error if a look is not as signed, or does not follow the one before it.
func follows(
	ctx context.Context, store *ledger.Seals, keys *seal.Keys, look *ledger.Seal,
) error {
	before, err := store.Number(ctx, look.Number-1)
	if err != nil {
		return err
	}
	if before == nil && look.Number > 1 {
		return fmt.Errorf("seal %d is missing", look.Number-1)
	}
	if outOfOrder(before, look) {
		return fmt.Errorf("seal %d has a time at which it was not made", look.Number)
	}
	return keys.Check(before, look)
}

// outOfOrder reports whether the time of a look is impossible: a look is made after the period that
// it covers, and after the previous look. A clock may have been set back a little.
func outOfOrder(before, look *ledger.Seal) bool {
	if look.At.Before(look.To) {
		return true
	}
	return before != nil && (before.At.Before(before.To) ||
		look.At.Before(before.At.Add(-time.Minute)))
}

// sealedRow names what a leaf stands for, and the views that have its parts: none for a message or
// a version, whose parts have names of their own.
func sealedRow(seq int64, id string) (name string, views []string) {
	day, revision, closing := ledger.ClosingOf(seq)
	kind, number := ledger.FinanceOf(seq)
	switch {
	case closing:
		return fmt.Sprintf("revision %d of %s", revision, day), ledger.ClosingParts[:]
	case kind != nil:
		return fmt.Sprintf("%s %d", kind.Name, number), kind.Parts
	case seq < 0:
		return "routing version " + strconv.FormatInt(-seq, 10), nil
	case id == "":
		return "message number " + strconv.FormatInt(seq, 10), nil
	}
	return id, nil
}

// mismatchesOf are the faults as differences of audit verify.
func mismatchesOf(faults []seal.Fault) []audit.Mismatch {
	found := make([]audit.Mismatch, len(faults))
	for i, f := range faults {
		name, views := sealedRow(f.Seq, f.ID)
		_, _, closing := ledger.ClosingOf(f.Seq)
		m := audit.Mismatch{ID: name, What: f.What}
		switch {
		case views != nil && f.What == seal.Changed:
			m.Stored = "other values in " + views[slices.Index(ledger.PartNames[:], f.Part)]
			m.Derived = "those that were sealed"
		case closing && f.What == seal.Inserted:
			m.Stored, m.Derived = "figures", "nothing: such a closing was not sealed in its time"
		case f.What == seal.Changed:
			m.Stored, m.Derived = "another "+f.Part, "the "+f.Part+" that was sealed"
		case f.What == seal.Deleted:
			m.Stored, m.Derived = "nothing", "what was sealed"
		case f.What == seal.Inserted:
			m.Stored, m.Derived = "a row", "nothing: it was not there when its time was sealed"
		case f.What == seal.Outcome:
			m.Stored, m.Derived = string(f.To), "what may follow "+string(f.From)
		}
		found[i] = m
	}
	return found
}

// sealed is the comparison with the log in one line.
func (v *verification) sealed() string {
	s := v.Sealed
	if s == nil {
		return "not compared with the log of hashes: no key of it\n"
	}
	kinds := []string{fmt.Sprintf("%d messages", s.Messages)}
	switch {
	case s.Closings == 1:
		kinds = append(kinds, "the closing of the day")
	case s.Closings > 1:
		kinds = append(kinds, fmt.Sprintf("%d closings of the day", s.Closings))
	}
	if s.TopUps > 0 {
		kinds = append(kinds, counted(int64(s.TopUps), "top-up", "top-ups"))
	}
	if s.Reconciliations > 0 {
		kinds = append(kinds, counted(int64(s.Reconciliations), "signed reconciliation",
			"signed reconciliations"))
	}
	if s.Actions > 0 {
		kinds = append(kinds, counted(int64(s.Actions), "action", "actions"))
	}
	line := strings.Join(kinds, ", ")
	if last := len(kinds) - 1; last > 0 {
		line = strings.Join(kinds[:last], ", ") + " and " + kinds[last]
	}
	line += " compared with the log of hashes"
	if s.Unsealed > 0 {
		line += fmt.Sprintf("; %d are not in it yet", s.Unsealed)
	}
	return line + "\n"
}

// auditKeyCommand is "audit key".
func (c *cli) auditKeyCommand() *cobra.Command {
	var as format
	cmd := &cobra.Command{
		Use:   "key NAME FILE",
		Short: "Make the key that signs the log of hashes",
		Long: `Makes FILE, which only its owner can read, with a new key under NAME, such as
sms.example.com. Give it to every instance as DISPATCHER_SEAL_KEY_FILE. Its verifier key is printed:
auditors need it, and nothing else, to see whether stored rows were changed. A file that is there
already is never touched.`,
		Example: "  dispatcher audit key sms.example.com seal.key",
		Args:    arguments(2, 2),
		RunE: work(func(_ context.Context, args []string) error {
			return c.newSealKey(args[0], args[1], as)
		}),
	}
	as.addTo(cmd.Flags())
	return cmd
}

// sealKey is a new key as the command shows it.
type sealKey struct {
	File     string `json:"file"`
	Verifier string `json:"verifier"`
}

func (c *cli) newSealKey(name, path string, as format) error {
	text, verifier, err := seal.NewKey(name)
	if err != nil {
		return usage(fmt.Errorf("%q cannot be the name of a key: %w", name, err))
	}
	if err := config.CreateSecret(path, text); err != nil {
		return failed(fmt.Errorf("write the key: %w", err))
	}
	if as == formatTable {
		fmt.Fprintf(c.out, "The key is in %s, which only its owner can read. Auditors verify with\n"+
			"%s\n", path, verifier)
		return nil
	}
	k := sealKey{path, verifier}
	return as.write(c.out, k, sheet{
		header: []string{"file", "verifier"}, rows: [][]string{{path, verifier}},
	})
}
