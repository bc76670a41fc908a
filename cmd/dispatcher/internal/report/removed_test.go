package report

import (
	"encoding/json"
	"strings"
	"testing"

	"dispatcher/ledger"
)

// TestWithoutPayloadTheRestIsExplained: as with payload.
func TestWithoutPayloadTheRestIsExplained(t *testing.T) {
	t.Parallel()
	doc := document("default", "a", "25", "b", "75")
	whole := newRecord(ledger.Accepted, ledger.AttemptRecord{
		Attempt: ledger.Attempt{Channel: "a", Reason: ledger.ByFirstChoice, Segments: 1},
		Outcome: "accepted",
	})
	before, err := explained(whole, doc)
	if err != nil {
		t.Fatal(err)
	}
	stripped := *whole
	stripped.PayloadGone, stripped.Message.Envelope, stripped.Message.CallingCode = true, nil, 44
	e, err := explained(&stripped, doc)
	if err != nil {
		t.Fatal(err)
	}
	const removed = "Its number (one of +44) and its text are not kept any more. "
	if !strings.Contains(e.Text, removed) ||
		strings.Replace(e.Text, removed, "", 1) != before.Text {
		t.Errorf("%s\nbefore it was\n%s", e.Text, before.Text)
	}
	data, err := json.Marshal(e)
	if err != nil || !strings.Contains(string(data), `"payload_gone":true,"calling_code":44`) ||
		e.Country != nil {
		t.Errorf("got %s, error %v", data, err)
	}
	stripped.Message.CallingCode = 0
	if e, err = explained(&stripped, doc); err != nil ||
		!strings.Contains(e.Text, "Its number and its text are not kept any more.") {
		t.Errorf("got %s, error %v", e.Text, err)
	}
}
