package ledger_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// awaiting settles n messages one by one, each of which expects two receipts, and ends their time.
// Some have had one or both receipts. It returns how many still lack one.
func awaiting(t *testing.T, l *ledger.Ledger, db *pgx.Conn, n int) (open int) {
	t.Helper()
	for i, m := range claimAll(t, l, batch("m", n), "a").Messages {
		first, second := fmt.Sprintf("r%d-1", i), fmt.Sprintf("r%d-2", i)
		settleAll(t, l, expecting(m, second+" "+first))
		if i%3 > 0 {
			receive(t, l, receipt(first, provider.Delivered))
		}
		if i%3 > 1 {
			receive(t, l, receipt(second, provider.Delivered))
		} else {
			open++
		}
	}
	if got := amiss(t, db, always...); got != "" {
		t.Error(got)
	}
	timeUp(t, db)
	return open
}

// TestAllSettlementsWhoseTimeIsOverAreSweptAtOnce, also when there are more than one transaction
// takes, and when the first ones have all their receipts.
func TestAllSettlementsWhoseTimeIsOverAreSweptAtOnce(t *testing.T) {
	t.Parallel()
	r := lend(t)
	l, db := r.l, r.db
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	open := awaiting(t, l, db, 65)
	if n := overdue(t, l); n != open {
		t.Errorf("%d closed, want %d", n, open)
	}
	if n := scalar[int](t, db, `select count(*) from dispatcher.awaited`); n != 0 {
		t.Errorf("%d are left", n)
	}
	if n := scalar[int](t, db,
		`select count(*) from dispatcher.receipts where due_at is not null`); n != 0 {
		t.Errorf("%d receipts are due", n)
	}
}

// TestInstancesSweepWhatIsAwaitedTogether while receipts come: each message ends, with one status
// event.
func TestInstancesSweepWhatIsAwaitedTogether(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	url, db := rig.url, rig.db
	ledgers := []*ledger.Ledger{
		connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 4)}),
		connect(t, ledger.Config{URL: url, MaxConns: tier.Size(0, 4)}),
	}
	apply(t, ledgers[0], ledger.ChannelSpec{Name: "a"})
	const n = 60
	open := awaiting(t, ledgers[0], db, n)
	var closed atomic.Int64
	var workers sync.WaitGroup
	for worker := range 6 {
		l := ledgers[worker%2]
		workers.Go(func() {
			var err error
			if worker < 2 {
				for i := 0; i < n && err == nil; i += 6 {
					_, err = l.Receipts.Receive(t.Context(), []ledger.Receipt{
						receipt(fmt.Sprintf("r%d-2", i), provider.Undelivered),
						receipt(fmt.Sprintf("r%d-1", i), provider.Delivered),
					}, tellState)
				}
			}
			for range 3 {
				if err == nil {
					var swept ledger.Swept
					swept, err = l.Receipts.Overdue(t.Context(), 1000, tellState)
					closed.Add(int64(swept.Closed))
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	if n := scalar[int](t, db,
		`select count(*) from dispatcher.messages where state = 'accepted'`); n != 0 {
		t.Errorf("%d messages are left of %d, %d were closed", n, open, closed.Load())
	}
	if n := scalar[int](t, db, `select count(*) from (
		select from dispatcher.outbox o, unnest(o.keys, o."values") as u(key, value)
		group by u.key, u.value having count(*) > 1) n`); n != 0 {
		t.Errorf("%d messages were told of twice", n)
	}
	if n := scalar[int](t, db, `select (select count(*) from dispatcher.awaited)
		+ (select count(*) from dispatcher.receipts where due_at is not null)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// TestASweepWaitsForARowThatIsLocked by a receipt which then changes nothing, because no later call
// would find the row.
func TestASweepWaitsForARowThatIsLocked(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	l, db, other := connect(t, ledger.Config{URL: url}), raw(t, url), raw(t, url)
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	settleAll(t, l, expecting(claimAll(t, l, batch("m", 1), "a").Messages[0], "r1"))
	timeUp(t, db)
	execute(t, other, `begin`)
	execute(t, other, `select from dispatcher.receipts where reference = 'r1' for update`)
	var swept ledger.Swept
	done := waiting(t, db, func() (err error) {
		swept, err = l.Receipts.Overdue(t.Context(), 100, tellState)
		return err
	})
	execute(t, other, `rollback`)
	if err := <-done; err != nil || swept.Closed != 1 {
		t.Errorf("%d closed: %v", swept.Closed, err)
	}
}

// TestATimeThatBeginsAnewIsWaitedFor: the row of an id from an attempt without an answer becomes
// that of an accepted attempt, which is awaited for longer.
func TestATimeThatBeginsAnewIsWaitedFor(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	s := unknown(m)
	s.Denied, s.Await = "r1", time.Hour
	settleAll(t, l, []ledger.Settlement{s})
	settleAll(t, l, expecting(m, "r1"))
	see(`with u as (update dispatcher.awaited set due_at = now()
		where due_at < now() + interval '2 hours' returning 1) select count(*)::text from u`)
	if n := overdue(t, l); n != 0 {
		t.Errorf("%d closed", n)
	}
	if n := see(`select count(*)::text from dispatcher.awaited`); n != "1" {
		t.Errorf("%s are awaited", n)
	}
	see(allDue)
	if n := overdue(t, l); n != 1 {
		t.Errorf("%d closed", n)
	}
}
