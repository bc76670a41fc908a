package ledger_test

import (
	"os"
	"strings"
	"testing"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// queryOf is the first query of a page that holds a text.
func queryOf(t *testing.T, page, holds string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```sql\n")[1:] {
		query, _, _ := strings.Cut(block, "```")
		if strings.Contains(query, holds) {
			return strings.TrimRight(strings.TrimSpace(query), ";")
		}
	}
	t.Fatalf("%s has no query with %s", page, holds)
	return ""
}

func TestTheQueryOfTheGuideFindsReceiptsThatContradict(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	m = fallback(t, l, m, provider.Refused)
	settleAll(t, l, expecting(m, "r2"))
	find := `select coalesce(string_agg(concat_ws(' ', message_id, attempt, reference), ','), '')
		from (` + queryOf(t, "receipts.md", "r.part is null") + `) found`
	receive(t, l, receipt("r2", provider.Delivered), keyed(m, 1, "r1", provider.Undelivered))
	if got := see(find); got != "" {
		t.Errorf("found %s", got)
	}
	receive(t, l, keyed(m, 1, "r1", provider.Delivered))
	if got := see(find); got != "m 1 r1" {
		t.Errorf("found %s", got)
	}
}

func TestTheQueryOfTheGuideFindsRejectionsThatNoOptOutCovers(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	optOut(t, l, byHand, subscriber)
	refuse := func(seen *ledger.Seen) (ledger.Decisions, error) {
		d := ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}
		for i := range d.Each {
			d.Each[i] = ledger.Decision{
				State: ledger.Rejected, Reason: "opted_out",
				Plan: seen.Messages[i].Plan,
			}
		}
		return d, nil
	}
	in := []ledger.Message{
		to("barred", "shop", subscriber),
		to("made up", "shop", "+447700900124"), to("another", "bank", subscriber),
	}
	if err := runClaim(t.Context(), l, ledger.Claim{Messages: in}, refuse); err != nil {
		t.Fatal(err)
	}
	optIn(t, l, byHand, subscriber)
	find := `select string_agg(id, ', ' order by id) from (` + queryOf(t, "audit.md", "opted_out") +
		`) found`
	if got := scalar[string](t, db, find); got != "another, made up" {
		t.Errorf("found %s", got)
	}
}
