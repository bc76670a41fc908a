package main

import (
	"encoding/json"
	"testing"

	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
)

func TestMigrateGoesFromEmptyToLatestOnce(t *testing.T) {
	t.Parallel()
	env := []string{"DISPATCHER_POSTGRES_URL=" + ledgertest.Empty(t)}
	latest := migrations.Latest()
	for i, step := range []struct {
		args []string
		want schemaChange
	}{
		{[]string{"--status"}, schemaChange{From: 0, To: 0, Latest: latest}},
		{nil, schemaChange{From: 0, To: latest, Latest: latest, UpTo: true}},
		{nil, schemaChange{From: latest, To: latest, Latest: latest, UpTo: true}},
		{[]string{"--status"}, schemaChange{From: latest, To: latest, Latest: latest, UpTo: true}},
	} {
		got := dispatcher(t, "", env,
			append([]string{"migrate", "--format", "json"}, step.args...)...)
		var change schemaChange
		err := json.Unmarshal([]byte(got.out), &change)
		if err != nil || got.code != exitOK || change != step.want {
			t.Errorf("step %d: %v %+v, want %+v", i, err, got, step.want)
		}
	}
}
