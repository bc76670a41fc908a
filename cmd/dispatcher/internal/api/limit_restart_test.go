package api_test

import (
	"net/http"
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/config"
)

// TestALimitThatBeginsInTheFutureIsRestarted, after a dry run. A limit whose window has begun is
// refused.
func TestALimitThatBeginsInTheFutureIsRestarted(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	ask := func(role, more string) answer {
		return s.ask(role, "POST", "/limits/restart", `{"channel":"a","window":"1s"`+more+`}`)
	}
	if got := ask("operator", `,"reason":"x"`); got.status != http.StatusConflict ||
		!strings.Contains(got.body, "does not begin in the future") {
		t.Errorf("of now: got %+v", got)
	}
	s.sql(`update dispatcher.limits set granted = 7, window_start = date_trunc('second', now()) +
		interval '2 days', next_at = now() + interval '2 days'`)
	if got := ask("viewer", `,"reason":"x"`); got.status != http.StatusForbidden {
		t.Errorf("a viewer: got %+v", got)
	}
	if got := ask("operator", `,"dry_run":true`); got.status != http.StatusOK ||
		!strings.Contains(got.body, `"restarted":false`) || !strings.Contains(got.body, `"granted":7`) {
		t.Errorf("a dry run: got %+v", got)
	}
	if got := ask("operator", `,"reason":"the clock"`); got.status != http.StatusOK ||
		!strings.Contains(got.body, `"restarted":true`) || !strings.Contains(got.body, `"granted":0`) {
		t.Errorf("got %+v", got)
	}
	if got := ask("operator", `,"unit":"segments","reason":"x"`); got.status != http.StatusNotFound {
		t.Errorf("another limit: got %+v", got)
	}
	log := s.ask("finance", "GET", "/audit/actions?kind=window", "").body
	if !strings.Contains(log, `"olga"`) || !strings.Contains(log, "the clock") {
		t.Errorf("the audit log has %s", log)
	}
}

// TestTheAPIReportsContracts to finance, as "report contracts" does.
func TestTheAPIReportsContracts(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	ask := func(role, query string) answer {
		return s.ask(role, "GET", "/reports/contracts"+query, "")
	}
	if got := ask("finance", ""); got.status != http.StatusOK ||
		strings.TrimSpace(got.body) != `{"contracts":[]}` {
		t.Errorf("without contracts: got %+v", got)
	}
	s.edit("a contract", func(d *control.Draft) (*control.Changed, error) {
		return d.Make(t.Context(), func() (*config.Document, error) {
			return config.ParseDocument("second.yaml", []byte(strings.Replace(document,
				"b: {provider: sandbox}", "b: {provider: sandbox, contract: {cap: 30}}", 1)))
		})
	})
	if got := ask("finance", ""); !strings.Contains(got.body, `"channel":"b"`) ||
		!strings.Contains(got.body, `"cap":30`) || !strings.Contains(got.body, `"to_date":0`) {
		t.Errorf("got %+v", got)
	}
	if got := ask("finance", "?day=2999-01-01"); got.status != http.StatusUnprocessableEntity ||
		!strings.Contains(got.body, "has not begun") {
		t.Errorf("a day to come: got %+v", got)
	}
	if got := ask("viewer", ""); got.status != http.StatusForbidden {
		t.Errorf("a viewer: got %+v", got)
	}
}
