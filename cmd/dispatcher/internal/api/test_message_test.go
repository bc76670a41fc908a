package api_test

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/config"
)

func TestATestMessageAsksForOneChannelAndIsOnRecord(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	ask := func(role, channel, body string) answer {
		return s.ask(role, "POST", "/channels/"+channel+"/test", body)
	}
	const good = `{"to":"+447700900123","text":"Hello","reason":"new account"`
	if got := ask("operator", "b", good+`,"dry_run":true}`); got.status != http.StatusOK ||
		!strings.Contains(got.body, `"route":"default"`) || len(s.published) > 0 {
		t.Errorf("a dry run: %+v, %v", got, s.published)
	}
	got := ask("operator", "b", good+`}`)
	ids := slices.Collect(maps.Keys(s.published))
	if got.status != http.StatusOK || len(ids) != 1 || !strings.Contains(got.body, ids[0]) ||
		strings.Contains(got.body, "7700900") {
		t.Fatalf("%+v, %v", got, s.published)
	}
	if sent := s.published[ids[0]]; !strings.Contains(sent, `"key":"channel","operator":"equal","value":"b"`) ||
		!strings.Contains(sent, `"expires_at"`) {
		t.Errorf("published %s", sent)
	}
	for what, c := range map[string]struct {
		role, channel, body string
		want                int
	}{
		"a viewer":       {"viewer", "b", good + `}`, http.StatusForbidden},
		"a sender":       {"sender", "b", good + `}`, http.StatusForbidden},
		"no such one":    {"operator", "x", good + `}`, http.StatusNotFound},
		"without reason": {"operator", "b", `{"to":"+447700900123","text":"x"}`, http.StatusUnprocessableEntity},
		"no number": {
			"operator", "b", `{"to":"0770","text":"x","reason":"r"}`, http.StatusUnprocessableEntity,
		},
	} {
		if got := ask(c.role, c.channel, c.body); got.status != c.want {
			t.Errorf("%s: got %+v, want status %v", what, got, c.want)
		}
	}
	for what, document := range map[string]string{
		"it is draining":         strings.Replace(document, "b: {provider: sandbox", "b: {provider: sandbox, state: draining", 1),
		"it is in no route":      strings.Replace(document, "weights: {a: 60, b: 40}", "weights: {a: 60}", 1),
		"selectors are bypassed": strings.Replace(document, "weights", "bypass_selectors: true, weights", 1),
		"no redraw picks it":     strings.Replace(document, "weights: {a: 60, b: 40}", "fallback: redraw, weights: {a: 60, b: 0}", 1),
		"it has another label":   strings.Replace(document, "b: {provider: sandbox", "b: {provider: sandbox, labels: {channel: retail}", 1),
	} {
		s.edit(what, func(d *control.Draft) (*control.Changed, error) {
			return d.Make(t.Context(), func() (*config.Document, error) {
				return config.ParseDocument("next.yaml", []byte(document))
			})
		})
		if got := ask("operator", "b", good+`}`); got.status != http.StatusConflict {
			t.Errorf("%s: got %+v, want status %v", what, got, http.StatusConflict)
		}
	}
	if len(s.published) != 1 {
		t.Errorf("published %v", s.published)
	}
	actions := s.ask("finance", "GET", "/audit/actions", "").body
	if strings.Count(actions, `"action":"test"`) != 1 || !strings.Contains(actions, ids[0]) ||
		!strings.Contains(actions, `"olga"`) {
		t.Errorf("the audit has %s", actions)
	}
}

func TestATestMessageThatKafkaDoesNotConfirmSaysSo(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	s.broken = errors.New("no broker")
	got := s.ask("operator", "POST", "/channels/a/test",
		`{"to":"+447700900123","text":"x","reason":"r"}`)
	if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "may not have been published") {
		t.Errorf("got %+v", got)
	}
}
