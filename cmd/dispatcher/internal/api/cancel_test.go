package api_test

import (
	"net/http"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/api"
	"dispatcher/ledger"
)

// waiting stores messages that wait for a channel.
func (s *stage) waiting(ids ...string) {
	s.t.Helper()
	var want ledger.Claim
	var d ledger.Decisions
	until := time.Now().Add(time.Hour)
	for _, id := range ids {
		want.Messages = append(want.Messages, ledger.Message{
			ID: id, Lane: "otp", State: ledger.Sending, ExpiresAt: until,
			Envelope: []byte(envelopeOf(id, "")),
		})
		d.Each = append(d.Each, ledger.Decision{
			State: ledger.Waiting, Reason: "no_slot", NextAt: until,
		})
	}
	tx, err := s.ledger.Claims.Lock(s.t.Context(), want)
	if err != nil {
		s.t.Fatal(err)
	}
	defer tx.Rollback()
	if err := tx.Commit(s.t.Context(), d); err != nil {
		s.t.Fatal(err)
	}
}

// TestMessagesAreCancelledByAFilter page by page, after a dry run. Those that have left are not
// found.
func TestMessagesAreCancelledByAFilter(t *testing.T) {
	t.Parallel()
	s := newStage(t, api.Rate{})
	s.claimed("sent")
	s.waiting("w-1", "w-2", "w-3", "w-4", "w-5")
	type page struct {
		DryRun    bool   `json:"dry_run"`
		Matched   int    `json:"matched"`
		Cancelled int    `json:"cancelled"`
		Next      string `json:"next"`
	}
	cancel := func(more string) page {
		t.Helper()
		return decode[page](t, s.ask("operator", "POST", "/messages/cancel",
			`{"lane":"otp","prefix":"+44","reason":"wrong text"`+more+`}`))
	}
	if got := cancel(`,"dry_run":true`); !got.DryRun || got.Matched != 5 || got.Cancelled != 0 {
		t.Errorf("a dry run: %+v", got)
	}
	for _, none := range []string{
		`"tenant":"none"`, `"route":"none"`, `"prefix":"+1"`, `"before":"2026-01-01T00:00:00Z"`,
	} {
		if got := cancel("," + none); got.Cancelled != 0 {
			t.Errorf("%s: %+v", none, got)
		}
	}
	var cancelled, pages int
	for cursor := ""; ; pages++ {
		got := cancel(`,"limit":2,"cursor":"` + cursor + `"`)
		cancelled += got.Cancelled
		if cursor = got.Next; cursor == "" {
			break
		}
	}
	if cancelled != 5 || pages != 2 {
		t.Errorf("%d cancelled, %d pages before the last", cancelled, pages)
	}
	if n := s.sql(`select count(*) from audit.operator_actions
		where author = 'olga' and action = 'cancel' and via = 'api'`); n != 5 {
		t.Errorf("%d cancellations are on record", n)
	}
	for _, bad := range []string{
		`{"reason":"r"}`, `{"lane":"otp"}`, `{"prefix":"44","reason":"r"}`,
		`{"lane":"otp","reason":"r","cursor":"x"}`,
	} {
		if got := s.ask("operator", "POST", "/messages/cancel", bad); got.status !=
			http.StatusUnprocessableEntity {
			t.Errorf("%s: %+v", bad, got)
		}
	}
}
