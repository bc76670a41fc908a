package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/report"
)

// forecastIn explains a message under the given document.
func forecastIn(t *testing.T, document, message, state string) (report.Explanation, result) {
	t.Helper()
	args := []string{
		"explain", "--routing", write(t, "routing.yaml", document), "--message",
		write(t, "message.json", message), "--format", "json",
	}
	if state != "" {
		args = append(args, "--state", write(t, "state.json", state))
	}
	got := dispatcher(t, "", nil, args...)
	var explanation report.Explanation
	if err := json.Unmarshal([]byte(got.out), &explanation); err != nil {
		t.Fatalf("%v: got %+v", err, got)
	}
	return explanation, got
}

// rankingOf writes candidates as "channel score reason", in order.
func rankingOf(s *report.Explanation) string {
	var out []string
	for _, c := range s.Candidates {
		one := c.Channel
		if c.Score != nil {
			one += fmt.Sprintf(" %.3f", *c.Score)
		}
		if c.Reason != "" {
			one += "!" + c.Reason
		}
		out = append(out, one)
	}
	return strings.Join(out, ", ")
}

// routeOver returns a document with the given channels, each "name: settings", and one route.
func routeOver(route string, channels ...string) string {
	doc := "channels:\n"
	var names []string
	for _, c := range channels {
		name, rest, _ := strings.Cut(c, ": ")
		names = append(names, name)
		doc += "  " + name + ": {provider: sandbox, " + rest + "}\n"
	}
	return doc + "routes: [{name: default, match: {}, channels: [" + strings.Join(names, ", ") +
		"], " + route + "}]\n"
}

// TestForecastOfTheSourcesExamples: the worked examples of the specification of selection modes.
func TestForecastOfTheSourcesExamples(t *testing.T) {
	t.Parallel()
	envelope := func(more string) string {
		return `{"id":"job","to":"+447700900123","text":"hi",` + more + `}`
	}
	for name, tc := range map[string]struct{ document, message, state, ranking, chosen string }{
		"longest idle": {
			routeOver("mode: longest_idle", "A: capacity: 5", "B: capacity: 4", "C: capacity: 5",
				"D: capacity: 3"),
			envelope(`"labels":{}`),
			`{"channels":{
				"A":{"active":3,"last_assigned":"2026-11-21T09:55:00Z"},
				"B":{"active":3,"last_assigned":"2026-11-21T09:57:00Z"},
				"C":{"active":3,"last_assigned":"2026-11-21T09:53:00Z"},
				"D":{"active":0,"last_assigned":"2026-11-21T09:58:00Z"}}}`,
			"D, C, A, B", "D",
		},
		"labels": {
			routeOver("mode: best_worker", "A: labels: {language: english, department: sales}",
				"B: labels: {language: english}",
				"C: labels: {language: english, department: support}"),
			envelope(`"labels":{"language":"english","department":"sales"}`), "",
			"A 1.000, B 0.500, C 0.500", "A",
		},
		"selectors": {
			routeOver("mode: best_worker, bypass_selectors: true",
				"D: labels: {department: billing, segment: vip}",
				"E: labels: {department: billing}", "F: labels: {department: sales, segment: new}"),
			envelope(`"selectors":[
				{"key":"department","operator":"equal","value":"billing"},
				{"key":"segment","operator":"notEqual","value":"vip"}]`),
			"", "E 1.000, D 0.500, F 0.500", "E",
		},
		"magnitudes": {
			routeOver("mode: best_worker", "G: labels: {language: french, sales: 10, cost: 10}",
				"H: labels: {language: french, sales: 15, cost: 10}",
				"I: labels: {language: french, sales: 10, cost: 9}"),
			envelope(`"selectors":[
				{"key":"language","operator":"equal","value":"french"},
				{"key":"sales","operator":"greaterThanEqual","value":10},
				{"key":"cost","operator":"lessThanEqual","value":10}]`),
			"", "H 0.707, I 0.675, G 0.667", "H",
		},
		"turn after a cursor": {
			routeOver("mode: round_robin", "a: capacity: 1", "b: capacity: 1", "c: capacity: 1"),
			envelope(`"labels":{}`),
			`{"channels":{"c":{"ready":false}},"cursors":{"default":"b"}}`, "c!not_ready, a, b",
			"a",
		},
		"expression": {
			routeOver("mode: best_worker, scoring: {expression: 1 - load_ratio}", "a: capacity: 10",
				"b: capacity: 10"),
			envelope(`"labels":{}`),
			`{"channels":{"a":{"active":5}}}`, "b 1.000, a 0.500", "b",
		},
	} {
		explanation, got := forecastIn(t, tc.document, tc.message, tc.state)
		order := rankingOf(&explanation)
		if got.code != exitOK || order != tc.ranking || channelOf(&explanation) != tc.chosen ||
			explanation.Draw != nil || explanation.Size != nil {
			t.Errorf("%s: %s chosen %s, want %s; %+v", name, order, channelOf(&explanation), tc.ranking,
				got)
		}
		if strings.Contains(explanation.Text, "demo key") {
			t.Errorf("%s: nothing is drawn, but the text names a key: %s", name, explanation.Text)
		}
		for i, c := range explanation.Candidates {
			if *c.Eligible != (c.Reason == "") {
				t.Errorf("%s: candidate %d: %+v", name, i, c)
			}
		}
	}
}

// TestForecastAsksTheScoringFunction: it reports when the function failed.
func TestForecastAsksTheScoringFunction(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"scores":[{"channel":"a","score":0.2},{"channel":"b","score":0.9}]}`)
	}))
	t.Cleanup(server.Close)
	document := func(url string) string {
		return routeOver(`mode: best_worker, scoring: {function: "`+url+`", `+
			`allow_private: true, batch: true, deadline: 5s}`,
			"a: labels: {x: y}", "b: capacity: 1")
	}
	message := `{"id":"job","to":"+447700900123","text":"hi","labels":{"x":"y"}}`
	explanation, got := forecastIn(t, document(server.URL), message, "")
	if channelOf(&explanation) != "b" || explanation.Scoring != "function" || explanation.Trouble != "" ||
		rankingOf(&explanation) != "b 0.900, a 0.200" {
		t.Errorf("got %+v", got)
	}
	explanation, got = forecastIn(t, document("http://127.0.0.1:1"), message, "")
	if channelOf(&explanation) != "a" || explanation.Trouble != "function_unreachable" ||
		!strings.Contains(explanation.Text, "could not be reached") {
		t.Errorf("got %+v", got)
	}
}

func TestForecastRefusesACursorThatIsNone(t *testing.T) {
	t.Parallel()
	for want, state := range map[string]string{
		`there is no route "x"`:            `{"cursors":{"x":"a"}}`,
		`route default has no channel "z"`: `{"cursors":{"default":"z"}}`,
	} {
		_, got := forecastOf(t, testMessage, state)
		if got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}

// channelOf returns the chosen channel of a message; empty for none.
func channelOf(s *report.Explanation) string { return orEmpty(s.Chosen) }
