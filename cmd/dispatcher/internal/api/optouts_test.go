package api_test

import (
	"net/http"
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/access"
)

// TestOptOutListsAreChangedAndShownWithoutNumbers: who was authenticated is the author, a viewer
// sees no reason, and no answer and no URL has the number.
func TestOptOutListsAreChangedAndShownWithoutNumbers(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	ask := func(role, method, path, body, want string) {
		t.Helper()
		got := s.ask(role, method, path, body)
		if got.status != http.StatusOK || !strings.Contains(got.body, want) {
			t.Errorf("%s %s as %s: got %+v, want %s", method, path, role, got, want)
		}
		if strings.Contains(got.body, "7700900123") {
			t.Errorf("%s %s shows the number: %s", method, path, got.body)
		}
	}
	const number = `{"tenant":"shop","number":"+44 7700 900123"}`
	ask("viewer", "POST", "/opt-outs/lookup", number, `"opted_out":false,"history":[]`)
	ask("operator", "POST", "/opt-outs", `{"tenant":"shop","numbers":["+447700900123",
		"+44 7700-900124"],"reason":"asked by letter"}`, `"numbers":2,"changed":2`)
	ask("operator", "POST", "/opt-outs", `{"tenant":"shop","numbers":["+447700900123"],
		"reason":"again"}`, `"numbers":1,"changed":0`)
	ask("viewer", "GET", "/opt-outs", "", `"current":2,"opt_outs":[{"tenant":"shop","source":"api"`)
	ask("viewer", "GET", "/opt-outs?tenant=bank", "", `"current":0,"opt_outs":[]`)
	ask("operator", "POST", "/opt-outs/lookup", number, `"reason":"asked by letter"`)
	ask("viewer", "POST", "/opt-outs/lookup", number, `"author":"olga","reason":""`)
	ask("operator", "POST", "/opt-outs/remove", `{"tenant":"shop","numbers":["+447700900123"],
		"reason":"asked by phone"}`, `"changed":1`)
	ask("operator", "POST", "/opt-outs/lookup", number, `"ended_by":"api"`)
	ask("viewer", "POST", "/opt-outs/lookup", number, `"ended_reason":""`)
	ask("viewer", "POST", "/opt-outs/lookup", strings.Replace(number, "shop", "", 1),
		`"opted_out":false,"history":[]`)
	for _, want := range []string{`"via":"api"`, `"author":"olga"`, `"detail":"2 by api"`} {
		ask("admin", "GET", "/audit/actions?kind=opt_out", "", want)
	}
}

// TestAChangeOfAnOptOutListIsRefused without a reason, a tenant or a number, and changes nothing.
func TestAChangeOfAnOptOutListIsRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	for name, body := range map[string]string{
		"without a reason": `{"tenant":"shop","numbers":["+447700900123"]}`,
		"without a tenant": `{"numbers":["+447700900123"],"reason":"x"}`,
		"without numbers":  `{"tenant":"shop","numbers":[],"reason":"x"}`,
		"no numbers":       `{"tenant":"shop","numbers":null,"reason":"x"}`,
		"no number":        `{"tenant":"shop","numbers":["+447700900124","07700900123"],"reason":"x"}`,
		"a number in the reason": `{"tenant":"shop","numbers":["+447700900124"],
			"reason":"+447700900123 asked"}`,
	} {
		for _, path := range []string{"/opt-outs", "/opt-outs/remove"} {
			got := s.ask("operator", "POST", path, body)
			if got.status != http.StatusUnprocessableEntity ||
				strings.Contains(got.body, "7700900123") {
				t.Errorf("%s, %s: got %+v", path, name, got)
			}
			if name == "no number" && !strings.Contains(got.body, "body.numbers[1]") {
				t.Errorf("got %s, want the place of the number", got.body)
			}
		}
	}
	if n := s.sql(`select count(*)::int from dispatcher.opt_outs`); n != 0 {
		t.Errorf("%d opt-outs, want none", n)
	}
}
