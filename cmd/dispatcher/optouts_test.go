package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger/ledgertest"
)

// optOuts runs a subcommand of optouts and expects its exit code.
func optOuts(t *testing.T, url, stdin string, code int, args ...string) result {
	t.Helper()
	got := dispatcher(t, stdin, []string{"DISPATCHER_POSTGRES_URL=" + url},
		append([]string{"optouts"}, args...)...)
	if got.code != code {
		t.Fatalf("%v: got %+v, want exit code %d", args, got, code)
	}
	for _, digits := range []string{"7700900123", "7700 900123", "7700900124", "7700900125"} {
		if strings.Contains(got.out+got.err, digits) {
			t.Errorf("%v shows a number: %+v", args, got)
		}
	}
	return got
}

// shown decodes the JSON of a result, without what differs from run to run.
func shown[T any](t *testing.T, got result) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(got.out), &value); err != nil {
		t.Fatalf("%v in %s", err, got.out)
	}
	return value
}

func TestOptOutsAreAddedShownAndRemoved(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	by := []string{"--tenant", "shop", "--author", "ann"}
	got := optOuts(t, url, "", exitOK,
		append([]string{
			"add", "+44 7700 900123", "07700-900124", "--default-region", "GB",
			"--reason", "asked by letter",
		},
			by...)...)
	if got.out != "2 of 2 put on the list.\n" {
		t.Errorf("got %+v, want the output %q", got, "2 of 2 put on the list.\n")
	}
	got = optOuts(t, url, "", exitOK,
		append([]string{"add", "00447700900123", "--reason", "again", "--format", "json"},
			by...)...)
	if done := shown[listChanged](t, got); done != changedList("shop", 1, 0, 0) {
		t.Errorf("got %+v", done)
	}
	got = optOuts(t, url, "", exitOK, "show", "+447700900123", "--tenant", "shop")
	if !strings.Contains(got.out, "asked by letter") {
		t.Errorf("got %+v, want %q in the output", got, "asked by letter")
	}
	optOuts(t, url, "", exitOK,
		append([]string{"remove", "+447700900123", "--reason", "asked by phone"}, by...)...)
	history := shown[struct {
		OptedOut bool             `json:"opted_out"`
		History  []control.OptOut `json:"history"`
	}](t,
		optOuts(t, url, "", exitOK, "show", "+447700900123", "--tenant", "shop",
			"--format", "json"))
	h := history.History
	if history.OptedOut || len(h) != 1 || h[0].Reason != "asked by letter" ||
		h[0].EndedReason != "asked by phone" || h[0].EndedBy != "command" || h[0].Until == nil {
		t.Errorf("got %+v", history)
	}
	if login := loginOf(t, url); h[0].Login != login || h[0].EndedLogin != login {
		t.Errorf("the logins are %q and %q, want %q", h[0].Login, h[0].EndedLogin, login)
	}
	table := optOuts(t, url, "", exitOK,
		append([]string{"show", "+447700900123", "--tenant", "shop"}, "--format", "table")...)
	for line := range strings.SplitSeq(table.out, "\n") {
		if n := utf8.RuneCountInString(line); n > 120 {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
	if !strings.Contains(table.out, "command ann") {
		t.Errorf("got %s, want %q in it", table.out, "command ann")
	}
	list := optOuts(t, url, "", exitOK, "list")
	if !strings.Contains(list.out, "1 opt-out ") || strings.Contains(list.out, "1 opt-outs") {
		t.Errorf("got %s, want %q in it and no %q in it", list.out, "1 opt-out ", "1 opt-outs")
	}
	got = optOuts(t, url, "", exitOK, "show", "+447700900123", "--tenant", "")
	if !strings.Contains(got.out, "not on the list and never was") {
		t.Errorf("got %+v, want %q in the output", got, "not on the list and never was")
	}
}

// changedList is the result of a change of a list.
func changedList(tenant string, numbers int, changed int64, skipped int) listChanged {
	return listChanged{control.OptOutsChanged{
		Tenant: tenant, Numbers: numbers, Changed: changed,
	}, skipped}
}

func TestAChangeOfAListShowsTheOtherEntries(t *testing.T) {
	t.Parallel()
	for want, done := range map[string]listChanged{
		"3 of 3 put on the list.":                               changedList("", 3, 3, 0),
		"2 of 3 put on the list; the other was on it before.":   changedList("", 3, 2, 0),
		"1 of 3 put on the list; the others were on it before.": changedList("", 3, 1, 0),
		"0 of 1 put on the list; it was on it before.":          changedList("", 1, 0, 0),
		"0 of 3 put on the list; they were on it before.":       changedList("", 3, 0, 0),
	} {
		if got := putOn(&done); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	some := changedList("", 2, 1, 0)
	got := takenOff(&some)
	if got != "1 of 2 taken off the list; the other was not on it." {
		t.Error(got)
	}
	some = changedList("", 2, 2, 1)
	got = imported(&some)
	if got != "2 of 2 put on the list. 1 line was left out." {
		t.Error(got)
	}
}

func TestAListOfNumbersIsImported(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	import1 := []string{"import", "--tenant", "shop", "--reason", "old system", "--format", "json"}
	const list = "\xef\xbb\xbfnumber,since\r\n+447700900123,2024\r\n\"+44 7700 " +
		"900124\",2025\r\n\r\n+447700900123;x\r\n"
	done := shown[listChanged](t, optOuts(t, url, list, exitOK, import1...))
	if done != changedList("shop", 3, 2, 0) {
		t.Errorf("got %+v", done)
	}
	file := write(t, "more.csv", "+447700900124\nnobody\n0123\n+447700900125\n")
	got := optOuts(t, url, "", exitUsage, append(import1, file)...)
	if !strings.Contains(got.err, "in line 2, 3: nothing was imported") {
		t.Errorf("got %+v, want %q in the error", got, "in line 2, 3: nothing was imported")
	}
	done = shown[listChanged](t, optOuts(t, url, "", exitOK, append(import1, file, "--skip")...))
	if done != changedList("shop", 2, 1, 2) {
		t.Errorf("got %+v", done)
	}
	type count struct {
		Tenant, Source string
		Current        int64
	}
	counts := shown[struct {
		Current int64   `json:"current"`
		OptOuts []count `json:"opt_outs"`
	}](t, optOuts(t, url, "", exitOK, "list", "--format", "json"))
	diff := cmp.Diff([]count{{"shop", "import", 3}}, counts.OptOuts)
	if diff != "" || counts.Current != 3 {
		t.Errorf("%d opt-outs: %s", counts.Current, diff)
	}
	got = optOuts(t, url, "", exitOK, "list", "--tenant", "bank")
	if !strings.Contains(got.out, "0 opt-outs") {
		t.Errorf("got %+v, want %q in the output", got, "0 opt-outs")
	}
	got = optOuts(t, url, "", exitOK, "list", "--format", "csv")
	if !strings.HasPrefix(got.out,
		"tenant,source,channel,current,ended,first,last\nshop,import,,3,0,") {
		t.Errorf("got %+v, want output that begins with %q",
			got, "tenant,source,channel,current,ended,first,last\nshop,import,,3,0,")
	}
}

func TestMistakesWithOptOutsAreNamedWithoutNumbers(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--tenant is missing": {"add", "+447700900123", "--reason", "x"},
		"--reason is missing": {"add", "+447700900123", "--tenant", "shop"},
		"--author is empty": {
			"remove", "+447700900123", "--tenant", "shop", "--reason", "x", "--author", " ",
		},
		"argument 2 is not a number": {
			"add", "+447700900123", "7700900124", "--tenant", "shop", "--reason", "x",
		},
		"argument 1 is not a number": {"show", "++447700900123", "--tenant", "shop"},
		"is not a country code": {
			"show", "+447700900123", "--tenant", "shop", "--default-region", "XQ",
		},
		"correct the path": {
			"import", "no/such/file", "--tenant", "shop", "--reason", "x",
		},
		"name what to do: add, import,": {},
	} {
		got := optOuts(t, "postgres://127.0.0.1:1/none", "", exitUsage, args...)
		if !strings.Contains(got.err, want) {
			t.Errorf("%v: want %q, got %+v", args, want, got)
		}
	}
}
