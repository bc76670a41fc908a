package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// prepaid is a budget, a limit in money whose window has no end.
func prepaid(scope admission.Scope) admission.Limit {
	return admission.Limit{
		Scope: scope, Window: admission.Prepaid, Unit: admission.Money, Currency: "GBP",
	}
}

// topUp adds the price of n messages, 28000 micros each, to the budget of a tenant over all
// channels.
func topUp(
	t testing.TB, l *ledger.Ledger, name, key string, messages int64,
) (ledger.ToppedUp, error) {
	t.Helper()
	return l.Limits.TopUp(t.Context(), ledger.TopUp{
		Limit: prepaid(tenant(name)), Micros: messages * 28000, Key: key,
		Author: "ann", Reason: "paid",
	})
}

func mustTopUp(t testing.TB, l *ledger.Ledger, name string, messages int64) ledger.ToppedUp {
	t.Helper()
	done, err := topUp(t, l, name, "", messages)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func wantSent(t testing.TB, l *ledger.Ledger, name string, ask, want int) {
	t.Helper()
	if got := sendOf(t, l, name, ask); got != want {
		t.Errorf("%d of %d of tenant %s were sent, want %d", got, ask, name, want)
	}
}

// overspentNow are the budgets whose attempts cost more than was topped up by then.
func overspentNow(t testing.TB, l *ledger.Ledger) string {
	t.Helper()
	found, err := l.Limits.Overspent(t.Context(), time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, o := range found {
		words = append(words, fmt.Sprintf("%s%s %d of %d %s", o.Channel, o.Scope, o.Cost, o.ToppedUp,
			o.Currency))
	}
	return strings.Join(words, ", ")
}

// TestABudgetGrantsWhatWasToppedUp, to each tenant its own, and a top-up wakes waiting messages.
func TestABudgetGrantsWhatWasToppedUp(t *testing.T) {
	t.Parallel()
	r := lend(t)
	applyLimits(t, r.l, nil, prepaid(tenant(admission.EachTenant)))
	wantSent(t, r.l, "shop", 2, 0)
	first := mustTopUp(t, r.l, "shop", 3)
	if first.Before != 0 || first.After() != 3*28000 || first.Author != "ann" || first.Login == "" {
		t.Errorf("%+v", first)
	}
	if due := scalar[int](t, r.db, `select count(*) from dispatcher.due
		where next_at <= clock_timestamp()`); due != 2 {
		t.Errorf("%d of 2 look again", due)
	}
	mustTopUp(t, r.l, "news", 1) // which has no row yet
	wantSent(t, r.l, "shop", 5, 3)
	wantSent(t, r.l, "news", 5, 1)
	wantSent(t, r.l, "bank", 5, 0)
	second := mustTopUp(t, r.l, "shop", 2)
	if second.Before != 3*28000 || second.Granted != 3*28000 {
		t.Errorf("%+v", second)
	}
	wantSent(t, r.l, "shop", 5, 2)
	listed, err := r.l.Limits.TopUps(t.Context(), &ledger.TopUpFilter{Tenant: "shop"}, 9)
	if err != nil || len(listed) != 2 || listed[0].ID != second.ID || listed[1].ID != first.ID {
		t.Errorf("%+v, %v", listed, err)
	}
	if got := amiss(t, r.db, "budgets_hold", "windows_hold") + overspentNow(t, r.l); got != "" {
		t.Error(got)
	}
}

// TestATopUpWithAKeyIsStoredOnce, and a different top-up with the same key is an error.
func TestATopUpWithAKeyIsStoredOnce(t *testing.T) {
	t.Parallel()
	r := lend(t)
	applyLimits(t, r.l, nil, prepaid(tenant(admission.EachTenant)))
	var wait sync.WaitGroup
	var mu sync.Mutex
	ids, repeated := map[int64]bool{}, 0
	for range 4 {
		wait.Go(func() {
			done, err := topUp(t, r.l, "shop", "invoice-1", 3)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if ids[done.ID] = true; done.Repeated {
				repeated++
			}
		})
	}
	wait.Wait()
	if len(ids) != 1 || repeated != 3 {
		t.Errorf("stored as %v, repeated %d times", ids, repeated)
	}
	for name, messages := range map[string]int64{"shop": 4, "news": 3} {
		if _, err := topUp(t, r.l, name, "invoice-1", messages); !errors.Is(err, ledger.ErrOtherTopUp) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantSent(t, r.l, "shop", 5, 3)
}

// TestACorrectionTakesBackNoMoreThanIsLeft, and no budget exceeds the maximum.
func TestACorrectionTakesBackNoMoreThanIsLeft(t *testing.T) {
	t.Parallel()
	r := lend(t)
	applyLimits(t, r.l, nil, prepaid(tenant("shop")))
	mustTopUp(t, r.l, "shop", 5)
	wantSent(t, r.l, "shop", 2, 2)
	var short *ledger.NotLeftError
	if _, err := topUp(t, r.l, "shop", "", -4); !errors.As(err, &short) || short.Left != 3*28000 {
		t.Errorf("%v", err)
	}
	mustTopUp(t, r.l, "shop", -2)
	wantSent(t, r.l, "shop", 5, 1)
	if _, err := topUp(t, r.l, "shop", "", 1e11); !errors.Is(err, ledger.ErrTopUpTooLarge) {
		t.Error(err)
	}
	if _, err := topUp(t, r.l, "bank", "", 1); !errors.Is(err, ledger.ErrNoLimit) {
		t.Error(err)
	}
	if got := amiss(t, r.db, "budgets_hold") + overspentNow(t, r.l); got != "" {
		t.Error(got)
	}
}

// TestABudgetGoesOnWhereItStood when the document removes it and has it again, names another zone,
// or gets a limit of the tenant's own, and when old windows and idle tenants are dropped.
func TestABudgetGoesOnWhereItStood(t *testing.T) {
	t.Parallel()
	r := lend(t)
	each := prepaid(tenant(admission.EachTenant))
	named := prepaid(tenant("bank"))
	applyLimits(t, r.l, nil, each, named)
	mustTopUp(t, r.l, "shop", 5)
	mustTopUp(t, r.l, "bank", 3)
	wantSent(t, r.l, "shop", 2, 2)
	wantSent(t, r.l, "bank", 2, 2)

	applyLimits(t, r.l, nil) // they are gone
	if _, err := r.l.Limits.DropWindows(t.Context(), time.Nanosecond, time.Nanosecond); err != nil {
		t.Fatal(err)
	}
	if _, err := topUp(t, r.l, "shop", "", 1); !errors.Is(err, ledger.ErrNoLimit) {
		t.Errorf("a budget that is gone was topped up: %v", err)
	}
	zone := time.FixedZone("elsewhere", 5*3600)
	applyToday(t, r.l, zone, nil, each, named)
	wantSent(t, r.l, "bank", 2, 1)
	wantSent(t, r.l, "shop", 1, 1)
	applyToday(t, r.l, time.UTC, nil, each, prepaid(tenant("shop")))
	wantSent(t, r.l, "shop", 1, 1)
	applyLimits(t, r.l, nil, each)

	execute(t, r.db, `update dispatcher.limits set since = since - interval '1 year'`)
	mustTopUp(t, r.l, "news", 3)
	execute(t, r.db, `update dispatcher.limits set since = since - interval '1 year'`)
	specs := []ledger.ChannelSpec{{Name: "a"}, {Name: "b"}}
	version := scalar[int64](t, r.db, `select max(version) from dispatcher.routing_versions`)
	dropped, err := r.l.Limits.DropIdleTenants(t.Context(), version, specs, []admission.Limit{each})
	if err != nil || dropped != 1 { // that of news, of which nothing is used
		t.Errorf("%d were dropped, %v", dropped, err)
	}
	wantSent(t, r.l, "shop", 5, 1)
	wantSent(t, r.l, "news", 5, 3)
	if got := amiss(t, r.db, "windows_hold"); got != "" {
		t.Error(got)
	}
}

// TestABudgetIsNeverOverdrawn by claims of two processes, while it is topped up.
func TestABudgetIsNeverOverdrawn(t *testing.T) {
	t.Parallel()
	r := lend(t)
	applyLimits(t, r.l, nil, prepaid(tenant(admission.EachTenant)))
	over := throughout(t, r.url)
	var wait sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for range 3 {
		wait.Go(func() {
			for range 8 {
				n := sendOf(t, r.l, "shop", 7)
				mu.Lock()
				total += n
				mu.Unlock()
			}
		})
	}
	wait.Go(func() {
		for range 10 {
			mustTopUp(t, r.l, "shop", 4)
		}
	})
	wait.Wait()
	total += sendOf(t, r.l, "shop", 50)
	over()
	if total != 40 {
		t.Errorf("%d were sent, and 40 were paid", total)
	}
	wantGranted(t, r, "tenant:shop 2147483647 money 1120000 of 1120000 GBP")
	if got := amiss(t, r.db, "budgets_hold") + overspentNow(t, r.l); got != "" {
		t.Error(got)
	}
}

// TestWhatIsNotBilledGoesBackToABudget, however long ago it was claimed.
func TestWhatIsNotBilledGoesBackToABudget(t *testing.T) {
	t.Parallel()
	r := lend(t)
	applyLimits(t, r.l, nil, prepaid(tenant("shop")))
	mustTopUp(t, r.l, "shop", 2)
	_, sent := mustClaim(t, r.l, of("shop", 2), ledger.ScopeRef{Scope: tenant("shop")})
	s := accepted(sent)
	s[0].PriceMicros = 0
	s[0].Refunds = []ledger.Refund{{
		ScopeRef: ledger.ScopeRef{Scope: tenant("shop")}, Window: admission.Prepaid, Micros: 28000,
	}}
	settleAll(t, r.l, s)
	wantSent(t, r.l, "shop", 2, 1)
}

// TestARepeatUnderItsKeyIsCountedOnce, at the higher of the two prices. A budget that began after
// the first attempt counts the repeat, because it did not count the first one.
func TestARepeatUnderItsKeyIsCountedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after int64 // prices
		late          bool  // the budget is new
		granted       int64
	}{
		"same price":   {28000, 28000, false, 28000},
		"dearer":       {28000, 40000, false, 40000},
		"cheaper":      {28000, 10000, false, 28000},
		"a new budget": {28000, 28000, true, 28000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := lend(t)
			scope := ledger.ScopeRef{Scope: tenant("shop")}
			if c.late {
				applyLimits(t, r.l, nil)
			} else {
				applyLimits(t, r.l, nil, prepaid(tenant("shop")))
				mustTopUp(t, r.l, "shop", 10)
			}
			_, sent := mustClaim(t, r.l, of("shop", 1), scope)
			settleAll(t, r.l, []ledger.Settlement{repeat(sent[0], 1)})
			if c.late {
				applyLimits(t, r.l, nil, prepaid(tenant("shop")))
				mustTopUp(t, r.l, "shop", 10)
			}
			execute(t, r.db, `update dispatcher.messages set next_at = now() where state = 'retry'`)
			err := runClaim(t.Context(), r.l, ledger.Claim{
				Due: 1, Channels: []string{"a"}, Scopes: []ledger.ScopeRef{scope},
			}, func(seen *ledger.Seen) (ledger.Decisions, error) {
				d, err := giveScoped(nil)(seen)
				d.Each[0].Attempt.PriceMicros = c.after
				seen.Scoped[0].Counters[0].Granted += c.after - 28000
				return d, err
			})
			if err != nil {
				t.Fatal(err)
			}
			s := accepted(sent)[0]
			s.Attempt, s.PriceMicros, s.Repeats = 2, c.after, true
			s.Refunds = []ledger.Refund{{ScopeRef: scope, Window: admission.Prepaid, Micros: c.after}}
			s.Ambiguity = &ledger.Ambiguity{
				Key: "k", Step: ledger.SameKey, Until: time.Now().Add(time.Minute),
				ResolvedAs: ledger.Taken,
			}
			settleAll(t, r.l, []ledger.Settlement{s})
			wantGranted(t, r, fmt.Sprintf("tenant:shop 2147483647 money %d of 280000 GBP", c.granted))
			if got := amiss(t, r.db, "budgets_hold") + overspentNow(t, r.l); got != "" {
				t.Error(got)
			}
		})
	}
}

