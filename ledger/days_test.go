package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// turn switches the tables of ids by hand, and returns the number of the new turn. It waits for
// claims that hold them. A claim that is behind by a turn locks them in the other order.
func turn(t testing.TB, db *pgx.Conn) (now int64) {
	t.Helper()
	for {
		err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `set local lock_timeout = '200ms';
				lock table dispatcher.ids_0, dispatcher.ids_1 in access exclusive mode;
				update dispatcher.id_turns set turn = turn + 1, since = now()`); err != nil {
				return err
			}
			err := tx.QueryRow(t.Context(), `select turn from dispatcher.id_turns`).Scan(&now)
			if err == nil {
				_, err = tx.Exec(t.Context(), fmt.Sprintf(`truncate dispatcher.ids_%d`, now%2))
			}
			return err
		})
		var pg *pgconn.PgError
		if errors.As(err, &pg) && (pg.Code == "55P03" || pg.Code == "40P01") {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
}

// intakes are the Intakes of the messages of a claim that sends them.
func intakes(t testing.TB, l *ledger.Ledger, messages ...ledger.Message) []ledger.Intake {
	t.Helper()
	return claimAll(t, l, messages, "a").Intakes
}

// TestAnIdIsRecognisedWhicheverTableHasIt, also by a process that has not seen the turn.
func TestAnIdIsRecognisedWhicheverTableHasIt(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	l, behind, db := connect(t, ledger.Config{URL: url}), connect(t, ledger.Config{URL: url}),
		raw(t, url)
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	early, late, other := message("early"), message("late"), message("early")
	other.Digest++
	today := ledger.DayAt(scalar[time.Time](t, db, `select clock_timestamp()`))
	check := func(what string, m ledger.Message, want ledger.Intake) {
		t.Helper()
		for _, by := range []*ledger.Ledger{behind, l} {
			if got := intakes(t, by, m)[0]; got != want {
				t.Errorf("%s: %s is %v, want %v", what, m.ID, got, want)
			}
			want = max(want, ledger.Duplicate)
		}
	}
	check("first", early, ledger.Fresh)
	check("again", early, ledger.Duplicate)
	check("another one", other, ledger.Conflict)
	for n := range int64(3) { // early is in the older table after the first turn, and then in none
		now := turn(t, db)
		behind.Believe(today, now-1)
		want := ledger.Duplicate
		if n == 1 {
			want = ledger.Fresh // forgotten
		}
		check("after a turn", early, want)
		switch n {
		case 0:
			behind.Believe(today, now-1)
			check("after a turn", other, ledger.Conflict)
			behind.Believe(today, now-1)
			check("stored after it", late, ledger.Fresh)
		case 1:
			check("stored one turn before", late, ledger.Duplicate)
		}
	}
	if n := scalar[int](t, db, `select count(*) from dispatcher.messages where id = 'late'`); n != 1 {
		t.Errorf("late was stored %d times", n)
	}
}

