package main

import (
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// ambiguousMessages stores messages that channel a never answered. The words name the state of
// each: still searched for, given up, or one part accepted without an id.
func ambiguousMessages(t *testing.T, l *ledger.Ledger, ids ...string) []ledger.Message {
	t.Helper()
	drawnAll := make([]ledger.Message, len(ids))
	for i, id := range ids {
		drawnAll[i] = drawn(id, int64(i), "a")
	}
	stored := claimed(t, l, drawnAll...)
	var all []ledger.Settlement
	for i := range stored {
		m := &stored[i]
		d := &ledger.Ambiguity{
			Key: "key of " + m.ID, Step: ledger.AwaitReceipt, Until: time.Now().Add(time.Hour),
			NextAt: time.Now().Add(time.Hour),
		}
		s := ledger.Settlement{
			Seq: m.Seq, ID: m.ID, Attempt: 1, Outcome: provider.Unknown, Code: "timeout",
			Segments: 1, PriceMicros: 28_000, State: ledger.Unknown,
			Receipts: 1, Await: 4 * time.Hour, Ambiguity: d,
		}
		switch {
		case strings.HasPrefix(m.ID, "final"):
			d.Step, d.ResolvedAs, d.NextAt, s.Reason = ledger.NoStep, ledger.Unresolved,
				time.Time{}, "ambiguous_final"
		case strings.HasPrefix(m.ID, "part"):
			d.Partly = true
		}
		all = append(all, s)
	}
	if err := l.Settlements.Settle(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	return stored
}

// ambiguous runs a subcommand over a database and requires its exit code.
func ambiguous(t *testing.T, url string, code int, args ...string) result {
	t.Helper()
	got := dispatcher(t, "", []string{"DISPATCHER_POSTGRES_URL=" + url},
		append([]string{"ambiguous"}, args...)...)
	if got.code != code || strings.Contains(got.out+got.err, "7700900123") {
		t.Fatalf("%v: got %+v", args, got)
	}
	return got
}

// settleAs settles a message as an operator does, with "ambiguous settle".
func settleAs(t *testing.T, url string, code int, id, as string, more ...string) result {
	t.Helper()
	return ambiguous(t, url, code,
		append([]string{
			"settle", id, "--as", as, "--author", "ann", "--reason", "in the log of today.",
		},
			more...)...)
}

func TestAmbiguitiesAreListedOldestFirst(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := openSeeded(t, url)
	if got := ambiguous(t, url, exitOK, "list"); got.out != "No message is ambiguous. --all also lists those that stayed unknown.\n" {
		t.Errorf("got %+v, want the output %q", got, "No message is ambiguous. --all also lists those that stayed unknown.\n")
	}
	ambiguousMessages(t, l, "open-1")
	ambiguousMessages(t, l, "final-1")
	type list struct {
		Ambiguous []ambiguityLine `json:"ambiguous"`
	}
	open := shown[list](t, ambiguous(t, url, exitOK, "list", "--format", "json")).Ambiguous
	if len(open) != 1 || open[0].ID != "open-1" || open[0].Step != "receipt" ||
		open[0].Verdict != "" || time.Until(open[0].Until) < 50*time.Minute {
		t.Errorf("got %+v", open)
	}
	all := shown[list](t, ambiguous(t, url, exitOK, "list", "--all", "--format", "json")).Ambiguous
	if len(all) != 2 || all[1].ID != "final-1" || all[1].Verdict != "final" ||
		all[1].PriceMicros != 28_000 || all[1].Currency != "GBP" || all[1].Code != "timeout" {
		t.Errorf("got %+v", all)
	}
	if all[1].Until.After(time.Now().Add(time.Minute)) {
		t.Errorf("the search ended at once, but its end is shown as %s", all[1].Until)
	}
	got := shown[list](t,
		ambiguous(t, url, exitOK, "list", "--all", "--limit", "1", "--format", "json")).Ambiguous
	if len(got) != 1 {
		t.Errorf("got %+v, want %d of them", got, 1)
	}

	table := ambiguous(t, url, exitOK, "list", "--all").out
	for _, want := range []string{"open-1", "final-1", "0.028", "timeout", "receipt", "final"} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is missing in\n%s", want, table)
		}
	}
	for line := range strings.SplitSeq(table, "\n") {
		if n := utf8.RuneCountInString(line); n > 120 {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
}

// TestAmbiguitiesHaveTheKeysThatScriptsRelyOn compares the keys of JSON and CSV with
// docs/commands.md.
func TestAmbiguitiesHaveTheKeysThatScriptsRelyOn(t *testing.T) {
	t.Parallel()
	keys := strings.Fields("id lane tenant channel attempt segments price_micros currency code " +
		"step opened_at until asked verdict author note login via")
	url := ledgertest.URL(t)
	ambiguousMessages(t, openSeeded(t, url), "open-1")
	var got struct {
		Ambiguous []map[string]json.RawMessage
		Total     int
	}
	if err := json.Unmarshal([]byte(ambiguous(t, url, exitOK, "list", "--format", "json").out),
		&got); err != nil || len(got.Ambiguous) != 1 || got.Total != 1 {
		t.Fatal(err, got)
	}
	for _, key := range keys {
		if _, ok := got.Ambiguous[0][key]; !ok {
			t.Errorf("%s is missing in %v", key, got)
		}
	}
	lines, err := csv.NewReader(strings.NewReader(ambiguous(t, url, exitOK, "list",
		"--format", "csv").out)).ReadAll()
	if err != nil || len(lines) != 2 || !slices.Equal(lines[0], keys) {
		t.Errorf("got %v, error %v", lines, err)
	}
}

func TestAnOperatorSettlesAnAmbiguity(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		id, as    string
		more      []string
		state     string
		explained string // by explain
	}{
		"taken": {
			"open-1", "taken",
			[]string{"--reference", "8a71"},
			"accepted",
			"an operator settled after",
		},
		"taken, without id": {
			"open-1", "taken", nil, "accepted", "ann settled it as taken: in the log of today.",
		},
		"not taken":    {"open-1", "not_taken", nil, "retry", "that it had not been taken"},
		"final":        {"open-1", "final", nil, "unknown", "ann settled it as final"},
		"a final word": {"final-1", "taken", nil, "accepted", "that it had been taken"},
		"partly taken": {"part-1", "taken", nil, "accepted", "that it had been taken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := ledgertest.URL(t)
			ambiguousMessages(t, openSeeded(t, url), tc.id)
			got := settleAs(t, url, exitOK, tc.id, tc.as, tc.more...)
			want := "State of the message: " + tc.state + ".\n"
			if !strings.HasSuffix(got.out, want) {
				t.Errorf("got %q", got.out)
			}
			explanation := shown[report.Explanation](t,
				dispatcher(t, "", []string{"DISPATCHER_POSTGRES_URL=" + url}, "explain", tc.id,
					"--format", "json"))
			who := "ann (login " + loginOf(t, url) + ")"
			explained := strings.Replace(tc.explained, "ann", who, 1)
			if !strings.Contains(explanation.Text, explained) ||
				strings.Contains(explanation.Text, "a accepted it") {
				t.Errorf("got %s, want %q in it and no %q in it", explanation.Text, explained, "a accepted it")
			}
			d := explanation.Ambiguities
			if len(d) != 1 || d[0].Resolution != tc.as || d[0].Author != "ann" ||
				d[0].Login != loginOf(t, url) ||
				!strings.HasPrefix(d[0].Note, "in the log of today.") {
				t.Errorf("got %+v", d)
			}
			if tc.state != "unknown" {
				return // it is in no list any more
			}
			list := shown[struct{ Ambiguous []ambiguityLine }](t,
				ambiguous(t, url, exitOK, "list", "--all", "--format", "json"))
			if a := list.Ambiguous; len(a) != 1 || a[0].Author != "ann" || a[0].Login != loginOf(t, url) {
				t.Errorf("got %+v", a)
			}
		})
	}
}