// TestBooksOfBudgetsThatWereCookedAreFound: each way of changing the rows of a budget is found.
func TestBooksOfBudgetsThatWereCookedAreFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cook, amiss string
		overspent   bool
	}{
		"a top-up that is gone": {
			`delete from dispatcher.top_ups where micros = 28000`, "topped up with", true,
		},
		"a higher max": {
			`update dispatcher.limits set configured_max = configured_max + 1, max = max + 1`,
			"and was topped up with", false,
		},
		"a counter set back": {
			`update dispatcher.limits set granted = 28000`, "and its attempts cost", false,
		},
		"an amount made smaller": {
			`update dispatcher.top_ups set micros = micros - 1 where before = 0`, "came before it",
			true,
		},
		"a top-up that came later": {
			`update dispatcher.top_ups set at = at + interval '1 minute'`, "", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := lend(t)
			applyLimits(t, r.l, nil, prepaid(tenant("shop")))
			mustTopUp(t, r.l, "shop", 2)
			wantSent(t, r.l, "shop", 5, 2)
			mustTopUp(t, r.l, "shop", 1)
			wantSent(t, r.l, "shop", 5, 1)
			if got := amiss(t, r.db, "budgets_hold") + overspentNow(t, r.l); got != "" {
				t.Fatal(got)
			}
			execute(t, r.db, c.cook)
			if got := amiss(t, r.db, "budgets_hold"); c.amiss != "" && !strings.Contains(got, c.amiss) {
				t.Errorf("invariants say %q", got)
			}
			if got := overspentNow(t, r.l); (got != "") != c.overspent {
				t.Errorf("overspent: %q", got)
			}
		})
	}
}
