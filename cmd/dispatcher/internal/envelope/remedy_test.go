package envelope_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/envelope"
)

// TestRemediesAreThoseOfTheDocs: the table of dead letters in docs/kafka.md has each code with the
// words that commands print.
func TestRemediesAreThoseOfTheDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/kafka.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| reason | what to do |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*) \\|$").FindAllStringSubmatch(table, -1)
	if len(rows) < 10 {
		t.Fatalf("the table has only %d rows", len(rows))
	}
	for _, row := range rows {
		want := strings.ReplaceAll(row[2], "`", "")
		if got := envelope.Code(row[1]).Remedy(); got != want {
			t.Errorf("%s: %q, and in the docs %q", row[1], got, want)
		}
	}
	if got := envelope.Code("no such code").Remedy(); got != "" {
		t.Errorf("%q", got)
	}
}
