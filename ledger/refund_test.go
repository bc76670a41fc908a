package ledger_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/admission"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// spent claims three messages of tenant shop, 28000 micros each, under budgets over all channels
// and on channel a. It returns the settlement of the first, with refunds of 10000 to both.
func spent(t *testing.T) (l *ledger.Ledger, db *pgx.Conn, s ledger.Settlement) {
	t.Helper()
	rig := lend(t)
	l, db = rig.l, rig.db
	applyLimits(t, l, []admission.Limit{budget(tenant("shop"), 100000), limit(admission.Day, 50)},
		budget(tenant("shop"), 100000))
	_, sent := mustClaim(t, l, of("shop", 3), shop...)
	s = accepted(sent)[0]
	for _, channel := range []string{"", "a"} {
		s.Refunds = append(s.Refunds, ledger.Refund{
			ScopeRef: ledger.ScopeRef{Channel: channel, Scope: tenant("shop")},
			Window:   admission.Day, Micros: 10000,
		})
	}
	return l, db, s
}

// money is what is granted of the two budgets.
func money(t testing.TB, db *pgx.Conn) string {
	t.Helper()
	return scalar[string](t, db, `select string_agg(granted || '/' || max, ' ' order by channel)
		from dispatcher.limits where unit = 'money'`)
}

func TestWhatWasNotSpentGoesBackOnce(t *testing.T) {
	t.Parallel()
	l, db, s := spent(t)
	for range 2 {
		settleAll(t, l, []ledger.Settlement{s})
		if got := money(t, db); got != "74000/100000 74000/100000" {
			t.Fatal(got)
		}
	}
	if n := scalar[int](t, db,
		`select granted from dispatcher.limits where unit = 'messages'`); n != 3 {
		t.Errorf("%d messages are counted", n)
	}
}

func TestALateTruthGivesNothingBackASecondTime(t *testing.T) {
	t.Parallel()
	l, db, s := spent(t)
	first := s
	first.Outcome, first.State = provider.Unknown, ledger.Unknown
	settleAll(t, l, []ledger.Settlement{first})
	settleAll(t, l, []ledger.Settlement{s})
	if got := money(t, db); got != "74000/100000 74000/100000" {
		t.Error(got)
	}
}

// TestNothingGoesBackOfWhatNobodyAnswered, whatever becomes known later, because another instance
// may have sent the message on meanwhile.
func TestNothingGoesBackOfWhatNobodyAnswered(t *testing.T) {
	t.Parallel()
	l, db, s := spent(t)
	first := s
	first.Outcome, first.State, first.Refunds = provider.Unknown, ledger.Unknown, nil
	settleAll(t, l, []ledger.Settlement{first})
	s.Outcome, s.State, s.Segments, s.PriceMicros = provider.Rejected, ledger.Rejected, 0, 0
	settleAll(t, l, []ledger.Settlement{s})
	if got := money(t, db); got != "84000/100000 84000/100000" {
		t.Error(got)
	}
}

func TestMoneyGoesBackOnlyWithinItsWindow(t *testing.T) {
	t.Parallel()
	l, db, s := spent(t)
	execute(t, db, `update dispatcher.limits set window_start = window_start + interval '1 day'
		where unit = 'money' and channel = 'a'`)
	settleAll(t, l, []ledger.Settlement{s})
	if got := money(t, db); got != "74000/100000 84000/100000" {
		t.Error(got)
	}
}

// TestNoMoneyGoesBackToAWindowThatIsOver: it is sealed, also before the next claim begins another.
func TestNoMoneyGoesBackToAWindowThatIsOver(t *testing.T) {
	t.Parallel()
	l, db, s := spent(t)
	execute(t, db, `update dispatcher.limits set window_start = window_start - interval '2 days'
		where unit = 'money' and channel = 'a'`)
	settleAll(t, l, []ledger.Settlement{s})
	if got := money(t, db); got != "74000/100000 84000/100000" {
		t.Error(got)
	}
}

func TestMoneyGoesBackOnlyToALimitThatTookIt(t *testing.T) {
	t.Parallel()
	l, db, s := spent(t)
	applyLimits(t, l, []admission.Limit{limit(admission.Day, 50)}, budget(tenant("shop"), 100000))
	// channel a's is a new one
	applyLimits(t, l, []admission.Limit{limit(admission.Day, 50), budget(tenant("shop"), 100000)},
		budget(tenant("shop"), 100000))
	// not in money
	s.Refunds = append(s.Refunds, ledger.Refund{
		ScopeRef: ledger.ScopeRef{Channel: "a"},
		Window:   admission.Day, Micros: 1,
	})
	settleAll(t, l, []ledger.Settlement{s})
	if got := money(t, db); got != "74000/100000 84000/100000" {
		t.Error(got)
	}
	euros := budget(tenant("shop"), 100000)
	euros.Currency = "EUR"
	applyLimits(t, l, nil, euros)
	if got := money(t, db); got != "0/100000" {
		t.Errorf("in euros there is spent %s", got)
	}
	execute(t, db, `update dispatcher.limits
		set granted = 50000, window_start = date_trunc('day',
		  now() at time zone 'utc') at time zone 'utc'`)
	second := s
	second.Seq++
	settleAll(t, l, []ledger.Settlement{second})
	if got := money(t, db); got != "50000/100000" {
		t.Errorf("pounds went back to euros: %s", got)
	}
}

func TestNoMoreMoneyGoesBackThanWasTaken(t *testing.T) {
	t.Parallel()
	l, db, s := spent(t)
	s.Refunds[0].Micros, s.Refunds[1].Micros = 1e9, -5
	settleAll(t, l, []ledger.Settlement{s})
	if got := money(t, db); got != "0/100000 84000/100000" {
		t.Error(got)
	}
}

func TestMoneyGoesBackToALimitThatWasLoweredMeanwhile(t *testing.T) {
	t.Parallel()
	l, db, s := spent(t)
	applyLimits(t, l, nil, budget(tenant("shop"), 78000))
	if got := money(t, db); got != "84000/84000" {
		t.Fatal(got)
	}
	settleAll(t, l, []ledger.Settlement{s})
	if got := money(t, db); got != "74000/78000" {
		t.Error(got)
	}
}

func TestHoldSlowAndRefundGoTogether(t *testing.T) {
	t.Parallel()
	l, db, s := spent(t)
	s.Hold, s.Slow = time.Hour, &ledger.Slow{}
	plain := s
	plain.Seq, plain.Hold, plain.Slow, plain.Refunds = s.Seq+1, 0, nil, nil
	settleAll(t, l, []ledger.Settlement{plain, s})
	if got := money(t, db); got != "74000/100000 74000/100000" {
		t.Error(got)
	}
	if n, rate := activeOn(t, db, "a"), scalar[float64](t, db,
		`select ease_rate from dispatcher.channels where channel = 'a'`); n != 2 || rate != 0.5 {
		t.Errorf("%d active, rate %v", n, rate)
	}
	if n := scalar[int](t, db,
		`select count(*) from dispatcher.message_states where state = 'accepted'`); n != 2 {
		t.Errorf("%d accepted", n)
	}
}