// TestAReceiptFindsWhatAnOperatorSettledAsTaken: the receipt finds the message during the time for
// which the channel's receipts were expected when the message was sent.
func TestAReceiptFindsWhatAnOperatorSettledAsTaken(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{false, true} {
		url := ledgertest.URL(t)
		l := openSeeded(t, url)
		ambiguousMessages(t, l, "open-1")
		receive := func() {
			receipt := ledger.Receipt{Channel: "a", Reference: "8a71", State: provider.Delivered}
			_, err := l.Receipts.Receive(t.Context(), []ledger.Receipt{receipt},
				func(*ledger.Closing) *ledger.Notice {
					return nil
				})
			if err != nil {
				t.Fatal(err)
			}
		}
		if early {
			receive()
		}
		settleAs(t, url, exitOK, "open-1", "taken", "--reference", "8a71")
		if !early {
			receive()
		}
		if _, err := l.Receipts.Overdue(t.Context(), 10,
			func(*ledger.Closing) *ledger.Notice { return nil }); err != nil {
			t.Fatal(err)
		}
		record, err := l.Messages.Record(t.Context(), "open-1")
		if err != nil || record.Message.State != ledger.Delivered ||
			record.Attempts[0].Reference != "8a71" {
			t.Errorf("receipt early %t: %+v, %v", early, record, err)
		}
	}
}

