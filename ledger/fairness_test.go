package ledger_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

// queue stores n waiting messages of a lane and tenant, which came due a second apart, oldest
// first.
func queue(t testing.TB, db *pgx.Conn, lane, tenant string, n int) {
	t.Helper()
	store(t, db, "id, lane, tenant, state, next_at", `
		select concat_ws('-', $1::text, $2::text, lpad(n::text, 5, '0')), $1, $2, 'waiting',
		  now() - make_interval(secs => $3 - n + 1)
		from generate_series(1, $3::int) n`, lane, tenant, n)
}

// lined is a ledger with messages in the queue, by lane/tenant.
func lined(t testing.TB, queues map[string]int) (*ledger.Ledger, *pgx.Conn) {
	t.Helper()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	for name, n := range queues {
		lane, tenant, _ := strings.Cut(name, "/")
		queue(t, db, lane, tenant, n)
	}
	return l, db
}

// pick picks up due rows, and leaves them as they are or sends them. It returns them by
// lane/tenant.
func pick(
	t testing.TB, l *ledger.Ledger, due int, send bool,
) (counts map[string]int, picked []ledger.Message) {
	t.Helper()
	counts = map[string]int{}
	err := runClaim(t.Context(), l, ledger.Claim{
		Due: due, Lanes: []string{"otp", "transactional", "bulk"}, Channels: []string{"a"},
	},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			picked = seen.Messages
			if !send {
				return ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}, nil
			}
			return give(seen)
		})
	if err != nil {
		t.Fatal(err)
	}
	for i := range picked {
		counts[picked[i].Lane+"/"+picked[i].Tenant]++
	}
	return counts, picked
}

func TestTenantsTakeFairTurns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		queues map[string]int
		due    int
		want   map[string]int
	}{
		"a small one beside a campaign": {
			map[string]int{"bulk/big": 200, "bulk/small": 10},
			100,
			map[string]int{"bulk/big": 90, "bulk/small": 10},
		},
		"equal parts": {map[string]int{
			"bulk/x": 90, "bulk/y": 90,
			"bulk/z": 90,
		}, 30, map[string]int{"bulk/x": 10, "bulk/y": 10, "bulk/z": 10}},
		"what one does not need": {map[string]int{
			"bulk/x": 180, "bulk/y": 10,
			"bulk/z": 40,
		}, 120, map[string]int{"bulk/x": 70, "bulk/y": 10, "bulk/z": 40}},
		"one tenant alone": {map[string]int{"bulk/x": 180}, 100, map[string]int{
			"bulk/x": 100,
		}},
		"all fit": {
			map[string]int{"bulk/x": 9, "otp/y": 5},
			500,
			map[string]int{"bulk/x": 9, "otp/y": 5},
		},
		"lanes by rank": {map[string]int{
			"bulk/x": 180, "otp/y": 30, "transactional/z": 40,
		}, 100, map[string]int{"bulk/x": 30, "otp/y": 30, "transactional/z": 40}},
		"an urgent lane takes it all": {
			map[string]int{"bulk/x": 180, "otp/y": 60},
			20,
			map[string]int{"otp/y": 20},
		},
		"a lane without a rank comes last": {
			map[string]int{"aaa/x": 180, "bulk/y": 18},
			20,
			map[string]int{"bulk/y": 18, "aaa/x": 2},
		},
		"no tenant": {map[string]int{"bulk/": 180, "bulk/y": 2}, 20, map[string]int{
			"bulk/": 18, "bulk/y": 2,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := lined(t, tc.queues)
			got, picked := pick(t, l, tc.due, false)
			if !maps.Equal(got, tc.want) {
				t.Errorf("picked %v, want %v", got, tc.want)
			}
			oldest := map[string]int{}
			slices.SortFunc(picked, func(a, b ledger.Message) int {
				return cmp.Compare(a.ID, b.ID)
			})
			for i := range picked { // those of a tenant are its oldest
				m := &picked[i]
				oldest[m.Lane+m.Tenant]++
				if !strings.HasSuffix(m.ID, fmt.Sprintf("%05d", oldest[m.Lane+m.Tenant])) {
					t.Fatalf("%s was picked as number %d", m.ID, oldest[m.Lane+m.Tenant])
				}
			}
		})
	}
}

