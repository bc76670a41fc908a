package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dispatcher/ledger"
)

// What the release before migration 003 says to the database, word for word. It may go on
// saying it until its last instance is replaced, before and after instances of this release.
const (
	oldVersion = `insert into dispatcher.routing_versions (version, author, reason, document)
		values ($1, $2, $3, $4)`
	oldCurrent = `select version, author, reason, created_at, document
		from dispatcher.routing_versions order by version desc limit 1`
	oldReport = `select version, author, reason, created_at, document from audit.routing_versions`
)

func TestThePreviousReleaseWorksOnTheNewSchema(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	old := func(version int64) {
		if _, err := db.Exec(t.Context(), oldVersion, version, "old", "",
			"routes: [] # old"); err != nil {
			t.Fatal(err)
		}
	}
	old(1)
	addEffects(t, l, `{"a": 1}`)
	rows, err := db.Query(t.Context(), oldCurrent)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, err := rows.Values()
		if err != nil || len(values) != 5 || values[0] != int64(2) ||
			values[4] != "routes: [] # old" {
			t.Errorf("the previous release reads %v, %v", values, err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	old(3)
	base := int64(3)
	if _, err := l.Routing.Apply(t.Context(), ledger.NewRouting{
		Expect: &base, Author: "new", Document: "routes: []",
	}); err != nil {
		t.Fatal(err)
	}
	got, err := l.Routing.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []ledger.RoutingVersion{
		{Version: 4, Author: "new", Document: "routes: []", Base: 4},
		{Version: 3, Author: "old", Document: "routes: [] # old", Base: 3},
		{
			Version: 2, Author: "health", Reason: "test", Document: "routes: [] # old",
			Effects: []byte(`{"a": 1}`), Base: 1,
		},
		{Version: 1, Author: "old", Document: "routes: [] # old", Base: 1},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(ledger.RoutingVersion{},
		"CreatedAt")); diff != "" {
		t.Error(diff)
	}
	if _, err := db.Exec(t.Context(), oldReport); err != nil {
		t.Error(err)
	}
	if bases := scalar[[]int64](t, db,
		`select array_agg(base order by version) from audit.routing_versions`); !cmp.Equal(bases,
		[]int64{1, 1, 3, 4}) {
		t.Errorf("audit.routing_versions has bases %v", bases)
	}
}
