package ledger

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
)

// The formula exists twice: claims use admission.Ease, and settlements the SQL of settle.sql.
func TestTheDatabaseSlowsDownLikeAdmission(t *testing.T) {
	t.Parallel()
	db, err := pgx.Connect(t.Context(), ledgertest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	t.Cleanup(func() { closeConn(db) })
	_, set, _ := strings.Cut(settle.text, "ease_rate = ")
	set, _, _ = strings.Cut(set, "from (")
	sql := `update dispatcher.channels c set ease_rate = ` +
		strings.NewReplacer("now()", "$1::timestamptz", "l.slow", "$2::interval").Replace(set) +
		`returning ease_rate, ease_since, ease_until`
	tier.Check(t, func(t *rapid.T) {
		if _, err := db.Exec(ctx, `delete from dispatcher.channels`); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(ctx,
			`insert into dispatcher.channels (channel) values ('a')`); err != nil {
			t.Fatal(err)
		}
		now, want := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), admission.Ease{}
		for range rapid.IntRange(1, 12).Draw(t, "answers") {
			now = now.Add(time.Duration(rapid.IntRange(-500_000, 20_000_000).Draw(t,
				"micros")) * time.Microsecond)
			wait := time.Duration(rapid.IntRange(0, 300).Draw(t, "seconds")) * time.Second
			want = want.SlowDown(now, wait)
			var rate float64
			var since, until pgtype.Timestamptz
			if err := db.QueryRow(ctx, sql, now, wait).Scan(&rate, &since, &until); err != nil {
				t.Fatal(err)
			}
			if math.Abs(rate-want.Rate) > 1e-9 || !moment(since).Equal(want.Since) ||
				!moment(until).Equal(want.Until) {
				t.Fatalf("at %s: %v since %s until %s, want %+v", now, rate, moment(since),
					moment(until), want)
			}
		}
	})
}
