package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// TestAmbiguousMessagesAreSettledByAFilter: the filter selects the messages of one channel from
// before a time. Messages that cannot be settled are listed and not changed.
func TestAmbiguousMessagesAreSettledByAFilter(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	ambiguousMessages(t, openSeeded(t, url), "open-1", "part-1", "open-2", "open-3", "final-1")
	moveAmbiguous(t, url, "open-1", "part-1", "final-1")
	before := time.Now().Add(-30 * time.Minute).UTC().Format(time.RFC3339)
	filter := []string{
		"--channel", "a", "--until", before, "--outcome", "not_taken", "--reason", "lost",
	}
	settleWith := func(code int, more ...string) result {
		return ambiguous(t, url, code, append(append([]string{"settle"}, filter...), more...)...)
	}

	listed := ambiguous(t, url, exitOK, "list", "--limit", "2").out
	if !strings.HasSuffix(listed, "\n2 of 4\n") {
		t.Error(listed)
	}
	listed = ambiguous(t, url, exitOK, "list", "--before", before).out
	if !strings.HasSuffix(listed, "\n2 of 2\n") || strings.Contains(listed, "open-2") {
		t.Error(listed)
	}
	const would = "2 messages would be settled as not_taken; with --yes in place of --dry-run " +
		"they are.\n"
	if said := settleWith(exitOK, "--dry-run").out; said != would {
		t.Error(said)
	}
	if said := settleWith(exitUsage).err; !strings.Contains(said, "2 messages would be settled") {
		t.Error(said)
	}
	for _, none := range [][]string{
		{"--lane", "transactional"},
		{"--tenant", "no-such-tenant"},
		{"--code", "no-such-code"},
		{"--since", "30m"},
	} {
		said := settleWith(exitOK, append(none, "--yes")...).out
		if said != "0 of 0 messages are settled as not_taken.\n" {
			t.Errorf("%v: got %s, want %s", none, said, "0 of 0 messages are settled as not_taken.\n")
		}
	}
	for name, known := range map[string]string{"lane": "otp, trans", "channel": "a, b, c"} {
		said := settleWith(exitUsage, "--"+name, "none", "--yes").err
		if want := fmt.Sprintf("there is no %s %q; choose one of %s", name, "none", known); !strings.
			Contains(said, want) {
			t.Errorf("%s, want %s", said, want)
		}
	}
	got := shown[settledMany](t, settleWith(exitFailed, "--yes", "--format", "json", "--since", "2h",
		"--code", "timeout"))
	if got.Matched != 2 || got.Settled != 1 || len(got.Left) != 1 || got.Left[0].ID != "part-1" ||
		!strings.Contains(got.Left[0].Why, "taken in part") {
		t.Errorf("got %+v", got)
	}
	states := queryOne[string](t, url,
		`select string_agg(id || ' ' || state, ', ' order by id) from audit.messages`)
	want := "final-1 unknown, open-1 retry, open-2 unknown, open-3 unknown, part-1 unknown"
	if states != want {
		t.Errorf("%s, want %s", states, want)
	}
}

