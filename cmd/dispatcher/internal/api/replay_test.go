package api_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/ledger"
)

// dead stores unusable records at consecutive offsets.
func (s *stage) dead(reason string, envelopes ...string) {
	s.t.Helper()
	messages := make([]ledger.Message, len(envelopes))
	for i, e := range envelopes {
		_, rest, _ := strings.Cut(e, `"id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		messages[i] = ledger.Message{
			ID: id, Lane: "otp", State: ledger.Dead, Reason: reason, Detail: "it was wrong",
			Envelope: []byte(e),
			Origin:   ledger.Origin{Topic: "sms." + reason, Partition: 2, Offset: int64(i)},
		}
	}
	if s.ledger.Instances.ID() == 0 {
		if err := s.ledger.Instances.Register(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
	tx, err := s.ledger.Claims.Lock(s.t.Context(), ledger.Claim{Messages: messages})
	if err != nil {
		s.t.Fatal(err)
	}
	defer tx.Rollback()
	if err := tx.Commit(s.t.Context(), ledger.Decisions{
		Each: make([]ledger.Decision, len(tx.Seen().Messages)),
	}); err != nil {
		s.t.Fatal(err)
	}
}

func TestDeadRecordsAreReplayed(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	s.dead("no_route", envelopeOf("a", ""), envelopeOf("b", ""))
	s.dead("bad_number", `{"id":"c","to":"07700","text":"x"}`, envelopeOf("d", ""))
	ask := func(body string) answer { return s.ask("operator", "POST", "/dead/replay", body) }

	got := ask(`{"dead_reason":"no_route","dry_run":true}`)
	if got.status != http.StatusOK || strings.Count(got.body, `"published":false`) != 2 ||
		!strings.Contains(got.body, `"id":"a"`) || len(s.published) > 0 {
		t.Errorf("a dry run: %+v, %v", got, s.published)
	}
	got = ask(`{"dead_reason":"no_route","reason":"route added"}`)
	if got.status != http.StatusOK || strings.Count(got.body, `"published":true`) != 2 ||
		s.published["a"] != envelopeOf("a", "") {
		t.Errorf("by a filter: %+v, %v", got, s.published)
	}
	got = ask(`{"all":true,"reason":"the rest"}`)
	if strings.Count(got.body, `"published":true`) != 1 || s.published["d"] == "" ||
		strings.Count(got.body, `"record"`) != 2 ||
		!strings.Contains(got.body, "would be a dead record again (bad_number)") {
		t.Errorf("the rest: %+v, %v", got, s.published)
	}
	if got := ask(`{"records":["a","sms.bad_number/2/0"],"reason":"x"}`); !strings.Contains(got.body,
		"was replayed by olga") || strings.Count(got.body, `"published":false`) != 2 {
		t.Errorf("by name: %+v", got)
	}
	if strings.Contains(got.body, "7700900") {
		t.Errorf("the answer shows the number: %s", got.body)
	}
	for body, want := range map[string]int{
		`{"records":["nobody"],"reason":"x"}`:          http.StatusNotFound,
		`{"reason":"x"}`:                               http.StatusUnprocessableEntity,
		`{"records":["a"],"lane":"otp","reason":"x"}`:  http.StatusUnprocessableEntity,
		`{"records":["a"]}`:                            http.StatusUnprocessableEntity,
		`{"all":true,"limit":501,"reason":"too many"}`: http.StatusUnprocessableEntity,
	} {
		if got := ask(body); got.status != want {
			t.Errorf("%s: got %+v, want status %v", body, got, want)
		}
	}
	actions := s.ask("finance", "GET", "/audit/actions", "").body
	if strings.Count(actions, `"action":"replay"`) != 3 || !strings.Contains(actions, `"olga"`) {
		t.Errorf("the audit has %s", actions)
	}
}

// TestAReplayThatKafkaDoesNotConfirmCanBeMadeAgain: under the same id.
func TestAReplayThatKafkaDoesNotConfirmCanBeMadeAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	s.dead("no_route", envelopeOf("a", ""))
	s.broken = errors.New("no broker")
	got := s.ask("operator", "POST", "/dead/replay", `{"records":["a"],"reason":"x"}`)
	if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "again") {
		t.Errorf("got %+v", got)
	}
	s.broken = nil
	got = s.ask("operator", "POST", "/dead/replay", `{"records":["a"],"reason":"x","again":true}`)
	if got.status != http.StatusOK || s.published["a"] == "" {
		t.Errorf("got %+v", got)
	}
}

// TestADeadRecordIsReplayedCorrected: one, with fields set and left out. The answer has no number.
func TestADeadRecordIsReplayedCorrected(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	s.dead("bad_number", `{"id":"a","to":"07700","text":"x","colour":"red"}`, envelopeOf("b", ""))
	ask := func(body string) answer { return s.ask("operator", "POST", "/dead/replay", body) }
	const corrected = `"set":{"to":"+447700900123"},"unset":["colour"],"reason":"typo"`
	for body, want := range map[string]string{
		`{"all":true,` + corrected + `}`:                          "name exactly one",
		`{"records":["a","b"],` + corrected + `}`:                 "name exactly one",
		`{"records":["a"],"set":{"colour":"blue"},"reason":"x"}`:  "has no field",
		`{"records":["a"],"set":{"labels":"{tier"},"reason":"x"}`: "labels is not JSON",
	} {
		if got := ask(body); got.status != http.StatusUnprocessableEntity ||
			!strings.Contains(got.body, want) || len(s.published) > 0 {
			t.Errorf("%s: got %+v, want %q", body, got, want)
		}
	}
	got := ask(`{"records":["a"],` + corrected + `}`)
	if got.status != http.StatusOK || strings.Contains(got.body, "7700900") ||
		s.published["a"] != `{"id":"a","to":"+447700900123","text":"x"}` {
		t.Errorf("got %+v, %v", got, s.published)
	}
}