func TestMoreTenantsThanRowsComeRoundInTurn(t *testing.T) {
	t.Parallel()
	queues := map[string]int{}
	for i := range 100 {
		queues[fmt.Sprintf("bulk/t%02d", i)] = 3
	}
	l, _ := lined(t, queues)
	served := map[string]bool{}
	for range 10 {
		got, _ := pick(t, l, 10, true)
		for name := range got {
			if served[name] {
				t.Fatalf("%s had two turns before all had one", name)
			}
			served[name] = true
		}
	}
	if len(served) != 100 {
		t.Errorf("%d of 100 tenants had a turn", len(served))
	}
}

// TestCodesBetweenDoNotMoveTheTurnsOfACampaign: a claim that picks up rows of an urgent lane only
// does not change the turn of another lane.
func TestCodesBetweenDoNotMoveTheTurnsOfACampaign(t *testing.T) {
	t.Parallel()
	queues := map[string]int{}
	for i := range 20 {
		queues[fmt.Sprintf("bulk/t%02d", i)] = 20
	}
	l, db := lined(t, queues)
	served := map[string]int{}
	rounds := tier.Size(10, 20)
	for round := range rounds {
		store(t, db, "id, lane, tenant, state, next_at", `
			select concat_ws('-', 'code', $1::int, n), 'otp', 't09', 'waiting', now()
			from generate_series(1, 4) n`, round)
		if got, _ := pick(t, l, 4, true); !maps.Equal(got, map[string]int{"otp/t09": 4}) {
			t.Fatalf("round %d began with %v", round, got)
		}
		got, _ := pick(t, l, 10, true)
		for name, n := range got {
			served[name] += n
		}
	}
	for name := range queues {
		if served[name] != rounds/2 {
			t.Errorf("%s was served %d times of %d, want %d", name, served[name], 10*rounds, rounds/2)
		}
	}
}

func TestWhatIsNotDueOrExceptedIsNotPicked(t *testing.T) {
	t.Parallel()
	l, db := lined(t, map[string]int{"bulk/x": 600, "bulk/y": 600})
	execute(t, db, `update dispatcher.messages set next_at = now() + interval '1 hour'
		where tenant = 'x' and seq % 2 = 0`)
	var except []int64
	if err := db.QueryRow(t.Context(),
		`select array_agg(seq) from dispatcher.messages where tenant = 'y' and seq % 3 = 0`).
		Scan(&except); err != nil {
		t.Fatal(err)
	}
	var picked []ledger.Message
	err := runClaim(t.Context(), l, ledger.Claim{Due: 650, Except: except},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			picked = seen.Messages
			return ledger.Decisions{Each: make([]ledger.Decision, len(picked))}, nil
		})
	if err != nil || len(picked) != 650 {
		t.Fatalf("%d picked, %v", len(picked), err)
	}
	for i := range picked {
		if picked[i].NextAt.After(time.Now()) || slices.Contains(except, picked[i].Seq) {
			t.Fatalf("%s was picked", picked[i].ID)
		}
	}
}

// Two claimers hold what they picked up at the same time. The second one gets as many other rows,
// and the tenants still take turns.
func TestTwoClaimersSideBySideDoNotStarve(t *testing.T) {
	t.Parallel()
	l, _ := lined(t, map[string]int{"bulk/big": 600, "bulk/small": 60, "otp/x": 40})
	both, done := make(chan int, 2), make(chan struct{})
	var claimers sync.WaitGroup
	seqs := make([][]ledger.Message, 2)
	for i := range 2 {
		claimers.Go(func() {
			err := runClaim(t.Context(), l, ledger.Claim{Due: 100, Lanes: []string{"otp", "bulk"}},
				func(seen *ledger.Seen) (ledger.Decisions, error) {
					seqs[i] = seen.Messages
					both <- i
					<-done
					return ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}, nil
				})
			if err != nil {
				t.Error(err)
			}
		})
	}
	<-both
	<-both
	close(done)
	claimers.Wait()
	all, tenants := map[int64]bool{}, map[string]int{}
	for _, messages := range seqs {
		if len(messages) != 100 {
			t.Errorf("a claimer got %d", len(messages))
		}
		for i := range messages {
			all[messages[i].Seq] = true
			tenants[messages[i].Tenant]++
		}
	}
	if len(all) != 200 || tenants["small"] != 60 || tenants["x"] != 40 {
		t.Errorf("%d different rows, %v", len(all), tenants)
	}
}

