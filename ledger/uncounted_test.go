package ledger_test

import (
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
)

// TestRowsThatWereDeletedAreMissedByTheLimits: when all rows of a message are deleted, the windows
// have still counted it. A login of finance can see that.
func TestRowsThatWereDeletedAreMissedByTheLimits(t *testing.T) {
	t.Parallel()
	tier.OneWindow(t, 24*time.Hour)
	r := lend(t)
	everyKind(t, r)
	finance, err := ledger.Connect(t.Context(),
		ledger.Config{URL: ledgertest.As(migrations.RoleFinance, r.url)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(finance.Close)
	from := time.Now().UTC().Truncate(24 * time.Hour)
	missed := func() map[int]ledger.Uncounted {
		t.Helper()
		found, err := finance.Limits.Uncounted(t.Context(), from, from.Add(24*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		out := map[int]ledger.Uncounted{}
		for _, u := range found {
			out[u.WindowSeconds] = u
		}
		return out
	}
	if found := missed(); len(found) > 0 {
		t.Fatalf("before anything was deleted: %+v", found)
	}
	execute(t, r.db, `delete from dispatcher.attempts where message_seq =
		(select seq from dispatcher.messages where id = 'm-00001')`)
	execute(t, r.db, `delete from dispatcher.messages where id = 'm-00001'`)
	found := missed()
	for _, seconds := range []int{60, 86400} {
		u := found[seconds]
		if u.Channel != "a" || u.Scope != "channel" || u.OnRecord != u.Granted-1 {
			t.Errorf("%d s: %+v", seconds, u)
		}
	}
	// A closing without attempts says nothing about what was dropped.
	execute(t, r.db, `insert into dispatcher.closings (day, revision, zone, from_at, to_at, changes)
		values ('2020-01-01', 1, 'UTC', '2020-01-01', '2020-01-02', 0)`)
	if found := missed(); len(found) == 0 {
		t.Error("a closing hides what was deleted")
	}
	// Days that were dropped do not count as deleted by somebody.
	execute(t, r.db, `insert into dispatcher.attempt_figures
		select (jsonb_populate_record(null::dispatcher.attempt_figures,
		  jsonb_object_agg(attname, case when atttypid = 'text'::regtype then '"x"'::jsonb
		    when atttypid in ('date'::regtype, 'timestamptz'::regtype) then '"2020-01-01"'::jsonb
		    else '1'::jsonb end))).*
		from pg_attribute where attrelid = 'dispatcher.attempt_figures'::regclass and attnum > 0`)
	if found := missed(); len(found) > 0 {
		t.Errorf("after days were dropped: %+v", found)
	}
}
