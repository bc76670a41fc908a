package ledger

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
	"dispatcher/ledger/ledgertest"
)

// TestTheLastSecondsAreCountedByTheirTime, because all claims wait meanwhile, also on a day without
// statistics.
func TestTheLastSecondsAreCountedByTheirTime(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	config, err := pgx.ParseConfig(ledgertest.Fresh(t))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(config.RuntimeParams, reportSettings)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeConn(conn) })
	if _, err := conn.Exec(ctx, `
		insert into dispatcher.attempts (message_seq, attempt, channel, reason, segments,
		  price_micros, currency, claimed_at, instance)
		select dispatcher.first_of(dispatcher.day_at(now())) + n, 1, 'a', 'first_choice', 1, 0, 'GBP',
		  now(), 1 from generate_series(1, 5000) n`); err != nil {
		t.Fatal(err)
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b := beginning{zone: time.UTC, added: []addition{{ownLimit: ownLimit{
		Limit: &admission.Limit{Window: admission.Day, Max: 1},
	}}}}
	if err := b.first(ctx, tx); err != nil {
		t.Fatal(err)
	}
	results, err := conn.PgConn().Exec(ctx, fmt.Sprintf(`prepare counted as %s;
		explain execute counted ('%s', null, false, '{}', '{}')`, countTaken,
		b.from.Format(time.RFC3339Nano))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var plan strings.Builder
	for _, row := range results[1].Rows {
		fmt.Fprintln(&plan, string(row[0]))
	}
	if !byKeys(plan.String()) {
		t.Error(plan.String())
	}
}

// TestADayIsCutAnewOnlyByAnotherZone: for a limit whose day is over and that was not used since,
// nothing is counted.
func TestADayIsCutAnewOnlyByAnotherZone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 10, 15, 0, 0, 0, time.UTC)
	tokyo := time.FixedZone("Tokyo", 9*60*60)
	for name, c := range map[string]struct {
		start time.Time
		zone  *time.Location
		want  bool
	}{
		"today":                  {admission.Day.Start(now, time.UTC), time.UTC, false},
		"today, in another zone": {admission.Day.Start(now, time.UTC), tokyo, true},
		"yesterday": {
			admission.Day.Start(now.Add(-24*time.Hour), time.UTC),
			time.UTC, false,
		},
		"last week": {
			admission.Day.Start(now.Add(-7*24*time.Hour), time.UTC),
			time.UTC, false,
		},
		"yesterday, in another zone": {
			admission.Day.Start(now.Add(-24*time.Hour), time.UTC),
			tokyo, true,
		},
		"a window that was never opened": {time.Unix(0, 0), tokyo, false},
		"tomorrow":                       {now.Add(24 * time.Hour), tokyo, false},
	} {
		if got := (limitWindow{start: c.start, now: now}).recut(admission.Day,
			c.zone); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
