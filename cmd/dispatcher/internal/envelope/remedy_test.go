package envelope_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/envelope"
)

// TestRemediesAreThoseOfTheDocs: the table of dead letters in docs/kafka.md and their schema have
// each code with the text that commands print.
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
	raw, err := os.ReadFile(schemaFolder + "dead.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct{ Reason struct{ Enum []string } }
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	listed := make([]string, len(rows))
	for i, row := range rows {
		listed[i] = row[1]
	}
	if !slices.Equal(listed, schema.Properties.Reason.Enum) {
		t.Errorf("the schema has %v, the docs %v", schema.Properties.Reason.Enum, listed)
	}
	if got := envelope.Code("no such code").Remedy(); got != "" {
		t.Errorf("got %q, want %q", got, "")
	}
}