func TestManyClaimersDrainAQueueWithoutWaitingInACircle(t *testing.T) {
	t.Parallel()
	n := tier.Size(4, 20)
	l, db := lined(t, map[string]int{"bulk/x": 75 * n, "bulk/y": 35 * n, "otp/z": 15 * n})
	var claimers sync.WaitGroup
	for range 4 {
		claimers.Go(func() {
			for empty := 0; empty < 3; {
				if got, _ := pick(t, l, 5*n, true); len(got) == 0 {
					empty++
				}
			}
		})
	}
	claimers.Wait()
	if got := scalar[int](t, db,
		`select count(*) from dispatcher.all_attempts where attempt = 1`); got != 125*n {
		t.Errorf("%d of %d messages were sent", got, 125*n)
	}
}

// Rows near their deadline are picked up before a queue, whatever their tenant.
func TestWhatIsAboutToExpireComesBeforeFairTurns(t *testing.T) {
	t.Parallel()
	l, db := lined(t, map[string]int{"bulk/big": 400, "bulk/small": 120, "otp/x": 50})
	execute(t, db, `update dispatcher.messages set expires_at = now() + interval '1 hour'`)
	// The last of both tenants' queues, the later ones in it with the earlier deadlines.
	execute(t, db, `update dispatcher.messages
		set expires_at = now() + make_interval(secs => 40 - right(id, 1)::int)
		where id between 'bulk-big-00390' and 'bulk-big-00399' or id between 'bulk-small-00110'
		  and 'bulk-small-00114'`)
	for _, tc := range []struct {
		due  int
		want map[string]int
	}{
		// those that expire first: 9, 8, 7, 6, 5, then 4, 4, ...
		{60, map[string]int{"otp/x": 50, "bulk/big": 10}},
		{165, map[string]int{"otp/x": 50, "bulk/big": 60, "bulk/small": 55}},
	} {
		got, picked := pick(t, l, tc.due, false)
		if tc.due == 165 && !maps.Equal(got, tc.want) {
			t.Errorf("picked %v, want %v", got, tc.want)
		}
		near := []ledger.Message{}
		for i := range picked {
			if picked[i].Lane == "bulk" && picked[i].ExpiresAt.Before(time.Now().Add(time.Minute)) {
				near = append(near, picked[i])
			}
		}
		if want := min(tc.due-50, 15); len(near) != want {
			t.Errorf("%d near their deadline were picked, want %d", len(near), want)
		}
		if !slices.IsSortedFunc(near, func(a, b ledger.Message) int {
			return a.ExpiresAt.Compare(b.ExpiresAt)
		}) {
			t.Error("the earliest deadline does not come first")
		}
	}
	execute(t, db, `analyze dispatcher.due`)
	if got, want := ledger.PlanOf(t,
		db, `select * from dispatcher.due where next_at <= now() and lane = 'bulk'
			and expires_at <= now() + interval '1 minute'
		order by expires_at, seq
		  limit 500 for update skip locked`), "due_deadlines"; !strings.Contains(got, want) {
		t.Error(got)
	}
}

// leave picks up rows of one lane. It leaves some because their limits were not locked, and others
// for another reason. It returns the tenants.
func leave(
	t *testing.T, l *ledger.Ledger, due int, unlocked func(tenant string) bool,
) (tenants []string) {
	t.Helper()
	err := runClaim(t.Context(), l, ledger.Claim{Due: due, Lanes: []string{"otp", "bulk"}},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			d := ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}
			for i := range seen.Messages {
				tenants = append(tenants, seen.Messages[i].Tenant)
				d.Each[i].Unlocked = unlocked(seen.Messages[i].Tenant)
			}
			return d, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return tenants
}

