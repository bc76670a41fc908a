package pipeline

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// TestAMessageThatChangesDuringEachTryIsLeft after cancelTries of them. A trigger makes the message
// change whenever it would be cancelled.
func TestAMessageThatChangesDuringEachTryIsLeft(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l, err := ledger.Connect(t.Context(), ledger.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Instances.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // The database is dropped anyway.
	tx, err := l.Claims.Lock(t.Context(), ledger.Claim{Messages: []ledger.Message{{
		ID: "m", Lane: "otp", Envelope: []byte(`{"id":"m","to":"+447700900123","text":"x"}`),
		State: ledger.Waiting, ExpiresAt: time.Now().Add(time.Hour),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := tx.Commit(t.Context(), ledger.Decisions{Each: []ledger.Decision{{
		State: ledger.Waiting, Reason: "no_slot", NextAt: time.Now().Add(time.Hour),
	}}}); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`create sequence tries`,
		`create function changed_meanwhile() returns trigger language plpgsql as $$ begin
			perform nextval('tries'); return null; end $$`,
		`create trigger changed_meanwhile before update on dispatcher.messages for each row
			when (new.state = 'failed') execute function changed_meanwhile()`,
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	by := ledger.Canceller{Author: "ann", Reason: "wrong day", Via: ledger.ViaCommand}
	got, err := CancelID(t.Context(), l, "m", by)
	if err != nil || !strings.Contains(got.Why, "changed during each try") ||
		got.Was != ledger.Waiting {
		t.Errorf("got %+v, %v", got, err)
	}
	var tries int
	if err := db.QueryRow(t.Context(), `select last_value from tries`).Scan(&tries); err != nil ||
		tries != cancelTries {
		t.Errorf("%d tries, %v", tries, err)
	}
}
