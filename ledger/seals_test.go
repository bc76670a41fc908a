package ledger_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// evidenceNow is the evidence of all messages, by number.
func evidenceNow(t *testing.T, l *ledger.Ledger) map[int64]ledger.Evidence {
	t.Helper()
	all := map[int64]ledger.Evidence{}
	now := time.Now()
	err := l.Seals.Evidence(t.Context(), now.Add(-24*time.Hour), now.Add(time.Hour),
		func(e *ledger.Evidence) error {
			all[e.Seq] = *e
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// endedWindows is the evidence of the windows of limits that were over at an instant, and how many
// there are.
func (b *business) endedWindows(at time.Time) (evidence string, n int) {
	b.t.Helper()
	err := b.db.QueryRow(b.t.Context(), `
		select coalesce(string_agg(format('%s s from %s: %s', window_seconds, window_start, hash), e'\n'
		  order by window_start, window_seconds, hash), ''), count(*)
		from facts.window_evidence
		where window_start + make_interval(secs => window_seconds) <= $1`, at).Scan(&evidence, &n)
	if err != nil {
		b.t.Fatal(err)
	}
	return evidence, n
}

// TestWhatIsFinalChangesNoMore: nothing that claims, settlements, receipts and changes of the
// routing do counts as a change by somebody else, and no receipt contradicts its attempt. Evidence
// that is final stays the same, and what changes has a newer time. No window of a limit changes
// after it ended.
func TestWhatIsFinalChangesNoMore(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, 24*time.Hour)
	b := newBusiness(t)
	b.limited = true
	b.route(rand.New(rand.NewPCG(0, 0)))
	before := map[int64]ledger.Evidence{}
	var windows string
	var looked time.Time
	var changed [len(ledger.PartNames)]int
	runs := 0
	tier.Check(t, func(rt *rapid.T) {
		b.goOn(rt, func(string) {})
		clock := scalar[time.Time](t, b.db, `select clock_timestamp()`)
		now := evidenceNow(t, b.l)
		for seq, was := range before {
			is, found := now[seq]
			if !found {
				rt.Fatalf("message %d is gone", seq)
			}
			for p := range is.Parts {
				if is.Parts[p] == was.Parts[p] {
					continue
				}
				changed[p]++
				if p == ledger.PartIntake || p != ledger.PartLater && !was.Open {
					rt.Fatalf("%s was %s, and its %s changed", is.ID, was.State, ledger.PartNames[p])
				}
				if p != ledger.PartLater && was.State != ledger.NotSent && is.State != ledger.NotSent &&
					is.LaterAt.Before(looked) {
					rt.Fatalf("%s is %s, and its %s changed without a newer time", is.ID, is.State,
						ledger.PartNames[p])
				}
			}
		}
		if is, _ := b.endedWindows(looked); is != windows {
			rt.Fatalf("windows that had ended changed: %s", cmp.Diff(windows, is))
		}
		windows, _ = b.endedWindows(clock)
		before, looked = now, clock
		if runs++; runs%4 > 0 {
			return
		}
		misfits, err := b.l.Receipts.Misfits(t.Context(), time.Now().Add(-48*time.Hour),
			time.Now().Add(48*time.Hour))
		misfits = slices.DeleteFunc(misfits, func(m ledger.MisfitReceipt) bool {
			return m.What == ledger.MisfitTime // some come before their message here
		})
		if err != nil || len(misfits) > 0 {
			rt.Fatalf("%v, %+v", err, misfits)
		}
	})
	if changed[ledger.PartAttempts] == 0 || changed[ledger.PartLater] == 0 {
		t.Errorf("changes by part: %v", changed)
	}
	// At least one window has ended, and the next claim begins another.
	var clock time.Time
	tier.Eventually(t, "a window ends", func() bool {
		clock = scalar[time.Time](t, b.db, `select clock_timestamp()`)
		var n int
		windows, n = b.endedWindows(clock)
		return n > 0
	})
	b.claim(rand.New(rand.NewPCG(1, 1)))
	if is, _ := b.endedWindows(clock); is != windows {
		t.Errorf("windows that had ended changed: %s", cmp.Diff(windows, is))
	}
}

// TestNumbersOfVersionsAndOfClosingsAreToldApart: both are negative in the log.
func TestNumbersOfVersionsAndOfClosingsAreToldApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seq      int64
		day      string
		revision int64
	}{
		{7, "", 0},
		{-1, "", 0},
		{1 - 1<<32, "", 0},
		{-1<<32 - 1, "1970-01-02", 1},
		{-20778<<32 - 3, "2026-11-21", 3},
		{-20778<<32 - (1<<31 - 1), "2026-11-21", 1<<31 - 1},
		{-1<<56 - 1, "", 0},
		{-1<<57 - 1, "", 0},
	} {
		day, revision, ok := ledger.ClosingOf(c.seq)
		if day != c.day || revision != c.revision || ok != (c.day != "") {
			t.Errorf("%d: revision %d of %s, %v", c.seq, revision, day, ok)
		}
	}
}

// TestNumbersOfFinanceRowsAreToldApart: these are the lowest in the log.
func TestNumbersOfFinanceRowsAreToldApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seq  int64
		kind *ledger.FinanceKind
		id   int64
	}{
		{7, nil, 0},
		{-1, nil, 0},
		{-20778<<32 - 3, nil, 0},
		{-1<<56 - 1, ledger.TopUpKind, 1},
		{-1<<56 - 1<<40, ledger.TopUpKind, 1 << 40},
		{-1<<57 - 1, ledger.ReconciliationKind, 1},
		{-1<<57 - 1<<40, ledger.ReconciliationKind, 1 << 40},
	} {
		if kind, id := ledger.FinanceOf(c.seq); kind != c.kind || id != c.id {
			t.Errorf("%d: %d of %+v", c.seq, id, kind)
		}
	}
	for n, name := range []string{
		"operator action", "ramp move", "restart of a limit", "trip of a guard", "erasure",
	} {
		seq := -1<<58 - int64(n)<<54 - 7
		if kind, id := ledger.FinanceOf(seq); kind == nil || kind.Name != name || id != 7 {
			t.Errorf("%d: %d of %+v", seq, id, kind)
		}
	}
}
