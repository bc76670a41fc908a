package report

import (
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/ledger"
)

func TestTheExplanationNamesAReplacedSender(t *testing.T) {
	t.Parallel()
	const rules = `
channels:
  a: {provider: sandbox, senders: {rules: [{country: us, allow: [long_code], from: "+14155550100"}]}}
  b: {provider: sandbox}
routes: [{name: default, weights: {a: 1, b: 1}}]
`
	doc, err := config.ParseRouting("r", []byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		envelope string
		channel  string
		want     bool
	}{
		"a name to America": {
			`{"id":"m","to":"+14155552671","from":"ACME","text":"x"}`, "a",
			true,
		},
		"a number to America": {
			`{"id":"m","to":"+14155552671","from":"+14155550111","text":"x"}`,
			"a", false,
		},
		"a name to Britain": {
			`{"id":"m","to":"+447400123456","from":"ACME","text":"x"}`, "a",
			false,
		},
		"no sender": {`{"id":"m","to":"+14155552671","text":"x"}`, "a", false},
		"on another channel": {
			`{"id":"m","to":"+14155552671","from":"ACME","text":"x"}`, "b",
			false,
		},
		"a channel that is gone": {
			`{"id":"m","to":"+14155552671","from":"ACME","text":"x"}`, "c",
			false,
		},
		"a damaged record": {`{`, "a", false},
	} {
		r := newRecord(ledger.Accepted, attempt(c.channel, ledger.ByFirstChoice, outcomeAccepted,
			""))
		r.Message.Envelope = []byte(c.envelope)
		e := explain(t, r, doc)
		got := strings.Contains(e.Text, "under the sender that it has for the country in place of")
		leaked := strings.Contains(e.Text, "415") || strings.Contains(e.Text, "ACME")
		if got != c.want || leaked || e.Attempts[0].SenderReplaced != c.want {
			t.Errorf("%s: got %q", name, e.Text)
		}
		r.Attempts[0].Ranking = decide.AppendRanking(nil, &decide.Ranking{
			Version: 4,
			By:      "load_ratio",
		})
		if explain(t, r, doc).Attempts[0].SenderReplaced {
			t.Errorf("%s: explained an attempt of another version", name)
		}
	}
}

func TestAForecastHasCostSenderAndRejection(t *testing.T) {
	t.Parallel()
	doc, err := config.ParseRouting("r",
		[]byte(`{channels: {a: {provider: sandbox}}, routes: [{name: default, weights: {a: 1}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	answer := decide.Explanation{
		Plan: ledger.Plan{Route: "default"},
		Candidates: []decide.Candidate{{
			Channel: "a", Segments: 2, Micros: 62_000, Currency: "GBP",
			Replaced: true,
		}},
		Decision: ledger.Decision{State: ledger.Sending, Attempt: ledger.Attempt{Channel: "a"}},
	}
	s := forecast(t, "m", &answer, doc)
	for _, want := range []string{
		"It would cost 0.062 GBP for 2 segments.",
		"Its sender would be replaced",
	} {
		if !strings.Contains(s.Text, want) {
			t.Errorf("%q does not contain %q", s.Text, want)
		}
	}
	if c := s.Candidates[0]; *c.Segments != 2 || *c.CostMicros != 62_000 || c.Currency != "GBP" ||
		!c.SenderReplaced {
		t.Errorf("got %+v", c)
	}
	blocked := decide.Explanation{Decision: ledger.Decision{
		State:  ledger.Rejected,
		Reason: "blocked_number",
	}}
	s = forecast(t, "m", &blocked, doc)
	if s.State != "would_reject" || !strings.Contains(s.Text,
		"rejected, because nothing is sent to such numbers") {
		t.Errorf("%s: got %s", s.State, s.Text)
	}
}
