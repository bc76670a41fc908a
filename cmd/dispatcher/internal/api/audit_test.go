package api_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/config"
)

// oneOfEachKind makes one action of each kind, with an ambiguity that was settled.
const oneOfEachKind = `select 1 from (select dispatcher.make_days(1)) x;;
	insert into dispatcher.messages (seq, id, lane, state, reason, attempts, finished_at, route,
	  routing_version, segments, expires_at)
	select dispatcher.first_of(dispatcher.day_at(now())) + 7, 'm-1', 'otp', 'unknown',
	  'ambiguous_final', 1, now(), 'default', 1, 1, now();;
	insert into dispatcher.attempts (message_seq, instance, claimed_at, price_micros, attempt,
	  segments, channel, reason, currency, settled_at, answers, outcome)
	select dispatcher.first_of(dispatcher.day_at(now())) + 7, 1, now(), 0, 1, 1, 'a',
	  'first_choice', '', now(), 1, 'unknown';;
	insert into dispatcher.ambiguous (message_seq, key, attempt, last, step, until, closed_at,
	  verdict, author, note)
	select dispatcher.first_of(dispatcher.day_at(now())) + 7, 'k', 1, 1, 'none', now(), now(),
	  'final', 'ann', 'note of settle';;
	insert into dispatcher.ramps (route, from_weights, to_weights, steps, every, next_at, max_errors,
	  max_deviation, least_messages, author, reason, changed_by)
	values ('default', '{}', '{}', 2, '1m', now(), 1, 1, 0, 'ann', 'r', 'ann');;
	insert into dispatcher.ramp_moves (ramp, author, move, step, version, reason)
	select id, 'ann', 'started', 0, 1, 'note of ramp' from dispatcher.ramps;;
	insert into dispatcher.limit_restarts (channel, scope, window_seconds, unit, version, author,
	  reason, was_start, was_granted, window_start, granted)
	values ('a', 'channel', 60, 'messages', 1, 'ann', 'note of window', now(), 0,
	  now() - interval '1 minute', 0);;
	insert into dispatcher.top_ups (author, reason, channel, scope, currency, micros, before, granted)
	values ('ann', 'note of budget', '', 'tenant:shop', 'GBP', 12500000, 0, 0);;
	insert into dispatcher.guard_trips (per, subject, action, hour, seen, usual, days, times, at_least)
	values ('tenant', 'shop', 'warn', now(), 500, 20, 7, 3, 100);;
	insert into dispatcher.operator_actions (author, reason, action, subject)
	values ('ann', 'note of message', 'cancel', 'm-2');;
	insert into dispatcher.opt_outs (tenant, recipient, source, author, reason)
	select 'shop', n, 'import', 'ann', 'note of opt_out' from generate_series(1, 3) n;;
	update dispatcher.opt_outs set until = clock_timestamp(), ended_by = 'command',
	  ended_author = 'ann', ended_reason = 'note of opt_in' where recipient = 1;;
	insert into dispatcher.opt_outs (tenant, recipient, source) values ('shop', 9, 'keyword');;
	insert into dispatcher.erasures (author, reason, number_hmac, messages)
	values ('ann', 'note of erasure', 1, 4)`

