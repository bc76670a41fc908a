package report

import (
	"strings"
	"testing"

	"dispatcher/ledger"
)

func TestAnOptOutIsExplained(t *testing.T) {
	t.Parallel()
	never := newRecord(ledger.Rejected)
	never.Message.Reason = "opted_out"
	nameless := newRecord(ledger.Rejected)
	nameless.Message.Reason, nameless.Message.Tenant = "opted_out", ""
	between := newRecord(ledger.Rejected, attempt("a", ledger.ByFirstChoice, outcomeRefused,
		"dial"))
	between.Message.Reason = "opted_out"
	byProvider := newRecord(ledger.Rejected, attempt("a", ledger.ByFirstChoice, outcomeRejected,
		"0x0000000b"))
	for record, want := range map[*ledger.Record]string{
		never: "The recipient had opted out of messages of shop, so nothing was sent.",
		nameless: "The recipient had opted out of messages without a tenant, so nothing was " +
			"sent.",
		between:    "The recipient had opted out of messages of shop, so it was not tried again.",
		byProvider: "",
	} {
		s, err := explained(record, london(t))
		if err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(s.Text, "opted out"); told != (want != "") ||
			!strings.HasSuffix(s.Text, want) {
			t.Errorf("want %q, got %q", want, s.Text)
		}
	}
}
