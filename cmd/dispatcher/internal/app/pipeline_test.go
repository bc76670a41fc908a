package app

import (
	"strings"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/selector"
)

const textual = `
channels:
  names:
    provider: sandbox
    price: [{currency: EUR, default: "0.04", countries: {gb: "0.03"}},
      {from: 2027-01-01, default: "0.05"}]
    senders: {rules: [{country: us, allow: [long_code]}]}
  numbers:
    provider: sandbox
    price: {currency: EUR, default: "0.06", networks: {"310": "0.01"}}
    senders: {rules: [{country: us, allow: [long_code], from: "+14155550100"}]}
  turkish:
    provider: smpp
    settings: {address: "127.0.0.1:1", system_id: x,
      shift_locking: [turkish], shift_single: [turkish]}
    price: {currency: EUR, default: "0.04"}
routes:
  - {name: short, match: {tenant: short}, weights: {names: 1, turkish: 0},
     max_segments: 1, substitute: true}
  - {name: all, weights: {names: 1, numbers: 0, turkish: 0}, price_cap: {EUR: "0.05"}}
blocked: {prefixes: ["+4487"], countries: [kp, jm, ru], premium: true}
`

// forecast explains a message under the document above.
func forecast(t *testing.T, m envelope.Message, now time.Time) decide.Explanation {
	t.Helper()
	routing, err := Compile(versionOf(t, textual, ""), 1)
	if err != nil {
		t.Fatal(err)
	}
	m.ID = "m-1"
	if m.Text == "" {
		m.Text = "x"
	}
	return decide.Explain(&decide.ExplainInput{
		Routing: routing, Keys: []selector.Key{{1}}, Now: now,
		Job: decide.Job{Lane: "bulk", Produced: now, Message: m},
	})
}

// reasons returns the candidates' exclusion reasons by channel.
func reasons(a *decide.Explanation) map[string]string {
	out := map[string]string{}
	for _, c := range a.Candidates {
		out[c.Channel] = c.Reason
	}
	return out
}

var autumn = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestADocumentsPricesSendersAndBlocksReachThePipeline(t *testing.T) {
	t.Parallel()
	british := forecast(t, envelope.Message{To: "+447400123456", From: "ACME"}, autumn)
	if a := british.Decision.Attempt; a.Channel != "names" || a.PriceMicros != 30_000 ||
		a.Currency != "EUR" {
		t.Errorf("to a number of GB: %+v", a)
	}
	later := forecast(t, envelope.Message{To: "+447400123456", From: "ACME"},
		autumn.AddDate(0, 2, 0))
	if a := later.Decision.Attempt; a.PriceMicros != 50_000 {
		t.Errorf("next year: %+v", a)
	}
	american := forecast(t, envelope.Message{To: "+14155552671", From: "ACME"}, autumn)
	if got := reasons(&american); got["names"] != "sender" || got["numbers"] != "price_cap" ||
		american.Decision.Attempt.Channel != "turkish" {
		t.Errorf("to America: %v", got)
	}
	network := forecast(
		t,
		envelope.Message{
			To:     "+14155552671",
			From:   "ACME",
			Labels: map[string]selector.Value{"mccmnc": selector.TextValue("310260")},
		},
		autumn,
	)
	if got := reasons(&network); got["numbers"] != "" {
		t.Errorf("to a network with a price of its own: %v", got)
	}
	for _, c := range network.Candidates {
		if c.Replaced != (c.Channel == "numbers") || c.Channel == "numbers" && c.Micros != 10_000 {
			t.Errorf("candidate %+v", c)
		}
	}
}

func TestADocumentsBlocksRejectMessages(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]string{
		"prefix": "+448700000000", "country": "+8501921234567", "premium": "+449098765432",
		"perhaps of Russia": "+72005550123",
	} {
		a := forecast(t, envelope.Message{To: to}, autumn)
		if a.Decision.State != ledger.Rejected || a.Decision.Reason != "blocked_number" {
			t.Errorf("%s: %s %s", name, a.Decision.State, a.Decision.Reason)
		}
	}
	for name, to := range map[string]string{
		"hardly of Jamaica": "+16795550123",
		"of Kazakhstan":     "+77015550123",
	} {
		if a := forecast(t, envelope.Message{To: to}, autumn); a.Decision.State == ledger.Rejected {
			t.Errorf("%s: %s %s", name, a.Decision.State, a.Decision.Reason)
		}
	}
}

func TestNationalTablesOfAChannelDecideWhoCanTakeALongText(t *testing.T) {
	t.Parallel()
	a := forecast(
		t,
		envelope.Message{
			To:     "+447400123456",
			Tenant: "short",
			Text:   "İstanbul’da " + strings.Repeat("ş", 100),
		},
		autumn,
	)
	if got := reasons(&a); a.Problem != nil || got["names"] != "too_long" ||
		a.Decision.Attempt.Channel != "turkish" ||
		a.Decision.Attempt.Segments != 1 {
		t.Errorf("%v, %+v", got, a.Decision)
	}
	if a := forecast(t, envelope.Message{
		To: "+447400123456", Tenant: "short",
		Text: strings.Repeat("я", 71),
	}, autumn); a.Problem == nil ||
		a.Problem.Code != envelope.TooManySegments {
		t.Errorf("got %+v", a)
	}
}
