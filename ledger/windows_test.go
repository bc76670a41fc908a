package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// fillWindows stores n windows that were left, one after the other, the last one just now.
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
		time.Hour: 100, 24 * time.Hour: 30,
	} {
		fillWindows(t, db, length, n)
	}
	n, err := l.Limits.DropWindows(t.Context(), time.Hour, 7*24*time.Hour)
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
	if _, rest, _ = strings.Cut(left, " "); rest != "599 100 6" {
		t.Errorf("windows of a minute, an hour and a day are %s", rest)
	}
	if all := scalar[int64](t, db,
		`select count(*) from audit.limit_windows`); n != 9000+1000+100+30-all {
		t.Errorf("%d were dropped and %d are left", n, all)
	}
}

// Millions of windows are dropped while claims run. The claims' longest time is compared with that
// of as many claims before, on the same machine.
func TestDroppingMillionsOfWindowsHoldsUpNoClaim(t *testing.T) {
	t.Parallel()
	rows := tier.Size(50_000, 1_000_000)
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a", Limits: []admission.Limit{
		limit(admission.Second, 1e6), limit(admission.Day, 1e9),
	}})
	fillWindows(t, db, time.Second, rows)
	claimed := 0
	claim := func() time.Duration {
		claimed++
		began := time.Now()
		claimAll(t, l, batch(fmt.Sprintf("c%d", claimed), 20), "a")
		return time.Since(began)
	}
	var alone, beside []time.Duration
	for range 200 {
		alone = append(alone, claim())
	}
	dropped := make(chan int64)
	began := time.Now()
	go func() {
		n, err := l.Limits.DropWindows(t.Context(), time.Minute, time.Hour)
		if err != nil {
			t.Error(err)
		}
		dropped <- n
	}()
	for n := int64(-1); n < 0; {
		select {
		case n = <-dropped:
			if n < int64(rows)-200 || n > int64(rows) {
				t.Errorf("%d of %d were dropped", n, rows)
			}
		default:
			beside = append(beside, claim())
		}
	}
	took := time.Since(began)
	slices.Sort(alone)
	slices.Sort(beside)
	median := func(d []time.Duration) time.Duration { return d[len(d)/2] }
	t.Logf("dropped %d in %s; %d claims beside: median %s against %s, longest %s against %s", rows,
		took.Round(time.Millisecond),
		len(beside), median(beside), median(alone), beside[len(beside)-1], alone[len(alone)-1])
	// A claim that had to wait for the rows would wait for all of them.
	if longest := beside[len(beside)-1]; longest > took/4+200*time.Millisecond {
		t.Errorf("a claim took %s while %s were spent on dropping", longest, took)
	}
	if got, want := scalar[int](t, db,
		`select sum(granted) from dispatcher.limits where window_seconds = 86400`),
		scalar[int](t, db, `select count(*) from dispatcher.attempts`); got != want {
		t.Errorf("%d granted for %d attempts", got, want)
	}
}
