package main

import (
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/config"
	"dispatcher/ledger"
)

// TestTheHistoryTellsACommandFromTheConsole: a command has an author that is only claimed, beside
// the login of the database. By the console the author was authenticated.
func TestTheHistoryTellsACommandFromTheConsole(t *testing.T) {
	t.Parallel()
	l, env := seeded(t)
	if got := dispatcher(t, "", env, withReason("maintenance", "channel", "drain",
		"b")...); got.code != exitOK {
		t.Fatalf("got %+v", got)
	}
	draft, err := control.Begin(t.Context(), l, nil, control.By{
		Author: "eve", Via: ledger.ViaConsole, Reason: "it is over",
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := draft.SetState(t.Context(), "b", config.Enabled); err != nil {
		t.Fatal(err)
	}
	h := decoded[history](t, dispatcher(t, "", env, "routing", "history", "--format", "json"))
	if h.Versions[0].Via != ledger.ViaConsole || h.Versions[1].Via != ledger.ViaCommand {
		t.Errorf("got %+v", h.Versions)
	}
	table := strings.Join(strings.Fields(dispatcher(t, "", env, "routing", "history").out), " ")
	if !strings.Contains(table, "eve (console)") || strings.Contains(table, "ann (console)") {
		t.Errorf("got %s", table)
	}
}
