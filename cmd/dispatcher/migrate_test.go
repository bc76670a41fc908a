package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
	"dispatcher/ledger/pgserver"
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

// otherBuild makes the database look as if another build had migrated it.
func otherBuild(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	// Nothing depends on a clean end.
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // See above.
	_, err = conn.Exec(t.Context(),
		`update dispatcher.schema_migrations set checksum = 'another' where version = 3`)
	if err != nil {
		t.Fatal(err)
	}
}

const conflictSentence = "the ledger's schema was made by another build: its migration 3 is not " +
	"003_days.sql of this one"

func TestADatabaseOfAnotherBuildIsRefusedByRunMigrateAndDoctor(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	otherBuild(t, url)
	env := []string{
		"DISPATCHER_POSTGRES_URL=" + url, "DISPATCHER_KAFKA_BROKERS=127.0.0.1:1",
		"DISPATCHER_LISTEN=127.0.0.1:0", "DISPATCHER_RECEIPTS_LISTEN=127.0.0.1:0",
		"DISPATCHER_DRAW_KEY_FILE=" + write(t, "draw.key", stageKey+"\n"),
		"DISPATCHER_ROUTING_FILE=" + write(t, "routing.yaml", testRouting),
	}
	for _, args := range [][]string{{"run"}, {"migrate"}, {"migrate", "--status"}} {
		got := dispatcher(t, "", env, args...)
		want := "dispatcher: " + conflictSentence +
			"; run the build that made it, name an empty database in DISPATCHER_POSTGRES_URL, or " +
			"see Upgrade in docs/deploy.md\n"
		if got.code != exitUsage || !strings.HasSuffix(got.err, want) || got.out != "" {
			t.Errorf("%v: got %+v", args, got)
		}
	}
	found, got := diagnosis(t, env)
	f := found["schema"]
	if f.Status != statusFail || f.Detail != conflictSentence ||
		!strings.Contains(f.Fix, "an empty database") || got.code != exitFailed {
		t.Errorf("got %+v", f)
	}
}

// A data folder keeps its database when the program is replaced by another build.
func TestADataFolderOfAnotherBuildIsRefusedWithItsName(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	folder := openFolder(t)
	server, err := pgserver.Start(t.Context(),
		pgserver.Config{Dir: filepath.Join(folder, "postgres")})
	if err != nil {
		t.Fatal(err)
	}
	err = migrations.Migrate(t.Context(), server.URL())
	if err == nil {
		otherBuild(t, server.URL())
	}
	if stopped := server.Stop(t.Context()); err != nil || stopped != nil {
		t.Fatal(err, stopped)
	}
	env := []string{
		"DISPATCHER_DATA_DIR=" + folder, "DISPATCHER_LISTEN=127.0.0.1:0",
		"DISPATCHER_RECEIPTS_LISTEN=127.0.0.1:0",
	}
	got := dispatcher(t, "", env, "run", "--embedded", "--kafka-port", "0", "--postgres-port", "0")
	want := "dispatcher: " + conflictSentence + "; run the build that made the data folder " +
		folder + ", name another one in DISPATCHER_DATA_DIR, or see Upgrade in docs/deploy.md\n"
	if got.code != exitUsage || !strings.HasSuffix(got.err, want) {
		t.Errorf("got %+v", got)
	}
}
