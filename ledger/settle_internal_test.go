package ledger

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// partsOf returns the parts of a WITH statement by name, each with its comment. The statement
// behind them has the name "".
func partsOf(sql string) map[string]string {
	parts, begin := map[string]string{}, 0
	for _, at := range regexp.MustCompile(`(?ms)^(\w+) as (?:materialized )?\(\n.*?^\),?\n`).
		FindAllStringSubmatchIndex(sql, -1) {
		parts[sql[at[2]:at[3]]] = sql[begin:at[1]]
		begin = at[1]
	}
	parts[""] = sql[begin:]
	return parts
}

// TestBothSettlementsShareTheirParts: what settle.sql and settle_more.sql have in common is written
// in both, so that each can be read as a whole.
func TestBothSettlementsShareTheirParts(t *testing.T) {
	t.Parallel()
	more := partsOf(settleMoreText)
	extended := map[string]bool{"done": true, "freed": true}
	for name, text := range partsOf(settleText) {
		switch diff := cmp.Diff(text, more[name]); {
		case !extended[name] && diff != "":
			t.Errorf("part %q of settle.sql and of settle_more.sql:\n%s", name, diff)
		case extended[name] && diff == "":
			t.Errorf("part %q is the same in both: compare it", name)
		}
	}
}