// TestTheAuditLogHasAnActionOfEachKind: who did it, with which login, and why. It comes in pages.
func TestTheAuditLogHasAnActionOfEachKind(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	s.sql(oneOfEachKind)
	want := []string{
		"budget top_up tenant:shop 12.5 GBP",
		"erasure erase all tenants 4 messages, 0 parts of incoming ones, 0 left",
		"guard warn tenant shop 500 messages in the hour; usual are 20.0",
		"message cancel m-2 ",
		"message settle m-1 as final",
		"opt_out opt_in tenant shop 1 by command",
		"opt_out opt_out tenant shop 3 by import",
		"ramp started ramp 1 of default at step 0 of 2",
		"routing apply version 1 ",
		"window restart a 1m messages ",
	}
	for role, reasons := range map[string]int{"finance": 2, "admin": 8} {
		all := s.actions(role, "limit=3")
		var got []string
		shown := 0
		for i, a := range all {
			got = append(got, strings.Join([]string{a.Kind, a.Action, a.Subject, a.Detail}, " "))
			if a.Kind != "guard" && (a.Author == "" || a.Login == "") {
				t.Errorf("no author or login: %+v", a)
			}
			if strings.HasPrefix(a.Reason, "note of ") {
				shown++
			}
			if i > 0 && all[i-1].At.Before(a.At) {
				t.Errorf("%v is listed before %v", all[i-1].At, a.At)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", role, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if shown != reasons {
			t.Errorf("%s sees %d reasons, want %d: %+v", role, shown, reasons, all)
		}
	}
	if got := s.actions("finance", "kind=budget"); len(got) != 1 || got[0].Kind != "budget" {
		t.Errorf("of budgets: %+v", got)
	}
	for _, bad := range []string{"cursor=x", "cursor=MSAy", "kind=none"} {
		if got := s.ask("finance", "GET", "/audit/actions?"+bad, ""); got.status !=
			http.StatusUnprocessableEntity {
			t.Errorf("%s: %+v", bad, got)
		}
	}
}

// TestNoActionIsMissedBetweenPages, although many are of the same instant.
func TestNoActionIsMissedBetweenPages(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	s.edit("drain", func(d *control.Draft) (*control.Changed, error) {
		return d.SetState(t.Context(), "b", config.Draining)
	})
	s.sql(`insert into dispatcher.operator_actions (at, author, reason, action, subject)
		select now(), 'ann', 'r', 'cancel', 'm' || n from generate_series(1, 9) n`)
	seen := map[string]bool{}
	for _, a := range s.actions("finance", "limit=2") {
		if seen[a.Subject] {
			t.Errorf("%s is listed twice", a.Subject)
		}
		seen[a.Subject] = true
	}
	if len(seen) != 11 {
		t.Errorf("%d actions, want 11: %v", len(seen), seen)
	}
}

// actions reads the audit log to its end.
func (s *stage) actions(role, query string) (all []control.Action) {
	s.t.Helper()
	for cursor := ""; ; {
		var page struct {
			Items []control.Action `json:"items"`
			Next  string           `json:"next"`
		}
		got := s.ask(role, "GET", "/audit/actions?"+query+"&cursor="+cursor, "")
		if err := json.Unmarshal([]byte(got.body), &page); err != nil || got.status != http.StatusOK {
			s.t.Fatalf("%+v, %v", got, err)
		}
		all = append(all, page.Items...)
		if cursor = page.Next; cursor == "" {
			return all
		}
	}
}

// TestTheAuditLogSaysThatAChangeCameByTheAPI, so that its author was authenticated. It does not say
// so of changes that came another way.
func TestTheAuditLogSaysThatAChangeCameByTheAPI(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	s.dead("no_route", envelopeOf("a", ""))
	s.unanswered("m-1")
	s.sql(`update dispatcher.limits set granted = 7, window_start = date_trunc('second', now()) +
		interval '2 days', next_at = now() + interval '2 days'`)
	for _, change := range [][3]string{
		{"POST", "/limits/restart", `"channel":"a","window":"1s"`},
		{"PUT", "/channels/b/state", `"state":"draining"`},
		{"PUT", "/channels/b/state", `"state":"enabled"`},
		{"POST", "/routes/default/ramp", `"weights":{"a":50},"over_seconds":3600`},
		{"PUT", "/routes/default/ramp", `"do":"hold"`},
		{"POST", "/channels/a/test", `"to":"+447700900123","text":"x"`},
		{"POST", "/dead/replay", `"records":["a"]`},
		{"POST", "/ambiguous/m-1/settle", `"as":"final"`},
	} {
		if got := s.ask("operator", change[0], change[1],
			"{"+change[2]+`,"reason":"why"}`); got.status != http.StatusOK {
			t.Errorf("%v: got %+v", change, got)
		}
	}
	ways := map[string]int{}
	for _, a := range s.actions("admin", "") {
		ways[a.Author+" by "+a.Via]++
	}
	if want := map[string]int{"olga by api": 8, "elsewhere by ": 1}; !maps.Equal(ways, want) {
		t.Errorf("got %v, want %v", ways, want)
	}
	if got := s.ask("viewer", "GET", "/routing", ""); !strings.Contains(got.body, `"via":"api"`) {
		t.Errorf("the routing in force: %+v", got)
	}
}