// TestTheNextTurnIsOfTheFirstThatWasLeftUnlocked, or else of the tenant after the last. A row that
// was left for another reason has had its turn.
func TestTheNextTurnIsOfTheFirstThatWasLeftUnlocked(t *testing.T) {
	t.Parallel()
	l, db := lined(t, map[string]int{
		"bulk/a": 9, "bulk/b": 9, "bulk/c": 9, "bulk/d": 9,
		"bulk/e": 9, "otp/x": 1,
	})
	only := func(tenants ...string) func(string) bool {
		return func(tenant string) bool { return slices.Contains(tenants, tenant) }
	}
	for i, step := range []struct {
		unlocked []string
		want     string
	}{
		{[]string{"a", "b", "c"}, "xabc"}, // nobody has had a turn
		{[]string{"b", "c"}, "xabc"},
		{[]string{"c"}, "xbcd"}, // though d behind it has had one
		{nil, "xcde"},
		{[]string{"x"}, "xabc"}, // of a more urgent lane: it is picked up anyway
		{[]string{"a"}, "xdea"}, // from the last tenant on to the first
		{nil, "xabc"},
		{nil, "xdea"},
	} {
		if got := strings.Join(leave(t, l, 4, only(step.unlocked...)), ""); got != step.want {
			t.Fatalf("claim %d picked up %s, want %s", i, got, step.want)
		}
	}
	execute(t, db, `update dispatcher.messages set expires_at = now() + interval '30 seconds'
		where tenant = 'e' and id like '%-00009'`)
	// a row near its deadline is picked up without taking a turn
	for i, want := range []string{"xebc", "xede", "xeab"} {
		unlocked := only("x")
		if i == 0 {
			unlocked = only("x", "e")
		}
		if got := strings.Join(leave(t, l, 4, unlocked), ""); got != want {
			t.Fatalf("beside a row near its deadline %s was picked up, want %s", got, want)
		}
	}
}

// TestAClaimThatFailsGivesTheTurnAway, because one of the rows that it picked up may be at fault.
func TestAClaimThatFailsGivesTheTurnAway(t *testing.T) {
	t.Parallel()
	l, _ := lined(t, map[string]int{"bulk/a": 1, "bulk/b": 1, "bulk/c": 1})
	fault := errors.New("fault")
	if err := runClaim(t.Context(), l, ledger.Claim{Due: 1}, func(*ledger.Seen) (ledger.Decisions,
		error,
	) {
		return ledger.Decisions{}, fault
	}); !errors.Is(err, fault) {
		t.Fatal(err)
	}
	if got := leave(t, l, 1, func(string) bool {
		return false
	}); !slices.Equal(got, []string{"b"}) {
		t.Errorf("picked up %s", got)
	}
}

// TestAClaimWhoseConnectionIsCutLeavesTheTurn as it was, because nothing was picked up.
func TestAClaimWhoseConnectionIsCutLeavesTheTurn(t *testing.T) {
	t.Parallel()
	// A rig's pool may hold more than the one connection that the claim fails on.
	url := ledgertest.URL(t)
	l, db := connect(t, ledger.Config{URL: url, MaxConns: 1}), raw(t, url)
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	queue(t, db, "bulk", "a", 1)
	queue(t, db, "bulk", "b", 1)
	if got := leave(t, l, 1, func(string) bool {
		return false
	}); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("picked up %s", got)
	}
	execute(t, db, `select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and pid <> pg_backend_pid()`)
	fresh := ledger.Claim{Messages: batch("fresh", 1), Due: 1}
	if err := runClaim(t.Context(), l, fresh, func(*ledger.Seen) (ledger.Decisions, error) {
		t.Error("it was asked to decide")
		return ledger.Decisions{}, errors.New("never")
	}); !ledger.Unavailable(err) {
		t.Fatal(err)
	}
	if got := leave(t, l, 1, func(string) bool {
		return false
	}); !slices.Equal(got, []string{"b"}) {
		t.Errorf("picked up %s", got)
	}
}

// TestAClaimThatWasOvertakenTakesNoTurnBack: a tenant that had a turn since it began does not get
// another.
func TestAClaimThatWasOvertakenTakesNoTurnBack(t *testing.T) {
	t.Parallel()
	l, _ := lined(t, map[string]int{
		"bulk/a": 9, "bulk/b": 9, "bulk/c": 9, "bulk/d": 9,
		"bulk/e": 9,
	})
	none := func(string) bool { return false }
	err := runClaim(t.Context(), l, ledger.Claim{Due: 1}, func(seen *ledger.Seen) (ledger.Decisions,
		error,
	) {
		for _, want := range []string{"ab", "cd"} {
			if got := strings.Join(leave(t, l, 2, none), ""); got != want {
				t.Errorf("a claim beside it picked up %s, want %s", got, want)
			}
		}
		return ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(leave(t, l, 2, none), ""); got != "ea" {
		t.Errorf("the next claim picked up %s, want ea", got)
	}
}
