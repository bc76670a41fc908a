package main

import (
	"strings"
	"testing"
	"time"
)

// TestTheTableOfAmbiguitiesFitsATerminalOf120Columns with long names, and says what is done about
// each.
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
	ended.Verdict, ended.Author, ended.Note = "final", "ann",
		strings.Repeat("nobody at the carrier knows ",
			5)
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
		t.Errorf("%v", csv)
	}
}
