package ledgertest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestANewDayHasATemplateOfItsOwn: tests that run across midnight get databases with the days from
// then on, and what is left of the day before is not handed out.
func TestANewDayHasATemplateOfItsOwn(t *testing.T) {
	before := URL(t)
	url, empty := Lasting(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // The server is stopped.
	if err := empty(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("the next day", func(t *testing.T) {
		// as a claim does after midnight
		if _, err := conn.Exec(t.Context(),
			`select dispatcher.make_day(dispatcher.day_at(now()) + 3)`); err != nil {
			t.Fatal(err)
		}
		if err := empty(t.Context()); err == nil {
			t.Error("a database with another day is emptied for the next test")
		}
		earlier := today
		today = func() string { return "later" }
		defer func() { today = earlier }()
		if got := begun(t); got != template+"later" {
			t.Errorf("the template is %s", got)
		}
		if after := URL(t); after == before {
			t.Error("a database of the day before is handed out")
		}
	})
}
