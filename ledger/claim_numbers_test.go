package ledger_test

import (
	"testing"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// TestNumbersRiseThroughADay, however far the sequence has come: whoever searches a day by time
// relies on that. A day counts from where the sequence was when the day was made, but from 0 while
// the sequence is low, as processes of an earlier build do.
func TestNumbersRiseThroughADay(t *testing.T) {
	t.Parallel()
	const half = int64(1) << 35
	db := raw(t, ledgertest.Fresh(t))
	today := scalar[ledger.Day](t, db, `select dispatcher.day_at(clock_timestamp())`)
	for i, at := range []int64{7, half - 1, half, 3 * half, 1 << 50} {
		execute(t, db, `select setval('dispatcher.message_numbers', $1)`, at)
		day := today + ledger.Day(10+i)
		execute(t, db, `select dispatcher.make_day($1)`, day)
		want := at
		if at < half {
			want = 0
		}
		if got := scalar[int64](t, db, `select counts_from from dispatcher.days where day = $1`,
			day); got != want {
			t.Errorf("a day that is made at %d counts from %d, want %d", at, got, want)
		}
	}
	execute(t, db, `update dispatcher.days set counts_from = $1 where day = $2`, int64(1<<50), today)
	l := connect(t, ledger.Config{URL: db.Config().ConnString()})
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	last := int64(today) << 36
	for _, name := range []string{"first", "second"} {
		for _, m := range claimAll(t, l, batch(name, 3), "a").Messages {
			if ledger.DayOf(m.Seq) != today || m.Seq <= last || m.Seq > int64(today)<<36+6 {
				t.Errorf("message %s has number %d, after %d", m.ID, m.Seq, last)
			}
			last = m.Seq
		}
	}
}
