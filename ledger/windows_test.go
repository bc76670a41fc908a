package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// fillWindows stores n consecutive windows in the history, the last one of just now.
func fillWindows(t testing.TB, db *pgx.Conn, length time.Duration, n int) {
	t.Helper()
	execute(t, db, `
		insert into dispatcher.limit_history (channel, scope, window_seconds, unit, window_start,
		  max, granted)
		select 'old', 'channel', $1::int, 'messages', now() - n * $1::int * interval '1 second',
		  100, 50 from generate_series(1, $2::int) n`,
		int(length.Seconds()), n)
}

func TestOldWindowsAreDroppedByTheirLength(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	if n, err := l.Limits.DropWindows(t.Context(), time.Hour, time.Hour); n != 0 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	for length, n := range map[time.Duration]int{
		time.Second: 9000, time.Minute: 1000,
		time.Hour: 100, 24 * time.Hour: 410,
	} {
		fillWindows(t, db, length, n)
	}
	n, err := l.Limits.DropWindows(t.Context(), time.Hour, 400*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	left := scalar[string](t, db, `select string_agg(n::text, ' ' order by window_seconds) from (
		select window_seconds, count(*) - case window_seconds when 1 then 3600 else 0 end as n
		from audit.limit_windows group by 1) w`)
	var seconds int // more than there should be; some have grown too old meanwhile
	var rest string
	if _, err := fmt.Sscanf(left, "%d", &seconds); err != nil || seconds > 0 || seconds < -60 {
		t.Errorf("%d windows of a second are left, %v", 3600+seconds, err)
	}
	if _, rest, _ = strings.Cut(left, " "); rest != "599 100 399" {
		t.Errorf("windows of a minute, an hour and a day are %s", rest)
	}
	if all := scalar[int64](t, db,
		`select count(*) from audit.limit_windows`); n != 9000+1000+100+410-all {
		t.Errorf("%d were dropped and %d are left", n, all)
	}
}

// TestClaimsGoOnWhileWindowsAreDropped: if a claim had to wait for the rows, it would wait for all
// of them, and only one claim would be made.
func TestClaimsGoOnWhileWindowsAreDropped(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a", Limits: []admission.Limit{
		limit(admission.Second, 1e6), limit(admission.Day, 1e9),
	}})
	rows := tier.Size(20_000, 50_000)
	fillWindows(t, db, time.Second, rows+3600)
	claimAll(t, l, batch("first", 20), "a") // its statements are prepared
	dropped := make(chan int64)
	go func() {
		n, err := l.Limits.DropWindows(t.Context(), time.Hour, 400*24*time.Hour)
		if err != nil {
			t.Error(err)
		}
		dropped <- n
	}()
	claims := 0
	for n := int64(-1); n < 0; {
		select {
		case n = <-dropped:
			if n < int64(rows-200) || n > int64(rows+3600) {
				t.Errorf("%d of %d were dropped", n, rows)
			}
		default:
			claims++
			claimAll(t, l, batch(fmt.Sprintf("c%d", claims), 20), "a")
		}
	}
	if claims < 2 {
		t.Errorf("%d claims were made while %d windows were dropped", claims, rows)
	}
	if got, want := scalar[int](t, db,
		`select sum(granted) from dispatcher.limits where window_seconds = 86400`),
		scalar[int](t, db, `select count(*) from dispatcher.all_attempts`); got != want {
		t.Errorf("%d granted for %d attempts", got, want)
	}
}
