package ledger_test

import (
	"testing"
	"time"

	"dispatcher/ledger"
)

func TestTheStateOfTheDaysTellsWhatIsThere(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	k.message(t, "alive", 110, never)
	k.message(t, "late", 9, never)
	k.message(t, "young", 6, hour)
	k.keep(t, week)
	got, err := k.l.Days.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Count != 6 || got.Oldest != k.today-110 || got.OldestPayloads != k.today-6 ||
		got.Latest < k.today+2 || got.LatePayloads != 2 || len(got.Skipped) != 1 ||
		got.Skipped[0] != (ledger.LivingDay{Day: k.today - 110, Living: 1}) ||
		time.Since(got.Turned).Abs() > time.Hour || got.Locks < 1000 ||
		time.Since(got.Now).Abs() > time.Hour {
		t.Errorf("%+v", got)
	}
	sizes, err := k.l.Days.Sizes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{
		"messages", "payloads", "attempts", "receipts", "ids", "other",
	} {
		if sizes[table] == 0 {
			t.Errorf("no size of %s: %v", table, sizes)
		}
	}
}