// TestAFilterSettlesTheAttemptsThatItFinds: the messages also have an ambiguous attempt on channel
// b, to which they were resent. A filter for channel a does not settle that attempt.
func TestAFilterSettlesTheAttemptsThatItFinds(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := openSeeded(t, url)
	m := claimed(t, l, drawn("twice-1", 1, "a"))[0]
	settle := func(attempt int, key string, as ledger.ResolvedAs, state ledger.State) {
		t.Helper()
		err := l.Settlements.Settle(t.Context(), []ledger.Settlement{{
			Seq: m.Seq, ID: m.ID, Attempt: attempt, Outcome: provider.Unknown, Code: "timeout",
			Segments:    1,
			PriceMicros: 28_000, State: state, Reason: "resend", PossibleDuplicate: true,
			Ambiguity: &ledger.Ambiguity{
				Key: key, Step: ledger.NoStep, Until: time.Now(), ResolvedAs: as,
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	settle(1, "first", ledger.Resent, ledger.Retry)
	tx, err := l.Claims.Lock(t.Context(), ledger.Claim{Due: 1, Channels: []string{"a", "b", "c"}})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	seen := tx.Seen()
	again := seen.Messages[0]
	again.Plan.FirstChoice = "b"
	d := toFirstChoice(seen, &again)
	d.Plan, d.Attempt.Number, d.Attempt.Reason = m.Plan, 2, ledger.ByResend
	if err := tx.Commit(t.Context(), ledger.Decisions{Each: []ledger.Decision{d}}); err != nil {
		t.Fatal(err)
	}
	settle(2, "second", ledger.Unresolved, ledger.Unknown)

	outcomes := func() string {
		return queryOne[string](t, url, `
			select string_agg(concat_ws(' ', a.attempt, a.channel, a.outcome, a.price_micros), ', '
			order by a.attempt) || ', ' || min(m.state)
			from dispatcher.all_attempts a join dispatcher.message_states m on m.seq = a.message_seq`)
	}
	for _, step := range []struct{ channel, as, want string }{
		{"a", "not_taken", "1 a refused 0, 2 b unknown 28000, unknown"},
		{"b", "taken", "1 a refused 0, 2 b accepted 28000, accepted"},
	} {
		got := ambiguous(t, url, exitOK, "settle", "--channel", step.channel, "--all", "--as",
			step.as, "--reason", "in its log", "--yes").out
		if got != "1 of 1 messages are settled as "+step.as+".\n" || outcomes() != step.want {
			t.Errorf("%s%s, want %s", got, outcomes(), step.want)
		}
	}
}

// TestManyAmbiguousMessagesAreSettledPageByPage: also when whole pages hold only messages that
// cannot be settled.
func TestManyAmbiguousMessagesAreSettledPageByPage(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := openSeeded(t, url)
	ids := make([]string, 9)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s-%d", map[bool]string{true: "part", false: "open"}[i%2 == 0], i)
	}
	ambiguousMessages(t, l, ids...)
	moveAmbiguous(t, url, ids...)
	f := &settleFlags{as: "not_taken", reason: "r", author: "ann"}
	calls := 0
	result, err := settlePages(t.Context(), &database{Ledger: l}, f, &ledger.AmbiguousFilter{}, 2,
		func(tried int64) {
			if calls++; tried != int64(calls) {
				t.Errorf("call %d: %d were tried", calls, tried)
			}
		})
	if err != nil || result.Done != 4 || len(result.Left) != 5 || calls != len(ids) {
		t.Errorf("%+v after %d calls, %v", result, calls, err)
	}
}

// moveAmbiguous moves the time at which messages became ambiguous back by an hour.
func moveAmbiguous(t *testing.T, url string, ids ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // The test is over.
	_, err = conn.Exec(t.Context(), `update dispatcher.ambiguous d
		set opened_at = opened_at - interval '1 hour'
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
		"--format goes with a filter":  {"settle", "m1", "--format", "json"},
		"name the id of a message, or": {"settle"},
		"--until: write a time":        {"settle", "--before", "yesterday"},
		"--dry-run and --yes exclude":  {"settle", "--channel", "a", "--dry-run", "--yes"},
		"--reference goes with":        {"settle", "--channel", "a", "--reference", "x"},
	} {
		got := ambiguous(t, url, exitUsage, append(args, "--as", "taken", "--reason", "r")...)
		if !strings.Contains(got.err, want) {
			t.Errorf("%v: got %+v, want %q in the error", args, got, want)
		}
	}
}

// TestContradictionsAreShown: an operator settled a message as not taken, and a receipt says that
// it was delivered.
func TestContradictionsAreShown(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := openSeeded(t, url)
	m := claimed(t, l, drawn("order-1", 0, "a"))[0]
	err := l.Settlements.Settle(t.Context(), []ledger.Settlement{{
		Seq: m.Seq, ID: m.ID, Attempt: 1, Outcome: provider.Refused, Code: "0x00000008",
		Denied: "7F31", Await: time.Hour,
		State: ledger.Retry, Reason: "refused", NextAt: time.Now().Add(time.Hour),
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Receipts.Receive(t.Context(),
		[]ledger.Receipt{{Channel: "a", Reference: "7F31", State: provider.Delivered}}, nil)
	if err != nil {
		t.Fatal(err)
	}

	type list struct {
		Contradictions []control.Contradiction `json:"contradictions"`
	}
	for _, more := range [][]string{nil, {"--all"}, {"--channel", "a"}} {
		got := shown[list](t,
			ambiguous(t, url, exitOK,
				append([]string{"list", "--format", "json"}, more...)...)).Contradictions
		if len(got) != 1 || got[0].ID != "order-1" || got[0].Reference != "7F31" ||
			got[0].Outcome != "refused" || got[0].State != "delivered" {
			t.Errorf("%v: got %+v", more, got)
		}
	}
	got := ambiguous(t, url, exitOK, "list", "--channel", "b").out
	if got != "No message is ambiguous. --all also lists those that stayed unknown.\n" {
		t.Errorf("got %s, want %s", got, "No message is ambiguous. --all also lists those that stayed unknown.\n")
	}
	table := ambiguous(t, url, exitOK, "list").out
	for _, want := range []string{"order-1", "7F31", "refused", "0x00000008", "delivered"} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is missing in\n%s", want, table)
		}
	}
	for line := range strings.SplitSeq(table, "\n") {
		if n := utf8.RuneCountInString(line); n > 120 {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
	got = ambiguous(t, url, exitOK, "list", "--format", "csv").out
	if !strings.Contains(got,
		"contradicted,,\"answered refused, then delivered by receipt 7F31\"") {
		t.Errorf("got %s, want %q in it",
			got, "contradicted,,\"answered refused, then delivered by receipt 7F31\"")
	}

	explained := dispatcher(t, "", []string{"DISPATCHER_POSTGRES_URL=" + url},
		"explain", "order-1").out
	for _, want := range []string{
		"However, a receipt of a says", "contradicted", "Its delivery was confirmed", "7F31",
	} {
		if !strings.Contains(strings.Join(strings.Fields(explained), " "), want) {
			t.Errorf("%q is missing in\n%s", want, explained)
		}
	}
}
