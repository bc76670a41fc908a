package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// drawn returns a message of testRouting whose draw picked first.
func drawn(id string, draw int64, first string) ledger.Message {
	return ledger.Message{
		ID: id, Lane: "otp", Tenant: "shop", State: ledger.Sending, Digest: 1,
		ExpiresAt: time.Now().Add(time.Hour),
		Envelope:  []byte(`{"id":"` + id + `","to":"+447700900123","text":"Your code is 123456"}`),
		Plan: ledger.Plan{
			Route: "default", Version: 1, Draw: draw, Size: 100, KeyID: "k1", FirstChoice: first,
			Segments: 1, Alphabet: "gsm7",
		},
	}
}

// settled stores that the first attempt of each message was accepted.
func settled(t *testing.T, l *ledger.Ledger, messages []ledger.Message) {
	t.Helper()
	var all []ledger.Settlement
	for i := range messages {
		all = append(all, ledger.Settlement{
			Seq: messages[i].Seq, ID: messages[i].ID, Attempt: 1, Outcome: provider.Accepted,
			Reference: "ref-" +
				messages[i].ID,
			Segments: 1, PriceMicros: 28_000, State: ledger.Accepted,
		})
	}
	if err := l.Settlements.Settle(t.Context(), all); err != nil {
		t.Fatal(err)
	}
}

func TestExplainShowsTheRecord(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := openSeeded(t, url)
	settled(t, l, claimed(t, l, drawn("order-7731", 17, "a")))
	env := []string{"DISPATCHER_POSTGRES_URL=" + url}

	got := dispatcher(t, "", env, "explain", "order-7731")
	for _, want := range []string{
		"draw was 17 of 0 to 99", "0 to 24 of a", "for shop", "reference ref-order-7731",
		"0.028 GBP",
	} {
		if !strings.Contains(strings.Join(strings.Fields(got.out), " "), want) {
			t.Errorf("%q is missing in %s", want, got.out)
		}
	}
	var explanation report.Explanation
	err := json.Unmarshal([]byte(dispatcher(t, "", env, "explain", "order-7731",
		"--format", "json").out),
		&explanation)
	if err != nil {
		t.Fatal(err)
	}
	if explanation.Route != "default" || explanation.Mode != "weighted" || *explanation.Size != 100 ||
		channelOf(&explanation) != "a" || len(explanation.Attempts) != 1 || explanation.State != "accepted" {
		t.Errorf("got %+v", explanation)
	}
	if got.code != exitOK || strings.Contains(got.out, "447700900123") ||
		strings.Contains(got.out, "Your code") {
		t.Errorf("got %+v, want exit code %d, no %q in the output and no %q in the output",
			got, exitOK, "447700900123", "Your code")
	}

	unknown := dispatcher(t, "", env, "explain", "order 1")
	if unknown.code != exitFailed || unknown.out != "" ||
		!strings.Contains(unknown.err, "no message has the id 'order 1'") {
		t.Errorf("got %+v, want exit code %d, no output and %q in the error",
			unknown, exitFailed, "no message has the id 'order 1'")
	}
}

// forecastOf runs explain on files and returns the explanation.
func forecastOf(t *testing.T, message, state string, more ...string) (report.Explanation, result) {
	t.Helper()
	args := append([]string{
		"explain", "--routing", write(t, "routing.yaml", testRouting), "--message",
		write(t, "message.json", message), "--format", "json",
	}, more...)
	if state != "" {
		args = append(args, "--state", write(t, "state.json", state))
	}
	got := dispatcher(t, "", nil, args...)
	var explanation report.Explanation
	if err := json.Unmarshal([]byte(got.out), &explanation); err != nil && got.code != exitUsage {
		t.Fatalf("%v: got %+v", err, got)
	}
	return explanation, got
}

const testMessage = `{"id":"order-1","to":"+447700900123","text":"hi"}`

// TestForecastRanksByTheStateGiven: under the demo key order-1 draws 46 of 100, which is c.
func TestForecastRanksByTheStateGiven(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ state, chosen, order string }{
		"idle": {"", "c", "c,a,b"},
		"c is down": {
			`{"channels":{"c":{"ready":false},"a":{"active":80},"b":{"active":40}}}`, "b",
			"c!not_ready,b,a",
		},
		"a tie": {
			`{"channels":{
				"c":{"ready":false},
				"a":{"active":4,"last_assigned":"2026-11-21T10:00:00Z"},
				"b":{"active":4,"last_assigned":"2026-11-21T09:59:59Z"}}}`,
			"b", "c!not_ready,b,a",
		},
		"nobody ready": {
			`{"channels":{"a":{"ready":false},"b":{"ready":false},"c":{"ready":false}}}`, "",
			"c!not_ready,a!not_ready,b!not_ready",
		},
	} {
		explanation, got := forecastOf(t, testMessage, tc.state)
		var order []string
		for _, c := range explanation.Candidates {
			one := c.Channel
			if !*c.Eligible {
				one += "!" + c.Reason
			}
			if c.LoadRatio == nil || c.Score != nil {
				t.Errorf("%s: got %+v", name, c)
			}
			order = append(order, one)
		}
		if got.code != exitOK || *explanation.Draw != 46 || *explanation.Size != 100 ||
			channelOf(&explanation) != tc.chosen || strings.Join(order, ",") != tc.order {
			t.Errorf("%s: draw %d chosen %q order %v (exit %d)", name, *explanation.Draw,
				channelOf(&explanation), order, got.code)
		}
		if !strings.Contains(explanation.Text, "public demo key") {
			t.Errorf("%s: the text does not name the draw key: %s", name, explanation.Text)
		}
	}
}