func TestWhatCannotBeSettledIsRefused(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := openSeeded(t, url)
	stored := ambiguousMessages(t, l, "part-1", "known-1", "open-1", "open-2")
	settled(t, l, stored[1:2]) // answered late
	settleAs(t, url, exitOK, "open-2", "taken")
	for name, tc := range map[string]struct {
		code int
		want string
		args []string
	}{
		"no verdict": {
			exitUsage, "--as must be taken, not_taken or final",
			[]string{"open-1", "--reason", "r"},
		},
		"another verdict": {
			exitUsage, "--as must be", []string{"open-1", "--as", "resent", "--reason", "r"},
		},
		"no reason": {
			exitUsage, "--reason is missing", []string{"open-1", "--as", "final", "--reason", " "},
		},
		"nobody": {
			exitUsage, "--author is empty",
			[]string{"open-1", "--as", "final", "--reason", "r", "--author", ""},
		},
		"an id that does not exist": {
			exitUsage, "--reference goes with --as taken",
			[]string{"open-1", "--as", "final", "--reason", "r", "--reference", "x"},
		},
		"no message": {exitUsage, "", nil},
		"an unknown message": {
			exitFailed, "no message has this id",
			[]string{"nobody", "--as", "final", "--reason", "r"},
		},
		"what was answered": {
			exitFailed, "is not ambiguous", []string{"known-1", "--as", "final", "--reason", "r"},
		},
		"what is certain": {
			exitFailed, "is not ambiguous",
			[]string{"open-2", "--as", "not_taken", "--reason", "r"},
		},
		"what was partly taken": {
			exitFailed, "known to have been taken in part",
			[]string{"part-1", "--as", "not_taken", "--reason", "r"},
		},
	} {
		got := ambiguous(t, url, tc.code, append([]string{"settle"}, tc.args...)...)
		if !strings.Contains(got.err, tc.want) {
			t.Errorf("%s: got %+v, want %q in the error", name, got, tc.want)
		}
	}
	got := ambiguous(t, url, exitUsage, "list", "--limit", "0")
	if !strings.Contains(got.err, "--limit must be above 0") {
		t.Errorf("got %+v, want %q in the error", got, "--limit must be above 0")
	}
	for id, want := range map[string]ledger.State{
		"part-1": ledger.Unknown, "known-1": ledger.Accepted, "open-1": ledger.Unknown,
		"open-2": ledger.Accepted,
	} {
		record, err := l.Messages.Record(t.Context(), id)
		if err != nil || record.Message.State != want {
			t.Errorf("%s is %s, %v", id, record.Message.State, err)
		}
	}
}

// TestWhatNobodyKnowsIsStoredAsPossiblyBillable: in the daily report and in the audit views, before
// and after the search ends.
func TestWhatNobodyKnowsIsStoredAsPossiblyBillable(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	ambiguousMessages(t, openSeeded(t, url), "open-1", "open-2", "final-1")
	settleAs(t, url, exitOK, "open-1", "final")
	settleAs(t, url, exitOK, "open-2", "taken")
	env := []string{"DISPATCHER_POSTGRES_URL=" + url}
	daily := shown[report.Daily](t, dispatcher(t, "", env, "report", "daily", "--format", "json"))
	if len(daily.Rows) == 0 {
		t.Fatal("no rows")
	}
	a := daily.Rows[0]
	if a.Unknown != 2 || a.UnknownSegments != 2 || a.UnknownMicros != 56_000 || a.Accepted != 1 ||
		a.Segments != 1 || a.CostMicros != 28_000 {
		t.Errorf("got %+v", a)
	}
	stored := queryOne[string](t, url, `
		select string_agg(concat_ws(' ', a.message_id, a.outcome, a.segments, a.price_micros,
		a.currency, d.verdict), ', ' order by a.message_id)
		from audit.attempts a join audit.ambiguous d on d.message_id = a.message_id
		and d.last_attempt = a.attempt`)
	want := "final-1 unknown 1 28000 GBP final, open-1 unknown 1 28000 GBP final, open-2 " +
		"accepted 1 28000 GBP taken"
	if stored != want {
		t.Errorf("got %s stored", stored)
	}
}

// TestTheTableOfAmbiguitiesFitsATerminalOf120Columns: also with long names. The table says what is
// being done about each message.
func TestTheTableOfAmbiguitiesFitsATerminalOf120Columns(t *testing.T) {
	t.Parallel()
	open := ambiguityLine{
		ID: "8d1f0c9a-3b7e-4c55-9a51-0f6f2b8f1c77", Lane: "transactional", Tenant: "a-large-tenant",
		Channel: "provider-west-2", Attempt: 12, Segments: 10,
		PriceMicros: 12_345_678, Currency: "GBP", Code: "closed_without_answer", Step: "same_key",
		OpenedAt: time.Date(2026,
			11, 21, 10, 0, 0, 0, time.UTC),
		Until: time.Date(2026, 11, 21, 10, 5, 0, 0, time.UTC), Asked: 3,
	}
	ended := open
	ended.Verdict = "final"
	ended.Author = "ann"
	ended.Note = strings.Repeat("nobody at the carrier knows ", 5)
	var out strings.Builder
	ambiguitySheet([]ambiguityLine{open, ended}, formatTable).draw(&out)
	atMost120(t, out.String())
	words := strings.Join(strings.Fields(strings.ReplaceAll(out.String(), "│", " ")), " ")
	for _, want := range []string{
		"provider-west-2", "12 on", "same_key", "2026-11-21", "10:05:00", "final", "12.345678",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	csv := ambiguitySheet([]ambiguityLine{ended}, formatCSV)
	if len(csv.header) != len(csv.rows[0]) || csv.rows[0][0] != ended.ID ||
		csv.rows[0][15] != ended.Note {
		t.Errorf("got %v", csv)
	}
}
