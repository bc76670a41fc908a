package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/config"
	"dispatcher/ledger"
)

// TestInstancesAreListed with what each last said of its channels and lanes.
func TestInstancesAreListed(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	if err := s.ledger.Instances.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	list := func() answer { return s.ask("viewer", "GET", "/instances", "") }
	state := ledger.InstanceState{
		Version: 1,
		Channels: map[string]ledger.InstanceChannel{
			"a": {Why: "breaker_open", Breaker: "open", Unanswered: 3},
		},
		Lanes: map[string]ledger.InstanceLane{"otp": {Joined: true, Lag: new(int64(5))}},
	}
	if _, err := s.ledger.Instances.Gather(t.Context(), nil, &state, time.Minute); err != nil {
		t.Fatal(err)
	}
	got := list()
	for _, want := range []string{
		`"version":1`, `"behind":false`, `"unanswered":3,"channels":[{"channel":"a"`,
		`"not_ready":"breaker_open"`, `"lanes":[{"lane":"otp","joined":true`, `"lag":5`,
	} {
		if got.status != http.StatusOK || !strings.Contains(got.body, want) {
			t.Errorf("got %+v, want %s", got, want)
		}
	}
	s.edit("newer", func(d *control.Draft) (*control.Changed, error) {
		return d.SetState(t.Context(), "b", config.Draining)
	})
	if got := list(); got.header.Get("ETag") != `"2"` || !strings.Contains(got.body, `"behind":true`) {
		t.Errorf("got %+v", got)
	}
	s.sql(`update dispatcher.instances set last_seen = now() - interval '1 hour'`)
	if got := list(); !strings.Contains(got.body, `"instances":[]`) {
		t.Errorf("a dead instance: got %+v", got)
	}
}

// TestTwoVersionsAreCompared in meaning and as text, in both directions.
func TestTwoVersionsAreCompared(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	s.edit("drain", func(d *control.Draft) (*control.Changed, error) {
		return d.SetState(t.Context(), "b", config.Draining)
	})
	compare := func(path string) answer {
		return s.ask("viewer", "GET", "/routing/versions/"+path, "")
	}
	for path, wants := range map[string][]string{
		"1/diff/2": {
			`"from":"1","to":"2"`, `"path":"channels.b.state"`, `"to":"draining"`,
			`+++ version 2`, `state: draining`,
		},
		"2/diff/1": {`"from":"draining"`, `--- version 2`},
		"2/diff/2": {`"changes":[]`, `"unified":""`},
	} {
		for _, want := range wants {
			if got := compare(path); got.status != http.StatusOK || !strings.Contains(got.body, want) {
				t.Errorf("%s: got %+v, want %s", path, got, want)
			}
		}
	}
	for path, want := range map[string]int{
		"1/diff/9": http.StatusNotFound, "9/diff/1": http.StatusNotFound,
		"0/diff/1": http.StatusUnprocessableEntity, "1/diff/x": http.StatusUnprocessableEntity,
	} {
		if got := compare(path); got.status != want {
			t.Errorf("%s: got %+v, want status %d", path, got, want)
		}
	}
}
