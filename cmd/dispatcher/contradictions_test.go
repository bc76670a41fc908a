package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// TestContradictionsAreShown: an answer that denied a message, and a receipt that calls it
// delivered.
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
		Contradictions []contradictionLine `json:"contradictions"`
	}
	for _, more := range [][]string{nil, {"--all"}, {"--channel", "a"}} {
		got := shown[list](t,
			ambiguous(t, url, exitOK,
				append([]string{"list", "--format", "json"}, more...)...)).Contradictions
		if len(got) != 1 || got[0].ID != "order-1" || got[0].Reference != "7F31" ||
			got[0].Outcome != "refused" || got[0].State != "delivered" {
			t.Errorf("%v: %+v", more, got)
		}
	}
	got := ambiguous(t, url, exitOK, "list", "--channel", "b").out
	if got != "No message is ambiguous.\n" {
		t.Errorf("%s", got)
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
		t.Errorf("%s", got)
	}

	told := dispatcher(t, "", []string{"DISPATCHER_POSTGRES_URL=" + url}, "explain", "order-1").out
	for _, want := range []string{
		"However, a receipt of a says", "contradicted", "Its delivery was confirmed", "7F31",
	} {
		if !strings.Contains(strings.Join(strings.Fields(told), " "), want) {
			t.Errorf("%q is missing in\n%s", want, told)
		}
	}
}
