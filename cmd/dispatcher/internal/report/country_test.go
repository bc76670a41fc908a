package report

import (
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/ledger"
)

// byCountry are documents that use countries in one way each, and one that does not.
var byCountry = map[string]string{
	"match": `{channels: {a: {provider: sandbox}}, routes: [{name: default, match: {country: ` +
		`gb}, weights: {a: 1}}]}`,
	"price": `{channels: {a: {provider: sandbox, price: {currency: GBP, default: "1", ` +
		`countries: {gb: "2"}}}}, routes: [{name: default, weights: {a: 1}}]}`,
	"senders": `{channels: {a: {provider: sandbox, senders: {rules: [{country: gb, allow: ` +
		`[long_code]}]}}}, routes: [{name: default, weights: {a: 1}}]}`,
	"blocked": `{channels: {a: {provider: sandbox}}, routes: [{name: default, weights: {a: ` +
		`1}}], blocked: {country: kp}}`,
	"": `{channels: {a: {provider: sandbox}}, routes: [{name: default, match: {prefix: ` +
		`"+44"}, weights: {a: 1}}]}`,
}

// TestExplanationsNameTheCountryWhereItMatters: and never the number.
func TestExplanationsNameTheCountryWhereItMatters(t *testing.T) {
	t.Parallel()
	for name, text := range byCountry {
		doc, err := config.ParseRouting("r", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for to, want := range map[string]string{
			"+442079460123": "Its number is one of GB.", "+447700900123": "Its number has no " +
				"country that is known",
			"+979123456789": "Its number is one of the whole world",
		} {
			m := ledger.Message{
				ID: "m", State: ledger.Accepted,
				Envelope: []byte(`{"id":"m","to":"` + to + `","text":"x"}`),
				Plan:     ledger.Plan{Route: "default", Version: 1},
			}
			s, err := Explain(&Source{Record: &ledger.Record{Message: m}, Doc: doc})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(s.Text, want); got != (name != "") ||
				strings.Contains(s.Text, to[1:]) || s.Country == nil {
				t.Errorf("%s: got %s", name, s.Text)
			}
			if strings.Contains(s.Text, "blocked with the main country") {
				t.Errorf("%s: the message was sent: %s", name, s.Text)
			}
			if spared := strings.Contains(s.Text, "rules about countries block it only "+
				"if"); spared != (name == "blocked" && *s.Country == "") {
				t.Errorf("%s: got %s", name, s.Text)
			}
		}
	}
}

// TestAnExplanationWithoutANumberHasNoCountry: the record of a dead letter may be anything.
func TestAnExplanationWithoutANumberHasNoCountry(t *testing.T) {
	t.Parallel()
	s, err := Explain(&Source{Record: &ledger.Record{Message: ledger.Message{
		ID:    "m",
		State: ledger.Dead, Envelope: []byte(`{`),
	}}})
	if err != nil || s.Country != nil || strings.Contains(s.Text, "country") {
		t.Errorf("got %+v, error %v", s, err)
	}
}

// TestTheExplanationOfABlockedMessageNamesItsCountry: although it was planned under no version.
func TestTheExplanationOfABlockedMessageNamesItsCountry(t *testing.T) {
	t.Parallel()
	m := ledger.Message{
		ID: "m", State: ledger.Rejected, Reason: "blocked_number",
		Envelope: []byte(`{"id":"m","to":"+13575550123","text":"x"}`),
	}
	s, err := Explain(&Source{Record: &ledger.Record{Message: m}})
	if err != nil || !strings.Contains(s.Text, "has no country that is known") ||
		!strings.Contains(s.Text, "block it only if they block the main country of its calling "+
			"code") {
		t.Errorf("got %s, error %v", s.Text, err)
	}
}

// TestWhatIsBlockedForItsBeginningIsNotLaidOnACountry: a prefix is blocked, not a country.
func TestWhatIsBlockedForItsBeginningIsNotLaidOnACountry(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{channels: {a: {provider: sandbox}}, routes: [{name: default, weights: {a: 1}}], ` +
			`blocked: {prefix: "+1357"}}`: false,
		`{channels: {a: {provider: sandbox}}, routes: [{name: default, weights: {a: 1}}], ` +
			`blocked: {country: us}}`: true,
	} {
		doc, err := config.ParseRouting("r", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		blocked := decide.Explanation{Country: new(""), Decision: ledger.Decision{
			State:  ledger.Rejected,
			Reason: "blocked_number",
		}}
		s := forecast(t, "m", &blocked, doc)
		if got := strings.Contains(s.Text, "main country"); got != want ||
			!strings.Contains(s.Text, "has no country that is known") {
			t.Errorf("%s: got %s", text, s.Text)
		}
	}
}

// TestForecastsNameTheCountryThatTheyUse: also for a message that would be rejected.
func TestForecastsNameTheCountryThatTheyUse(t *testing.T) {
	t.Parallel()
	doc, err := config.ParseRouting("r", []byte(byCountry["price"]))
	if err != nil {
		t.Fatal(err)
	}
	sent := decide.Explanation{
		Country: new("gb"), Plan: ledger.Plan{Route: "default"},
		Candidates: []decide.Candidate{{Channel: "a"}},
		Decision:   ledger.Decision{State: ledger.Sending, Attempt: ledger.Attempt{Channel: "a"}},
	}
	if s := forecast(t, "m", &sent, doc); *s.Country != "gb" || !strings.HasPrefix(s.Text,
		"Its number is one of GB. Route default") {
		t.Errorf("got %s", s.Text)
	}
	blocked := decide.Explanation{Country: new(""), Decision: ledger.Decision{
		State:  ledger.Rejected,
		Reason: "blocked_number",
	}}
	if s := forecast(t, "m", &blocked, doc); *s.Country != "" || !strings.Contains(s.Text,
		"such numbers. Its number has no country") {
		t.Errorf("got %s", s.Text)
	}
}
