package ledger_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// fillHours stores n messages of the last three hours, out of order by up to 50 s and with gaps in
// seq, as rolled back claims leave them. Every tenth has no route, every twelfth is dead, every
// seventh has two attempts.
func fillHours(t testing.TB, db *pgx.Conn, n int) {
	t.Helper()
	const messages = `
		insert into dispatcher.messages (seq, id, lane, kafka_offset, attempts, state,
		  finished_at, next_at,
		  route, routing_version, first_choice, received_at)
		select dispatcher.first_of(dispatcher.day_at(now())) + s + 7 * (s / 3), 'm' || s, 'otp', s,
		  case k.state when 'accepted' then 1
		  else 0 end, k.state,
		  case k.state when 'dead' then now() end, case k.state when 'waiting' then now() end,
		  case when s % 10 > 0 then 'default' end, 1, 'a',
		  now() - interval '3 hours' * ($1 - s) / $1 - interval '50 seconds' * random()
		from generate_series(1, $1::bigint) s,
		  lateral (select case when s % 12 = 0 then 'dead' when s % 10 = 0 then 'waiting'
		    else 'accepted' end as state) k
		order by s`
	const attempts = `
		insert into dispatcher.attempts (message_seq, attempt, channel, reason, outcome, segments,
		  price_micros, currency,
		  claimed_at, settled_at, instance, answers)
		select seq, k, 'a', 'first_choice', 'accepted', 1, 28000, 'GBP', received_at, received_at,
		  1, 1
		from dispatcher.messages, generate_series(1, case when kafka_offset % 7 = 0 then 2 else 1 end) k
		order by seq, k`
	if _, err := db.Exec(t.Context(), messages, n); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), attempts); err != nil {
		t.Fatal(err)
	}
}

