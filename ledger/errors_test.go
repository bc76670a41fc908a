package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

func TestUnavailableTellsPassingTroubleFromBugs(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"57P01": true, "57P02": true, "57P03": true, "57P05": true, "57014": true, "25P03": true,
		"08006": true,
		"53300": true, "53100": true, "40001": true, "40P01": true, "55P03": true, "58030": true,
		"23514": false, "42601": false, "28P01": false, "3D000": false, "42P01": false,
		"22P02": false,
	} {
		if got := ledger.Unavailable(fmt.Errorf("claim: %w", &pgconn.PgError{
			Code: code,
		})); got != want {
			t.Errorf("%s: %t", code, got)
		}
	}
	for _, err := range []error{
		io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded,
		ledger.ErrSilent,
	} {
		if !ledger.Unavailable(fmt.Errorf("claim: %w", err)) {
			t.Errorf("%v", err)
		}
	}
	for _, err := range []error{
		nil, errors.New("bug"), context.Canceled, ledger.ErrNoRouting,
		&ledger.DecisionError{},
	} {
		if ledger.Unavailable(err) {
			t.Errorf("%v", err)
		}
	}
}

// TestOnlyAnAnswerOfTheServerProvesARollback: a session that ends may have committed before.
func TestOnlyAnAnswerOfTheServerProvesARollback(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&pgconn.PgError{Code: "23514", SeverityUnlocalized: "ERROR"}, true},
		{&pgconn.PgError{Code: "40003", SeverityUnlocalized: "ERROR"}, false},
		{&pgconn.PgError{Code: "57P01", SeverityUnlocalized: "FATAL"}, false},
		{&pgconn.ConnectError{}, true},
		{pgx.ErrTxCommitRollback, true},
		{io.ErrUnexpectedEOF, false},
		{context.DeadlineExceeded, false},
		{errors.New("bug"), false},
	} {
		if got := ledger.RolledBack(fmt.Errorf("apply: %w", c.err)); got != c.want {
			t.Errorf("%T %+v: %t", c.err, c.err, got)
		}
	}
}

// TestAConnectionThatWasClosedProvesNoRollback: it may have been closed after the commit.
func TestAConnectionThatWasClosedProvesNoRollback(t *testing.T) {
	t.Parallel()
	conn := raw(t, ledgertest.URL(t))
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `select 1`); err == nil || ledger.RolledBack(err) {
		t.Errorf("%v proves that nothing was committed", err)
	}
}

func TestErrorsOfTheAddressNeverQuoteIt(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"postgres://user:s3cret@host:notaport/db", "postgres://user:s3cret%zz@host/db",
		"host=h password=s3cret port=x",
		"postgres://user:s3cret@127.0.0.1:1/db?connect_timeout=2", "sslmode=s3cret",
	} {
		_, err := ledger.Connect(t.Context(), ledger.Config{URL: address})
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("got %v", err)
		}
		if err := ledger.Migrate(t.Context(), address); err == nil ||
			strings.Contains(err.Error(), "s3cret") {
			t.Errorf("got %v", err)
		}
	}
}

func TestAServerThatIsAwayIsUnavailableAndAWrongPasswordIsNot(t *testing.T) {
	t.Parallel()
	_, err := ledger.Connect(t.Context(), ledger.Config{
		URL: "postgres://user:s3cret@127.0.0.1:1/db",
	})
	if !ledger.Unavailable(err) {
		t.Errorf("got %v", err)
	}
	u := ledgertest.URL(t)
	_, err = ledger.Connect(t.Context(), ledger.Config{
		URL: "postgres://" + ledgertest.Stranger + ":wrong" + u[strings.Index(u, "@"):],
	})
	if err == nil || ledger.Unavailable(err) {
		t.Errorf("got %v", err)
	}
}

// When a CHECK fails, PostgreSQL quotes the row, with the envelope, in the detail.
func TestErrorsOfTheDatabaseQuoteNoRow(t *testing.T) {
	t.Parallel()
	l := open(t)
	m := message("m")
	m.Plan.Draw = 1000 // outside of the table
	err := runClaim(t.Context(), l, ledger.Claim{Messages: []ledger.Message{m}, Channels: []string{
		"a",
	}}, give)
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.ConstraintName != "messages_draw" {
		t.Fatalf("got %v", err)
	}
	if s := fmt.Sprintf("%v %+v", err, *pg); strings.Contains(s, "sms.otp") ||
		strings.Contains(s, "shop") {
		t.Error(s)
	}
}
