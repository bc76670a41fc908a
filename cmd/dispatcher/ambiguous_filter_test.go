package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger/ledgertest"
)

// TestAmbiguousMessagesAreSettledByAFilter: those of one channel from before a time, and no others;
// what cannot be settled is listed and left as it is.
func TestAmbiguousMessagesAreSettledByAFilter(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	doubtfulMessages(t, openSeeded(t, url), "open-1", "part-1", "open-2", "open-3", "final-1")
	moveAmbiguous(t, url, "open-1", "part-1", "final-1")
	before := time.Now().Add(-30 * time.Minute).UTC().Format(time.RFC3339)
	filter := []string{"--channel", "a", "--before", before, "--as", "not_taken", "--reason", "lost"}
	settleWith := func(code int, more ...string) result {
		return ambiguous(t, url, code, append(append([]string{"settle"}, filter...), more...)...)
	}

	if got := ambiguous(t, url, exitOK, "list", "--limit", "2").out; !strings.HasSuffix(got, "\n2 of 4\n") {
		t.Errorf("%s", got)
	}
	if got := ambiguous(t, url, exitOK, "list", "--before", before).out; !strings.HasSuffix(got, "\n2 of 2\n") || strings.Contains(got, "open-2") {
		t.Errorf("%s", got)
	}
	if got := settleWith(exitOK, "--dry-run").out; got != "2 messages would be settled as not_taken; without --dry-run they are.\n" {
		t.Errorf("%s", got)
	}
	got := shown[settledMany](t, settleWith(exitFailed, "--format", "json"))
	if got.Matched != 2 || got.Settled != 1 || len(got.Left) != 1 || got.Left[0].ID != "part-1" || !strings.Contains(got.Left[0].Why, "taken in part") {
		t.Errorf("%+v", got)
	}
	if got := settleWith(exitOK, "--lane", "no-such-lane").out; got != "0 of 0 messages are settled as not_taken.\n" {
		t.Errorf("%s", got)
	}
	states := queryOne[string](t, url, `select string_agg(id || ' ' || state, ', ' order by id) from audit.messages`)
	if want := "final-1 unknown, open-1 retry, open-2 unknown, open-3 unknown, part-1 unknown"; states != want {
		t.Errorf("%s, want %s", states, want)
	}
}

// moveAmbiguous makes messages ambiguous an hour earlier.
func moveAmbiguous(t *testing.T, url string, ids ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // The test is over.
	_, err = conn.Exec(t.Context(), `update dispatcher.ambiguous d set opened_at = opened_at - interval '1 hour'
		from dispatcher.messages m where m.seq = d.message_seq and m.id = any($1)`, ids)
	if err != nil {
		t.Fatal(err)
	}
}

func TestAFilterAndAnIDExcludeEachOther(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	for want, args := range map[string][]string{
		"exclude each other":           {"settle", "m1", "--channel", "a"},
		"name the id of a message, or": {"settle"},
		"--before: write a time":       {"settle", "--before", "yesterday"},
		"--reference goes with":        {"settle", "--channel", "a", "--reference", "x"},
	} {
		if got := ambiguous(t, url, exitUsage, append(args, "--as", "taken", "--reason", "r")...); !strings.Contains(got.err, want) {
			t.Errorf("%v: %+v", args, got)
		}
	}
}