// visitAll returns the ids that EachChoice visits.
func visitAll(t testing.TB, l *ledger.Ledger, f ledger.ChoiceFilter) (ids []string) {
	t.Helper()
	var last int64
	err := l.Messages.EachChoice(t.Context(), f, func(r *ledger.Record) error {
		if r.Message.Seq <= last {
			return fmt.Errorf("message %d follows %d", r.Message.Seq, last)
		}
		want := 1
		if r.Message.Origin.Offset%7 == 0 {
			want = 2
		}
		if len(r.Attempts) != want || r.Attempts[want-1].Number != want {
			return fmt.Errorf("message %d has %d attempts", r.Message.Seq, len(r.Attempts))
		}
		last = r.Message.Seq
		ids = append(ids, r.Message.ID)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestEachChoiceVisitsExactlyTheMessagesOfTheRange(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	db, l := rig.db, rig.l
	now := scalar[time.Time](t, db, `select now()`)
	if got := visitAll(t, l, ledger.ChoiceFilter{From: now.Add(-time.Hour), To: now}); got != nil {
		t.Errorf("an empty ledger has %d", len(got))
	}
	fillHours(t, db, tier.Size(4500, 9000))
	random := rand.New(rand.NewPCG(1, 2))
	type span struct{ length, ago time.Duration }
	spans := []span{{0, 0}, {time.Minute, time.Second}, {time.Hour, 3 * time.Hour}, {
		24 * time.Hour, -time.Hour,
	}}
	for range tier.Size(6, 20) {
		spans = append(spans, span{
			time.Duration(random.Int64N(int64(time.Hour))),
			time.Duration(random.Int64N(int64(3 * time.Hour))),
		})
	}
	for _, span := range spans {
		to := now.Add(-span.ago)
		f := ledger.ChoiceFilter{From: to.Add(-span.length), To: to}
		want := scalar[[]string](t, db, `
			select array_agg(id order by seq) from dispatcher.messages
			where received_at >= $1 and received_at < $2 and kafka_offset % 12 > 0
			  and kafka_offset % 10 > 0`, f.From, f.To)
		if got := visitAll(t, l, f); !slices.Equal(got, want) {
			t.Errorf("%s until %s ago: visited %d of %d", span.length, span.ago, len(got),
				len(want))
		}
	}
}

func TestASampleIsTheSameEachTimeAndEvenOverTheRange(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	db, l := rig.db, rig.l
	fillHours(t, db, 4500)
	now := scalar[time.Time](t, db, `select now()`)
	f := ledger.ChoiceFilter{From: now.Add(-72 * time.Hour), To: now, Sample: 2500} // two pages
	sample := visitAll(t, l, f)
	if len(sample) != f.Sample || !slices.Equal(sample, visitAll(t, l, f)) {
		t.Fatalf("%d sampled", len(sample))
	}
	thirds := [3]int{}
	for _, id := range sample {
		var n int
		if _, err := fmt.Sscanf(id, "m%d", &n); err != nil {
			t.Fatal(err)
		}
		thirds[(n-1)/1500]++
	}
	for i, n := range thirds { // 833 on average, with a deviation of 21
		if n < 730 || n > 940 {
			t.Errorf("%d of %d come from third %d", n, len(sample), i)
		}
	}
	f.Sample = 100
	for _, id := range visitAll(t, l, f) {
		if !slices.Contains(sample, id) {
			t.Errorf("%s is in the smaller sample alone", id)
		}
	}
	f.Sample = 1 << 30
	everything := visitAll(t, l, f)
	f.Sample = 0
	if diff := cmp.Diff(visitAll(t, l, f), everything); diff != "" {
		t.Error(diff)
	}
}

func TestEachChoiceShowsWhatRecordShows(t *testing.T) {
	t.Parallel()
	l := open(t, ledger.ChannelSpec{Name: "a", ActiveMax: 3})
	seen := claimAll(t, l, batch("m", 5), "a") // two of them wait
	settleAll(t, l, accepted(seen.Messages[:2]))
	f := ledger.ChoiceFilter{From: seen.Now.Add(-time.Hour), To: seen.Now.Add(time.Hour)}
	visited := 0
	err := l.Messages.EachChoice(t.Context(), f, func(r *ledger.Record) error {
		visited++
		want, err := l.Messages.Record(t.Context(), r.Message.ID)
		want.Routing = nil
		if diff := cmp.Diff(&want, r, cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
		return err
	})
	if err != nil || visited != 5 {
		t.Errorf("%d visited, %v", visited, err)
	}
}

// TestEachChoiceShowsEveryRecordAsOfOneMoment: a message gets its attempt between the reading of
// its row and that of its attempts.
func TestEachChoiceShowsEveryRecordAsOfOneMoment(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	db, watch, l := rig.db, raw(t, rig.url), rig.l
	fillHours(t, db, 20)
	for _, sample := range []int{0, 100} {
		tx, err := db.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range []string{
			`lock table dispatcher.attempts in access exclusive mode`,
			`update dispatcher.messages set attempts = attempts + 1 where route is not null
				and state = 'accepted'`,
			`insert into dispatcher.attempts (message_seq, attempt, channel, reason, outcome,
				segments, price_micros, currency, claimed_at, settled_at, instance, answers)
				select message_seq, max(attempt) + 1, 'a', 'retry', 'accepted', 1, 28000, 'GBP',
				  now(), now(), 1, 1 from dispatcher.all_attempts group by message_seq`,
		} {
			if _, err := tx.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		before := map[string]int{}
		rows, err := watch.Query(t.Context(), `select id, attempts from dispatcher.messages`)
		if err != nil {
			t.Fatal(err)
		}
		var id string
		var n int
		if _, err := pgx.ForEachRow(rows, []any{&id, &n}, func() error {
			before[id] = n
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			now := time.Now()
			done <- l.Messages.EachChoice(t.Context(), ledger.ChoiceFilter{
				From: now.Add(-24 * time.Hour), To: now.Add(time.Hour), Sample: sample,
			}, func(r *ledger.Record) error {
				if r.Message.Attempts != before[r.Message.ID] {
					return fmt.Errorf("the row of %s is newer than the snapshot", r.Message.ID)
				}
				// fillHours gives some of them two, and each round one more
				if len(r.Attempts) > 2+sample/100 {
					return fmt.Errorf("%s has %d attempts, of which its row knows nothing",
						r.Message.ID, len(r.Attempts))
				}
				return nil
			})
		}()
		for !scalar[bool](t, watch, `select exists (select from pg_locks where not granted
			and relation = 'dispatcher.attempts'::regclass)`) {
			scalar[bool](t, watch, `select pg_sleep(0.005) is not null`)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestEachChoiceVisitsWhateverHasAttempts, so that an attempt cannot be hidden by removing the
// route of its message or making that dead.
func TestEachChoiceVisitsWhateverHasAttempts(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	db, l := rig.db, rig.l
	fillHours(t, db, 100)
	now := time.Now()
	f := ledger.ChoiceFilter{From: now.Add(-24 * time.Hour), To: now.Add(time.Hour)}
	all := visitAll(t, l, f)
	for _, sql := range []string{
		`update dispatcher.messages set route = null, routing_version = null where id = 'm1'`,
		`alter table dispatcher.messages disable trigger user`,
		`update dispatcher.messages set state = 'dead', finished_at = now() where id = 'm2'`,
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(all, visitAll(t, l, f)); diff != "" {
		t.Error(diff)
	}
}

func TestEachChoiceEndsWithTheErrorOfItsVisitor(t *testing.T) {
	t.Parallel()
	l := open(t)
	seen := claimAll(t, l, batch("m", 5), "a")
	enough := errors.New("enough")
	for _, sample := range []int{0, 5} {
		visited := 0
		f := ledger.ChoiceFilter{
			From: seen.Now.Add(-time.Hour), To: seen.Now.Add(time.Hour),
			Sample: sample,
		}
		err := l.Messages.EachChoice(t.Context(), f, func(*ledger.Record) error {
			visited++
			return enough
		})
		if err != enough || visited != 1 { //nolint:errorlint // It is returned as it is.
			t.Errorf("%d visited, %v", visited, err)
		}
	}
	for name, f := range map[string]ledger.ChoiceFilter{
		"no range": {}, "no end": {From: seen.Now}, "negative sample": {
			From: seen.Now, To: seen.Now, Sample: -1,
		},
	} {
		if err := l.Messages.EachChoice(t.Context(), f, nil); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
