package ledger_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// holding claims n messages on channel a, which allows ten at once, and settles them as accepted.
// Each holds its slot for an hour.
func holding(
	t testing.TB, n int,
) (l *ledger.Ledger, db *pgx.Conn, settlements []ledger.Settlement) {
	t.Helper()
	r := lend(t)
	l, db = r.l, r.db
	apply(t, l, ledger.ChannelSpec{Name: "a", ActiveMax: 10}, ledger.ChannelSpec{Name: "b"})
	settlements = accepted(claimAll(t, l, batch("m", n), "a").Messages)
	for i := range settlements {
		settlements[i].Hold, settlements[i].Await = time.Hour, 72*time.Hour
	}
	settleAll(t, l, settlements)
	return l, db, settlements
}

func activeOn(t testing.TB, db *pgx.Conn, channel string) int64 {
	t.Helper()
	return scalar[int64](t, db, `select active from audit.active where channel = $1`,
		channel)
}

func release(t testing.TB, l *ledger.Ledger) int64 {
	t.Helper()
	n, err := l.Settlements.ReleaseSlots(t.Context(), 6*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// byReceipt receives delivered for the parts of these references, and returns how many slots that
// freed.
func byReceipt(t testing.TB, l *ledger.Ledger, channel string, references ...string) int64 {
	t.Helper()
	receipts := make([]ledger.Receipt, len(references))
	for i, reference := range references {
		receipts[i] = ledger.Receipt{
			Channel: channel, Reference: reference,
			State: provider.Delivered,
		}
	}
	return receive(t, l, receipts...).Freed
}

// beatingForLong makes the heartbeats of an instance unbroken for long.
func beatingForLong(t testing.TB, db *pgx.Conn, l *ledger.Ledger) {
	t.Helper()
	execute(t, db, `update dispatcher.instances
		set beating_since = now() - interval '1 hour', last_seen = now() where id = $1`,
		l.Instances.ID())
}

// endHolds ends the time of all held slots.
func endHolds(t testing.TB, db *pgx.Conn) {
	t.Helper()
	execute(t, db, `update dispatcher.attempts set held_until = now() where held_until is not null`)
}

func execute(t testing.TB, db *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func TestAReceiptFreesTheSlotThatWasHeldOnce(t *testing.T) {
	t.Parallel()
	l, db, settlements := holding(t, 3)
	settleAll(t, l, settlements) // again: it holds nothing twice
	if n := activeOn(t, db, "a"); n != 3 {
		t.Fatalf("%d active", n)
	}
	for _, step := range []struct {
		channel    string
		references []string
		freed      int64
		active     int64
	}{
		{"b", []string{"ref-m-00000"}, 0, 3}, // another channel's reference
		{"a", []string{"never", "ref-m-00000"}, 1, 2},
		{"a", []string{"ref-m-00000"}, 0, 2}, // the receipt comes again
		{"a", []string{"ref-m-00002", "ref-m-00001", "ref-m-00000", "ref-m-00001"}, 2, 0},
		{"a", nil, 0, 0},
	} {
		if got, n := byReceipt(t, l, step.channel, step.references...),
			activeOn(t, db, "a"); got != step.freed || n != step.active {
			t.Errorf("%v on %s freed %d with %d left active, want %d and %d", step.references,
				step.channel, got, n, step.freed, step.active)
		}
	}
	settleAll(t, l, settlements)
	if n := activeOn(t, db, "a"); n != 0 || release(t, l) != 0 {
		t.Errorf("%d active", n)
	}
}

func TestTheFirstReceiptOfAnyPartFreesTheSlot(t *testing.T) {
	t.Parallel()
	l, db, _ := holding(t, 0)
	s := accepted(claimAll(t, l, batch("m", 1), "a").Messages)
	s[0].Hold, s[0].Await, s[0].Reference = time.Hour, time.Hour, "r1 r2 r3"
	settleAll(t, l, s)
	if got := receive(t, l, ledger.Receipt{Channel: "a", Reference: "r1"}); got.Freed != 0 ||
		got.Matched != 1 || activeOn(t, db, "a") != 1 {
		t.Errorf("a receipt that says nothing certain: %+v, %d active", got, activeOn(t, db, "a"))
	}
	if got := byReceipt(t, l, "a", "r2"); got != 1 || activeOn(t, db, "a") != 0 {
		t.Errorf("%d freed, %d active", got, activeOn(t, db, "a"))
	}
	if got := byReceipt(t, l, "a", "r3", "r1", "r4"); got != 0 || activeOn(t, db, "a") != 0 {
		t.Errorf("%d freed, %d active", got, activeOn(t, db, "a"))
	}
}

func TestAHeldSlotIsFreedWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	l, db, settlements := holding(t, 3)
	if release(t, l) != 0 {
		t.Fatal("slots were freed before their time")
	}
	execute(t, db, `update dispatcher.attempts set held_until = now() where message_seq <> $1`,
		settlements[0].Seq)
	if n := release(t, l); n != 2 || activeOn(t, db, "a") != 1 {
		t.Errorf("%d freed, %d active", n, activeOn(t, db, "a"))
	}
	if got := byReceipt(t, l, "a", "ref-m-00001"); got != 0 || activeOn(t, db, "a") != 1 ||
		release(t, l) != 0 {
		t.Errorf("a receipt that came late freed %d, %d active", got, activeOn(t, db, "a"))
	}
}

func TestManyHeldSlotsAreFoundThroughTheirIndex(t *testing.T) {
	t.Parallel()
	l, db, _ := holding(t, 0)
	execute(t, db, `
		insert into dispatcher.attempts (message_seq, attempt, channel, reason, outcome, segments,
		  price_micros, currency, claimed_at,
		  settled_at, instance, answers, held_until)
		select dispatcher.first_of(dispatcher.day_at(now())) + n, 1, 'a', 'first_choice',
		  'accepted', 1, 0, 'GBP', now(), now(), 1, 1, now() + case when n % 10 = 0 then interval '-1 minute' else interval '1 hour' end
		from generate_series(1, 10000) n`)
	execute(t, db, `update dispatcher.channels
		set configured_max = 0, active_max = 0, active = 10000 where channel = 'a'`)
	execute(t, db, `insert into dispatcher.held (message_seq, attempt, held_until)
		select message_seq, attempt, held_until from dispatcher.all_attempts`)
	execute(t, db, `analyze dispatcher.held, dispatcher.attempts`)
	if got := ledger.PlanOf(t, db, `select message_seq, attempt from dispatcher.held
		where held_until <= now() order by held_until limit 500`); !strings.Contains(got,
		"held_until on held") {
		t.Error(got)
	}
	if n := release(t, l); n != 1000 || activeOn(t, db, "a") != 9000 {
		t.Errorf("%d freed, %d active", n, activeOn(t, db, "a"))
	}
}

// throttled settles the first attempts of messages as throttled: they are due at once on channel a,
// and keep their slots.
func throttled(messages []ledger.Message, hold time.Duration) []ledger.Settlement {
	settlements := make([]ledger.Settlement, len(messages))
	for i := range messages {
		m := &messages[i]
		settlements[i] = ledger.Settlement{
			Seq: m.Seq, ID: m.ID, Attempt: m.Attempts + 1, Outcome: provider.Throttled, Code: "88",
			State:  ledger.Retry,
			Reason: "throttled", Pinned: "a", Hold: hold, Slow: &ledger.Slow{
				RetryAfter: 30 * time.Second,
			},
		}
	}
	return settlements
}

// again claims what is due. With "with" set, a message that has a ticket uses it.
func again(t testing.TB, l *ledger.Ledger, with bool, then ledger.State) (seen ledger.Seen) {
	t.Helper()
	err := runClaim(t.Context(), l, ledger.Claim{Due: 100, Channels: []string{"a"}},
		func(s *ledger.Seen) (ledger.Decisions, error) {
			seen = *s
			d := ledger.Decisions{Each: make([]ledger.Decision, len(s.Messages))}
			for i := range s.Messages {
				m, each := &s.Messages[i], &d.Each[i]
				each.State, each.Plan, each.Reason = then, m.Plan, "test"
				if then != ledger.Sending {
					continue
				}
				each.Attempt = ledger.Attempt{
					Number: m.Attempts + 1, Channel: "a",
					Reason: ledger.ByRetry, Segments: 1, PriceMicros: 28000, Currency: "GBP",
				}
				if with && m.Ticket.Valid(s.Now, time.Hour) {
					ticket := m.Ticket.CheckIn(s.Now)
					each.Attempt.Ticket = &ticket
					continue
				}
				s.Channels[0].Gate.Active.Count++
			}
			return d, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func TestARetryUnderATicketKeepsItsSlot(t *testing.T) {
	t.Parallel()
	l, db, _ := holding(t, 0)
	first := claimAll(t, l, batch("m", 2), "a")
	settleAll(t, l, throttled(first.Messages, time.Hour))
	if n := activeOn(t, db, "a"); n != 2 {
		t.Fatalf("%d active while two tickets are held", n)
	}
	second := again(t, l, true, ledger.Sending)
	if len(second.Messages) != 2 || second.Messages[0].Ticket == nil {
		t.Fatalf("%+v", second.Messages)
	}
	if got := second.Messages[0].Ticket; !got.AcceptedAt.Equal(first.Now) ||
		!got.LastCheckIn.Equal(first.Now) || !got.Bucket.Equal(first.Now.Truncate(time.Minute)) {
		t.Errorf("ticket %+v of an attempt at %s", got, first.Now)
	}
	if n := activeOn(t, db, "a"); n != 2 || release(t, l) != 0 {
		t.Fatalf("%d active", n)
	}
	settleAll(t, l, throttled(second.Messages, time.Hour))
	third := again(t, l, true, ledger.Sending)
	if got := third.Messages[0].Ticket; !got.AcceptedAt.Equal(first.Now) ||
		!got.LastCheckIn.Equal(second.Now) {
		t.Errorf("the ticket of the third attempt is %+v", got)
	}
	settleAll(t, l, throttled(first.Messages, time.Hour)) // an old settlement comes again
	settleAll(t, l, accepted(third.Messages))
	endHolds(t, db)
	if n := activeOn(t, db, "a"); n != 0 || release(t, l) != 0 {
		t.Errorf("%d active at the end", n)
	}
	rows := scalar[string](t, db, `
		select string_agg(concat_ws(' ', attempt, ticket_accepted_at = $1,
		  ticket_bucket = date_trunc('minute', $1::timestamptz), ticket_last_check_in = claimed_at),
		    ', ' order by attempt)
		from audit.attempts where message_id = 'm-00000'`, first.Now)
	if want := "1 t t t, 2 t t t, 3 t t t"; rows != want {
		t.Errorf("audit.attempts has tickets %q, want %q", rows, want)
	}
	r, err := l.Messages.Record(t.Context(), "m-00000")
	if err != nil || r.Attempts[0].Ticket != nil || r.Attempts[2].Ticket == nil ||
		!r.Attempts[2].Ticket.AcceptedAt.Equal(first.Now) {
		t.Errorf("%v %+v", err, r.Attempts)
	}
}

func TestATicketThatIsNotUsedGivesItsSlotBack(t *testing.T) {
	t.Parallel()
	for then, active := range map[ledger.State]int64{
		ledger.Sending: 1, ledger.Failed: 0,
		ledger.Rejected: 0,
	} {
		t.Run(string(then), func(t *testing.T) {
			t.Parallel()
			l, db, _ := holding(t, 0)
			settleAll(t, l, throttled(claimAll(t, l, batch("m", 1), "a").Messages, time.Hour))
			again(t, l, false, then)
			endHolds(t, db)
			if n := activeOn(t, db, "a"); n != active || release(t, l) != 0 {
				t.Errorf("%d active, want %d", n, active)
			}
		})
	}
}

func TestATicketThatIsOverIsNotShown(t *testing.T) {
	t.Parallel()
	l, db, _ := holding(t, 0)
	settleAll(t, l, throttled(claimAll(t, l, batch("m", 1), "a").Messages, time.Hour))
	endHolds(t, db)
	if release(t, l) != 1 {
		t.Fatal("the slot was not freed")
	}
	if seen := again(t, l, true, ledger.Sending); seen.Messages[0].Ticket != nil ||
		activeOn(t, db, "a") != 1 {
		t.Errorf("ticket %+v, %d active", seen.Messages[0].Ticket, activeOn(t, db, "a"))
	}
}

func TestWhoeverFreesATicketIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	l, db, _ := holding(t, 0)
	settleAll(t, l, throttled(claimAll(t, l, batch("m", 1), "a").Messages, time.Hour))
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) //nolint:errcheck // The end of the test ends it, too.
	if _, err := tx.Exec(t.Context(), `select from dispatcher.attempts for update`); err != nil {
		t.Fatal(err)
	}
	if seen := again(t, l, true, ""); len(seen.Messages) != 1 || seen.Messages[0].Ticket != nil {
		t.Errorf("%+v", seen.Messages)
	}
}

func TestSlotsOfADeadInstanceAreFreeAtOnceAndOnlyOnce(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	living, dead := rig.l, connect(t, ledger.Config{URL: rig.url})
	db := rig.db
	apply(t, living, ledger.ChannelSpec{Name: "a", ActiveMax: 10})
	claimAll(t, living, batch("living", 2), "a")
	lost := claimAll(t, dead, batch("dead", 3), "a")
	execute(t, db, `update dispatcher.instances set last_seen = now()`)
	beatingForLong(t, db, living)
	if release(t, living) != 0 {
		t.Fatal("slots of living instances were freed")
	}
	execute(t, db, `update dispatcher.instances set last_seen = now() - interval '7 seconds'
		where id = $1`, dead.Instances.ID())
	if n := release(t, living); n != 3 || activeOn(t, db, "a") != 2 {
		t.Fatalf("%d freed, %d active", n, activeOn(t, db, "a"))
	}
	if release(t, living) != 0 || activeOn(t, db, "a") != 2 {
		t.Fatal("slots were freed twice")
	}
	open, err := living.Settlements.Abandoned(t.Context(), 6*time.Second, 0, 10)
	if err != nil || len(open) != 3 {
		t.Fatalf("%d abandoned, %v", len(open), err)
	}
	settleAll(t, living, []ledger.Settlement{unknown(lost.Messages[0]), unknown(lost.Messages[1])})
	late := accepted(lost.Messages) // the dead one was only asleep
	for i := range late {
		late[i].Hold, late[i].Await = time.Hour, time.Hour
	}
	settleAll(t, living, late)
	if n := activeOn(t, db, "a"); n != 2 || release(t, living) != 0 ||
		byReceipt(t, living, "a", "ref-dead-00002") != 0 {
		t.Errorf("%d active after the late answers", activeOn(t, db, "a"))
	}
}

// The database was away for all instances. The first one to come back must not take the others for
// dead.
func TestWhoComesBackFirstAfterAnOutageFreesNobodysSlots(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	first, second := rig.l, connect(t, ledger.Config{URL: rig.url})
	db := rig.db
	apply(t, first, ledger.ChannelSpec{Name: "a", ActiveMax: 10})
	claimAll(t, second, batch("m", 3), "a")
	beat := func(l *ledger.Ledger) {
		t.Helper()
		if _, err := l.Instances.Beat(t.Context(), time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	pass := func(ago string) { // so much time passes for all
		t.Helper()
		execute(t, db, `update dispatcher.instances
			set last_seen = last_seen - $1::interval,
			  beating_since = beating_since - $1::interval`, ago)
	}
	pass("1 hour")
	beat(first)
	beat(second)
	pass("10 seconds") // the outage
	beat(first)
	if n := release(t, first); n != 0 || activeOn(t, db, "a") != 3 {
		t.Fatalf("%d slots of a living instance were freed", n)
	}
	passed := 0 // on a busy machine two beats may be so far apart that it counts from anew
	tier.Eventually(t, "the slots of an instance that has stayed away are freed", func() bool {
		pass("1 second")
		passed++
		beat(first)
		return release(t, first) == 3
	})
	if passed < 3 || activeOn(t, db, "a") != 0 {
		t.Errorf("after %d s %d slots are in use", passed, activeOn(t, db, "a"))
	}
}

// A process that was taken for dead, and whose slot was given back, settles its attempt all the
// same.
func TestAnAttemptThatLostItsSlotIsSettledWithoutGivingItBackAgain(t *testing.T) {
	t.Parallel()
	for name, add := range map[string]func(*ledger.Settlement){
		"plain": func(*ledger.Settlement) {},
		"slow":  func(s *ledger.Settlement) { s.Slow = &ledger.Slow{RetryAfter: time.Second} },
		"hold":  func(s *ledger.Settlement) { s.Hold, s.Await = time.Hour, time.Hour },
		"refunds": func(s *ledger.Settlement) {
			s.Refunds = []ledger.Refund{
				{ScopeRef: ledger.ScopeRef{Channel: "a"}, Window: admission.Day, Micros: 1},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig := lend(t)
			l, db := rig.l, rig.db
			apply(t, l, ledger.ChannelSpec{Name: "a", ActiveMax: 10, Limits: []admission.Limit{
				budget(admission.Scope{}, 1e9),
			}})
			_, sent := mustClaim(t, l, batch("m", 3))
			execute(t, db, ledgertest.StoreOpen)
			execute(t, db, `update dispatcher.attempts set freed = true where message_seq = $1`,
				sent[0].Seq)
			execute(t, db, `update dispatcher.channels set active = active - 1`)
			s := accepted(sent[:1])
			add(&s[0])
			for range 2 {
				settleAll(t, l, s)
				if n := activeOn(t, db, "a"); n != 2 {
					t.Fatalf("%d active, want those of the two others", n)
				}
			}
			if n := scalar[int](t, db,
				`select count(*) from dispatcher.all_attempts where held_until is not null`); n != 0 {
				t.Error("it holds a slot that was given back")
			}
			beatingForLong(t, db, l)
			if release(t, l) != 0 || byReceipt(t, l, "a", s[0].Reference) != 0 ||
				activeOn(t, db, "a") != 2 {
				t.Errorf("%d active", activeOn(t, db, "a"))
			}
		})
	}
}

// Receipts, ends of holds, retries and settlements of the same attempts run at the same time, on
// two channels in both orders. Each slot is freed once, and there is no deadlock.
func TestSlotsAreFreedOnceWhoeverIsFirst(t *testing.T) {
	t.Parallel()
	url := lend(t).url
	l, db := connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 8)}), raw(t, url)
	apply(t, l, ledger.ChannelSpec{Name: "a", ActiveMax: 1000}, ledger.ChannelSpec{
		Name: "b", ActiveMax: 1000,
	})
	rounds := tier.Size(2, 10)
	for round := range rounds {
		settlements := accepted(claimAll(t, l, batch(fmt.Sprintf("a%d", round), 100), "a").Messages)
		settlements = append(settlements,
			accepted(claimAll(t, l, batch(fmt.Sprintf("b%d", round), 100), "b").Messages)...)
		var receipts []ledger.Receipt
		for i := range settlements {
			settlements[i].Hold, settlements[i].Await = time.Microsecond, time.Hour
			if i%2 == 0 {
				settlements[i].Slow = &ledger.Slow{}
			}
			channel := []string{"a", "b"}[i/100]
			receipts = append(receipts, ledger.Receipt{
				Channel: channel, Reference: settlements[i].Reference, State: provider.Delivered,
			})
		}
		var workers sync.WaitGroup
		for worker := range 8 {
			workers.Go(func() {
				var err error
				switch worker % 4 {
				case 0:
					err = l.Settlements.Settle(t.Context(), settlements)
				case 1:
					_, err = l.Settlements.ReleaseSlots(t.Context(), time.Hour)
				case 2:
					_, err = l.Receipts.Receive(t.Context(), receipts, nil)
				default:
					_, err = l.Receipts.Overdue(t.Context(), 1000, nil)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		workers.Wait()
		receive(t, l, receipts...)
		overdue(t, l)
		release(t, l)
		if n := scalar[int](t, db,
			`select count(*) from dispatcher.message_states where state <> 'delivered'`); n != 0 {
			t.Fatalf("%d messages are not delivered", n)
		}
		if a, b := activeOn(t, db, "a"), activeOn(t, db, "b"); a != 0 || b != 0 {
			t.Fatalf("%d and %d active", a, b)
		}
	}
}

func TestAThrottledAnswerSlowsTheChannelDownForAll(t *testing.T) {
	t.Parallel()
	l, _, _ := holding(t, 0)
	s := throttled(claimAll(t, l, batch("m", 3), "a").Messages, 0)
	settleAll(t, l, s)
	settleAll(t, l, s) // has no second effect
	seen := claimAll(t, l, batch("n", 1), "a", "b")
	ease := seen.Channels[0].Gate.Ease
	if ease.Rate != 0.5 || ease.Since.IsZero() || ease.Until.Sub(ease.Since) != 30*time.Second ||
		ease.RateAt(seen.Now) > 0.6 {
		t.Errorf("%+v", ease)
	}
	if other := seen.Channels[1].Gate.Ease; other != (admission.Ease{}) ||
		other.RateAt(seen.Now) != 1 {
		t.Errorf("channel b: %+v", other)
	}
	p, err := l.Limits.Present(t.Context())
	if err != nil || p.Channels[0].Gate.Ease != ease {
		t.Errorf("%v %+v", err, p.Channels[0].Gate.Ease)
	}
}

// TestSlotsComeBackWhileAClaimHoldsItsChannels: a settlement does not wait for a claim that holds
// the channels. That claim still counts the slots, and the next one gives them to others.
func TestSlotsComeBackWhileAClaimHoldsItsChannels(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a", ActiveMax: 3})
	sent := claimAll(t, r.l, batch("m", 3), "a").Messages
	held, err := r.l.Claims.Lock(t.Context(), ledger.Claim{Channels: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Rollback()
	settleAll(t, r.l, accepted(sent))
	if n := activeOn(t, r.db, "a"); n != 0 {
		t.Errorf("%d active after all were settled", n)
	}
	full := admission.Active{Max: 3, Count: 3}
	if got := held.Seen().Channels[0].Gate.Active; got != full {
		t.Errorf("the claim that began before shows %+v", got)
	}
	held.Rollback()
	next := claimAll(t, r.l, batch("n", 3), "a")
	if got := next.Channels[0].Gate.Active; got != full {
		t.Errorf("the next claim gave the slots to %+v", got)
	}
	if n := activeOn(t, r.db, "a"); n != 3 {
		t.Errorf("%d active, want those of the next claim", n)
	}
}
