package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/ledger"
)

// TestAMemberOfTheOwnersRoleKeepsTheDays: the schema may belong to another role than the login of
// the dispatcher, if the login is a member of it.
func TestAMemberOfTheOwnersRoleKeepsTheDays(t *testing.T) {
	t.Parallel()
	k := newKeeping(t)
	const day = 24 * time.Hour
	k.message(t, "old", 150, 149*day)
	k.message(t, "recent", 10, 9*day)
	k.exec(t, `delete from dispatcher.days where day = $1`, k.today+2)
	for _, table := range []string{"messages", "payloads", "attempts"} {
		k.exec(t, `drop table dispatcher.`+table+`_`+
			scalar[string](t, k.db, `select to_char(date '1970-01-01' + $1::int, 'YYYYMMDD')`,
				k.today+2))
	}
	owner := scalar[string](t, k.db, `select nspowner::regrole::text from pg_namespace
		where nspname = 'dispatcher'`)
	// roles belong to the server, which other tests share
	member := "member_of_" + scalar[string](t, k.db, `select current_database()`)
	k.exec(t, `create role `+member)
	k.exec(t, `grant `+owner+` to `+member)
	l := connect(t, ledger.Config{URL: k.url + "&options=-c%20role%3D" + member})
	kept, err := l.Days.Keep(t.Context(), week)
	if err != nil {
		t.Fatal(err)
	}
	want := ledger.Kept{
		Made: []ledger.Day{k.today + 2}, Indexed: []ledger.Day{k.today - 150, k.today - 10},
		Payloads: []ledger.Day{k.today - 10}, Facts: []ledger.Day{k.today - 150},
	}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Error(diff)
	}
	made := scalar[string](t, k.db, `select relowner::regrole::text from pg_class
		where relname = 'messages_' || to_char(date '1970-01-01' + $1::int, 'YYYYMMDD')`,
		k.today+2)
	if made != owner {
		t.Errorf("the day belongs to %s", made)
	}
}