// TestForecastNamesTheCountryOfTheNumber: the output names the country of the number, so that a
// user sees why a rule by country did not match.
func TestForecastNamesTheCountryOfTheNumber(t *testing.T) {
	t.Parallel()
	routing := write(t, "routing.yaml", "blocked: {countries: [jm, us]}\n"+testRouting)
	for number, want := range map[string]struct{ country, state, text string }{
		"+442079460123": {"gb", "would_send", "Its number is one of GB."},
		"+447700900123": {"", "would_send", "Its number has no country that is known"},
		"+18765551234":  {"jm", "would_reject", "Its number is one of JM."},
		"+13575550123": {
			"", "would_reject", "block it only if they block the main country of its calling code",
		},
	} {
		message := `{"id":"order-1","to":"` + number + `","text":"hi"}`
		got := dispatcher(t, message, nil, "explain", "--routing", routing, "--message", "-",
			"--format", "json")
		explanation := decoded[report.Explanation](t, got)
		if explanation.Country == nil || *explanation.Country != want.country || explanation.State != want.state ||
			!strings.Contains(explanation.Text, want.text) {
			t.Errorf("a number of %.4s...: %+v", number, got)
		}
	}
}

// TestForecastDoesNotCallBlockedWhatIsSent: a blocked country that shares its calling code with
// others does not block a number whose country is not known.
func TestForecastDoesNotCallBlockedWhatIsSent(t *testing.T) {
	t.Parallel()
	routing := write(t, "routing.yaml", "blocked: {countries: [jm]}\n"+testRouting)
	got := dispatcher(t, `{"id":"order-1","to":"+13575550123","text":"hi"}`, nil,
		"explain", "--routing", routing, "--message", "-", "--format", "json")
	explanation := decoded[report.Explanation](t, got)
	if got.code != exitOK || explanation.State != "would_send" ||
		strings.Contains(explanation.Text, "it is blocked") ||
		!strings.Contains(explanation.Text,
			"block it only if they block the main country of its calling code.") {
		t.Errorf("exit %d: %s: %s", got.code, explanation.State, explanation.Text)
	}
}

func TestForecastDrawsWithTheKeyOfTheFile(t *testing.T) {
	t.Parallel()
	key := write(t, "draw.key", strings.Repeat("02", 32))
	got := dispatcher(t, "", []string{"DISPATCHER_DRAW_KEY_FILE=" + key}, "explain",
		"--format", "json",
		"--routing", write(t, "routing.yaml",
			testRouting), "--message", write(t, "message.json", testMessage))
	var explanation report.Explanation
	err := json.Unmarshal([]byte(got.out), &explanation)
	if err != nil || explanation.DrawKeyID == "72cd6e84" || strings.Contains(explanation.Text, "demo key") {
		t.Errorf("%v: got %+v", err, got)
	}
}

func TestForecastOfADeadLetterFails(t *testing.T) {
	t.Parallel()
	explanation, got := forecastOf(t,
		`{"id":"1","to":"+447700900123","text":"`+strings.Repeat("x", 1600)+`"}`, "")
	if got.code != exitFailed || explanation.State != "would_be_dead" ||
		explanation.Reason != "too_many_segments" || len(explanation.Candidates) != 0 {
		t.Errorf("%+v %+v", explanation, got)
	}
}

func TestForecastSaysWhatIsWrongWithItsFiles(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		message, state string
		more           []string
		want           string
	}{
		"no envelope":     {`{"id":"1"}`, "", nil, "the field to is missing"},
		"unknown channel": {testMessage, `{"channels":{"z":{}}}`, nil, `names channel "z"`},
		"unknown key": {
			testMessage, `{"channels":{"a":{"load":1}}}`, nil, `unknown field "load"`,
		},
		"negative load": {testMessage, `{"channels":{"a":{"active":-1}}}`, nil, "is negative"},
		"unknown lane":  {testMessage, "", []string{"--lane", "x"}, `there is no lane "x"`},
		"an id as well": {testMessage, "", []string{"order-1"}, "exclude each other"},
	} {
		_, got := forecastOf(t, tc.message, tc.state, tc.more...)
		if got.code != exitUsage || !strings.Contains(got.err, tc.want) {
			t.Errorf("%s: %+v, want %q", name, got, tc.want)
		}
	}
	for _, args := range [][]string{
		{"explain"},
		{"explain", "--routing", "x"},
		{"explain", "--message", "x"},
		{"explain", "a", "b"},
	} {
		if got := dispatcher(t, "", nil, args...); got.code != exitUsage || got.err == "" {
			t.Errorf("%v: got %+v, want exit code %d and err other than %v", args, got, exitUsage, "")
		}
	}
}

// TestExplainUsesTheTimeZoneInForce: also for messages that were planned under another zone, so
// that two explanations can be compared.
func TestExplainUsesTheTimeZoneInForce(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l := openSeeded(t, url)
	settled(t, l, claimed(t, l, drawn("order-7731", 17, "a")))
	tokyo := strings.Replace(testRouting, "Europe/London", "Asia/Tokyo", 1)
	next := ledger.NewRouting{
		Author: "test", Document: tokyo,
		Channels: []ledger.ChannelSpec{{Name: "a"}, {Name: "b"}, {Name: "c"}},
	}
	if _, err := l.Routing.Apply(t.Context(), next); err != nil || tokyo == testRouting {
		t.Fatal(err)
	}
	got := dispatcher(t, "", []string{"DISPATCHER_POSTGRES_URL=" + url}, "explain", "order-7731")
	if got.code != exitOK || !strings.Contains(got.out, "JST") ||
		strings.Contains(got.out, "GMT") || strings.Contains(got.out, "UTC") {
		t.Errorf("got %+v", got)
	}
}
