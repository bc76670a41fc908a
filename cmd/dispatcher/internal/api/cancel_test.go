package api_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
)

// waiting stores messages that wait for a channel.
func (s *stage) waiting(ids ...string) {
	s.t.Helper()
	if s.ledger.Instances.ID() == 0 {
		if err := s.ledger.Instances.Register(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
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
	s := newStage(t, access.Rate{})
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
		`"tenant":"none"`, `"lane":"bulk"`, `"prefix":"+1"`, `"before":"2026-01-01T00:00:00Z"`,
	} {
		if got := cancel("," + none); got.Cancelled != 0 {
			t.Errorf("%s: %+v", none, got)
		}
	}
	for _, typo := range []string{`"route":"none"`, `"lane":"none"`, `"route":"none","dry_run":true`} {
		got := s.ask("operator", "POST", "/messages/cancel", `{"reason":"wrong text",`+typo+`}`)
		if got.status != http.StatusNotFound || !strings.Contains(got.body, "choose one of") {
			t.Errorf("%s: %+v", typo, got)
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
	if n := s.sql(`select count(*) from audit.operator_actions where author = 'olga' and via = 'api'
		and action = 'cancel_many' and subject like 'lane otp, prefix +44, before 20%'
		and subject not like '%2026-01-01%'`); n != 1 {
		t.Errorf("the filter is on record %d times", n)
	}
	if cancelled != 5 || pages != 2 {
		t.Errorf("%d cancelled, %d pages before the last", cancelled, pages)
	}
	if n := s.sql(`select count(*) from audit.operator_actions
		where author = 'olga' and action = 'cancel' and via = 'api'`); n != 5 {
		t.Errorf("%d cancellations are on record", n)
	}
	tooLate := base64.RawURLEncoding.EncodeToString([]byte("0 9000000000000000000"))
	for _, bad := range []string{
		`{"reason":"r"}`, `{"lane":"otp"}`, `{"prefix":"44","reason":"r"}`,
		`{"lane":"otp","reason":"r","cursor":"x"}`,
		`{"lane":"otp","reason":"r","cursor":"` + tooLate + `"}`,
	} {
		got := s.ask("operator", "POST", "/messages/cancel", bad)
		if got.status != http.StatusUnprocessableEntity || strings.Contains(bad, "cursor") &&
			!strings.Contains(got.body, `"body.cursor"`) {
			t.Errorf("%s: %+v", bad, got)
		}
	}
}

// cancelledPage is a page of an answer about many.
type cancelledPage struct {
	Cancelled int
	Left      []control.Left
	Next      string
	Trouble   string
}

func (s *stage) cancelPage(more string) cancelledPage {
	s.t.Helper()
	return decode[cancelledPage](s.t, s.ask("operator", "POST", "/messages/cancel",
		`{"lane":"otp","reason":"wrong text"`+more+`}`))
}

// TestMessagesStoredDuringTheFirstPageAreNotCancelledByTheNext: the bound is that of the first.
func TestMessagesStoredDuringTheFirstPageAreNotCancelledByTheNext(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	s.waiting("w-1", "w-2", "w-3")
	first := s.cancelPage(`,"limit":2`)
	s.waiting("new")
	second := s.cancelPage(`,"cursor":"` + first.Next + `"`)
	if first.Cancelled != 2 || second.Cancelled != 1 || second.Next != "" {
		t.Errorf("got %+v, then %+v", first, second)
	}
	if n := s.sql(`select count(*) from dispatcher.messages where state = 'waiting'`); n != 1 {
		t.Errorf("%d are left", n)
	}
}

// TestACancellationThatFailsUnderWaySaysWhatWasDone: the messages of yesterday and those of today
// are ended in two transactions, and the second fails. One message cannot be cancelled. The rest is
// part of the same cancellation: it is on record once, and does not end what was stored since.
func TestACancellationThatFailsUnderWaySaysWhatWasDone(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	s.waiting("part", "w-1")
	s.sql(`update dispatcher.messages set pinned = 'a', parts_cut = 'x', parts_left = '{2}'
		where id = 'part';;
		select 1 from (select dispatcher.make_day(dispatcher.day_at(now()) - 1)) d;;
		insert into dispatcher.messages (seq, id, lane, state, next_at, expires_at, received_at)
		  select dispatcher.first_of(dispatcher.day_at(now()) - 1) + 1, 'yesterday', 'otp', 'waiting',
		    now() + interval '1 hour', now() + interval '1 day', now() - interval '1 day';;
		insert into dispatcher.payloads (seq, digest, envelope)
		  select dispatcher.first_of(dispatcher.day_at(now()) - 1) + 1, 1,
		    '{"id":"yesterday","to":"+447700900123","text":"x"}';;
		create function fail() returns trigger language plpgsql as $$ begin
		  raise exception 'no'; end $$;;
		create trigger fail before update on dispatcher.messages for each row
		  when (new.state = 'failed' and new.id = 'w-1') execute function fail()`)
	got := s.cancelPage("")
	if got.Cancelled != 1 || len(got.Left) != 1 || got.Left[0].ID != "part" ||
		!strings.Contains(got.Trouble, "next as cursor") || got.Next == "" {
		t.Errorf("got %+v", got)
	}
	s.sql(`drop trigger fail on dispatcher.messages`)
	s.waiting("new")
	rest := s.cancelPage(`,"cursor":"` + got.Next + `"`)
	if rest.Cancelled != 1 || rest.Trouble != "" || rest.Next != "" {
		t.Errorf("the rest: %+v", rest)
	}
	if n := s.sql(`select count(*) from audit.operator_actions where action = 'cancel_many'`); n != 1 {
		t.Errorf("the filter is on record %d times", n)
	}
}

// TestACancellationOfWhatIsStillInKafkaIsPending only when the request says so.
func TestACancellationOfWhatIsStillInKafkaIsPending(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	said := s.ask("operator", "POST", "/messages/early/cancel", `{"reason":"wrong text"}`)
	if said.status != http.StatusNotFound || !strings.Contains(said.body, "it is cancelled when") {
		t.Errorf("got %+v", said)
	}
	for range 2 {
		got := decode[struct {
			Was     string
			Pending bool
		}](t, s.ask("operator", "POST", "/messages/early/cancel",
			`{"reason":"wrong text","pending":true}`))
		if !got.Pending || got.Was != "" {
			t.Errorf("got %+v", got)
		}
	}
	said = s.ask("viewer", "GET", "/messages/early", "")
	if said.status != http.StatusNotFound || !strings.Contains(said.body, "olga cancelled it at") {
		t.Errorf("got %+v", said)
	}
	if n := s.sql(`select count(*) from dispatcher.pending_cancellations where author = 'olga'
		and via = 'api'`); n != 1 {
		t.Errorf("%d are pending", n)
	}
}