// TestAnIdIsStoredOnceAcrossATurnAndMidnight: two processes claim the same messages while the
// tables of ids are turned. One of them is a day ahead or behind, and a turn behind.
func TestAnIdIsStoredOnceAcrossATurnAndMidnight(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	processes := []*ledger.Ledger{
		connect(t, ledger.Config{URL: url, MaxConns: 4}),
		connect(t, ledger.Config{URL: url, MaxConns: 4}),
	}
	db := raw(t, url)
	apply(t, processes[0], ledger.ChannelSpec{Name: "a"})
	today := ledger.DayAt(scalar[time.Time](t, db, `select clock_timestamp()`))
	var now int64
	rounds, batches, n := tier.Size(3, 6), 8, 20
	for round := range rounds {
		wrong, before := today+ledger.Day(round%3)-1, now
		processes[1].Believe(wrong, before)
		claimAll(t, processes[1], batch(fmt.Sprintf("alone-%d-", round), 1), "a")
		processes[1].Believe(wrong, max(before-1, 0))
		var claims sync.WaitGroup
		var mu sync.Mutex
		fresh := map[string]int{}
		for worker := range 4 {
			claims.Go(func() {
				for at := range batches {
					// the same messages in another order
					from := at
					if worker%2 == 1 {
						from = batches - 1 - at
					}
					messages := batch(fmt.Sprintf("m%d-%d", round, from), n)
					if worker > 1 {
						slices.Reverse(messages)
					}
					if worker == 1 { // a claim sets the day right
						processes[1].Believe(wrong, before)
					}
					seen := claimAll(t, processes[worker%2], messages, "a")
					mu.Lock()
					for i, intake := range seen.Intakes {
						if intake == ledger.Fresh {
							fresh[seen.Messages[i].ID]++
						}
					}
					mu.Unlock()
				}
			})
		}
		now = turn(t, db)
		claims.Wait()
		if len(fresh) != batches*n {
			t.Errorf("%d of %d messages were new to somebody", len(fresh), batches*n)
		}
		for id, times := range fresh {
			if times != 1 {
				t.Errorf("%s was new to %d claims", id, times)
			}
		}
	}
	all := rounds * (batches*n + 1)
	for what, want := range map[string]int{
		`select count(*) from dispatcher.messages`:           all,
		`select count(distinct id) from dispatcher.messages`: all,
		`select count(*) from dispatcher.all_attempts`:       all,
		`select count(*) from dispatcher.payloads`:           all,
		`select active from audit.active`:                    all,
		`select count(*) from dispatcher.messages m where seq <> dispatcher.seq_of(id)
		  and dispatcher.seq_of(id) is not null`: 0,
	} {
		if got := scalar[int](t, db, what); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	days := scalar[int](t, db,
		`select count(distinct dispatcher.day_of(seq)) from dispatcher.messages`)
	if days < 2 {
		t.Error("all were stored on one day")
	}
}

func TestAClockThatWasAheadForAMomentLeavesNothingOnADayToCome(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	l, db := connect(t, ledger.Config{URL: url}), raw(t, url)
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	today := ledger.DayAt(scalar[time.Time](t, db, `select clock_timestamp()`))
	if _, err := db.Exec(t.Context(), `select dispatcher.make_day($1)`, today+400); err != nil {
		t.Fatal(err)
	}
	l.Believe(today+400, 0)
	claimAll(t, l, batch("first", 1), "a")
	claimAll(t, l, batch("second", 1), "a")
	if day := scalar[ledger.Day](t, db, `
		select dispatcher.day_of(seq) from dispatcher.messages where id like 'second%'`); day > today+1 {
		t.Errorf("the second message is stored on %s, and today is %s", day, today)
	}
}

func TestAProcessThatSleptStoresOnTheDayThatItIs(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	l, db := connect(t, ledger.Config{URL: url}), raw(t, url)
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	today := ledger.DayAt(scalar[time.Time](t, db, `select clock_timestamp()`))
	execute(t, db, `select dispatcher.make_day($1)`, today-2)
	l.Believe(today-2, 0)
	if got := ledger.DayOf(claimAll(t, l, batch("m", 1), "a").Messages[0].Seq); got < today {
		t.Errorf("a message was stored on %s, and it is %s", got, today)
	}
}

// TestAnAnalyzeOfADayReadsFewRows: 300 for each value in its statistics.
func TestAnAnalyzeOfADayReadsFewRows(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	l, db := connect(t, ledger.Config{URL: url}), raw(t, url)
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	today := ledger.DayAt(scalar[time.Time](t, db, `select clock_timestamp()`))
	execute(t, db, `select dispatcher.make_day($1)`, today-2)
	if missing := scalar[string](t, db, `
		select coalesce(string_agg(distinct a.attrelid::regclass::text, ' '), '')
		from (select p.relid
		    from unnest('{messages,payloads,attempts}'::text[]) as whole,
		      pg_partition_tree(('dispatcher.' || whole)::regclass) p
		    where p.isleaf
		    union all values ('dispatcher.ids_0'::regclass), ('dispatcher.ids_1')) as sampled
		  join pg_attribute a on a.attrelid = sampled.relid and a.attnum > 0
		where a.attstattarget is distinct from 10`); missing != "" {
		t.Errorf("large samples of %s", missing)
	}
}

// otherDays are the partitions of other days than one that are locked by sessions which wait for a
// lock.
const otherDays = `
	select coalesce(string_agg(distinct c.relname, ' '), '')
	from pg_locks l join pg_class c on c.oid = l.relation
	where l.pid in (select pid from pg_stat_activity where datname = current_database()
	    and wait_event_type = 'Lock')
	  and c.relkind = 'r' and c.relname ~ '^(messages|payloads|attempts)_' and c.relname !~ $1`

// TestHotStatementsLockTheDayOfTheirMessagesAlone: however many days there are, claims, settlements
// and receipts read only the days of their messages, in triggers and functions as well.
func TestHotStatementsLockTheDayOfTheirMessagesAlone(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	l, db, watch := connect(t, ledger.Config{URL: url}), raw(t, url), raw(t, url)
	apply(t, l, ledger.ChannelSpec{Name: "a", ActiveMax: 100})
	seen := claimAll(t, l, batch("m", 5), "a")
	m := seen.Messages
	only := strings.ReplaceAll(ledger.DayOf(m[0].Seq).String(), "-", "")
	late := expecting(m[0], "r0")
	late[0].Hold = time.Hour
	settleAll(t, l, late)
	lost := unanswered(m[1], "")
	settleAll(t, l, throttled(m[2:3], time.Hour))
	settleAll(t, l, []ledger.Settlement{lost})
	execute(t, db, `update dispatcher.messages set next_at = now() where next_at is not null`)
	for _, step := range []struct {
		what string
		work func() error
	}{
		{"a claim", func() error {
			return runClaim(t.Context(), l, ledger.Claim{
				Messages: append(batch("new", 2), m[3]), Due: 10, Channels: []string{"a"},
			}, func(s *ledger.Seen) (ledger.Decisions, error) {
				return ledger.Decisions{}, errEnough
			})
		}},
		{"a settlement", func() error {
			return l.Settlements.Settle(t.Context(), accepted(m[3:4]))
		}},
		{"a late answer", func() error {
			truth := expecting(m[1], "r1")
			truth[0].Hold = time.Hour
			return l.Settlements.Settle(t.Context(), append(truth, accepted(m[4:])...))
		}},
		{"receipts", func() error {
			_, err := l.Receipts.Receive(t.Context(), []ledger.Receipt{
				receipt("r0", provider.Delivered), keyed(m[1], 1, "r1", provider.Delivered),
			}, tellState)
			return err
		}},
	} {
		ctx := t.Context()
		tx, err := watch.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(ctx, `
			select from dispatcher.channels join dispatcher.freed_slots using (channel) for update`); err != nil {
			t.Fatal(err)
		}
		done := waiting(t, db, step.work)
		if got := scalar[string](t, db, otherDays, only+"$"); got != "" {
			t.Errorf("%s locks %s", step.what, got)
		}
		if err := tx.Rollback(ctx); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil && !errors.Is(err, errEnough) {
			t.Errorf("%s: %v", step.what, err)
		}
	}
}

// errEnough ends a claim that a test does not need any more.
var errEnough = errors.New("enough")

// TestDueMessagesOfSeveralDaysLockNoOtherDay, and come in the order in which they are due.
func TestDueMessagesOfSeveralDaysLockNoOtherDay(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	l, db := connect(t, ledger.Config{URL: url}), raw(t, url)
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	today := ledger.DayAt(scalar[time.Time](t, db, `select clock_timestamp()`))
	execute(t, db, `select dispatcher.make_day(d) from generate_series($1::int - 4, $1::int) d`, today)
	execute(t, db, `
		with due as (
		  insert into dispatcher.messages (seq, id, lane, state, next_at)
		  select dispatcher.first_of($1::int - 4 * (i % 2)) + i, 'm' || i, 'bulk', 'waiting',
		    now() - i * interval '1 s' from generate_series(1, 6) i returning seq)
		insert into dispatcher.payloads (seq, digest, envelope) select seq, seq, '{}' from due`, today)
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids, other string
	if err := tx.QueryRow(t.Context(), `
		select string_agg((d.message).id || ' ' || convert_from(d.envelope, 'UTF8'), ' ')
		from dispatcher.due_messages(10, '{}', '{bulk}', '{}') d`).Scan(&ids); err != nil {
		t.Fatal(err)
	}
	if want := "m6 {} m5 {} m4 {} m3 {} m2 {} m1 {}"; ids != want {
		t.Errorf("it picks up %s, want %s", ids, want)
	}
	suffix := func(day ledger.Day) string { return strings.ReplaceAll(day.String(), "-", "") }
	if err := tx.QueryRow(t.Context(), `
		select coalesce(string_agg(distinct c.relname, ' '), '')
		from pg_locks k join pg_class c on c.oid = k.relation
		where k.pid = pg_backend_pid() and c.relkind = 'r'
		  and c.relname ~ '^(messages|payloads|attempts)_' and right(c.relname, 8) not in ($1, $2)`,
		suffix(today), suffix(today-4)).Scan(&other); err != nil {
		t.Fatal(err)
	}
	if other != "" {
		t.Errorf("it locks %s", other)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}
