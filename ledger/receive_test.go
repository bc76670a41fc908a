package ledger_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// receive stores receipts. Each change of state is told by one notice that names the state.
func receive(t testing.TB, l *ledger.Ledger, receipts ...ledger.Receipt) ledger.ReceiptCounts {
	t.Helper()
	got, err := l.Receipts.Receive(t.Context(), receipts, tellState)
	if err != nil {
		t.Fatal(err)
	}
	return got.ReceiptCounts
}

// overdue handles everything that is due.
func overdue(t testing.TB, l *ledger.Ledger) int {
	t.Helper()
	swept, err := l.Receipts.Overdue(t.Context(), 10000, tellState)
	if err != nil {
		t.Fatal(err)
	}
	return swept.Closed
}

func tellState(c *ledger.Closing) *ledger.Notice {
	return &ledger.Notice{Kind: ledger.Status, Key: c.ID, Value: fmt.Appendf(nil, "%s %s %d %s %s",
		c.State, c.Channel, c.Attempt, c.Cause, c.Code)}
}

// receipt is a receipt of channel a.
func receipt(reference string, state provider.ReceiptState) ledger.Receipt {
	r := ledger.Receipt{
		Channel: "a", Reference: reference, State: state, Code: state.String(),
		At: time.Now(),
	}
	if state == provider.Undelivered {
		r.Cause = provider.Absent
	}
	return r
}

// timeUp ends the time of all expected receipts.
func timeUp(t testing.TB, db *pgx.Conn) {
	t.Helper()
	execute(t, db, allDue)
}

// allDue makes all rows due that are ever due.
const allDue = `with a as (update dispatcher.awaited set due_at = now()),
	u as (update dispatcher.receipts set due_at = now(),
	  look_at = case when look_at is not null then now() end where due_at is not null
	  returning 1)
	select count(*)::text from u`

// soonDue makes the rows due that are due within a minute.
const soonDue = `with u as (update dispatcher.receipts set due_at = now(), look_at = now()
	where look_at < now() + interval '1 minute' returning 1) select count(*)::text from u`

// story is a short text of a message with its first attempt, and its status events.
const story = `select concat_ws(' ', m.state, a.outcome, a.receipt_state, a.receipt_cause,
	a.receipt_code, case when a.delivered_at is not null then 'at' end, '|',
	(select string_agg(v.value, ', ' order by o.seq, v.nr)
	from dispatcher.outbox o, unnest(o.keys, o."values") with ordinality as u(key, raw, nr),
	   lateral (select convert_from(u.raw, 'UTF8') as value, u.nr) v where u.key = m.id))
	from dispatcher.message_states m join dispatcher.all_attempts a on a.message_seq = m.seq and a.attempt = 1
	where m.id = 'm'`

// expecting settles the first attempt of a message as accepted, with receipts expected for three
// days.
func expecting(m ledger.Message, references string) []ledger.Settlement {
	s := accepted([]ledger.Message{m})
	s[0].Reference, s[0].Await, s[0].Notice = references, 72*time.Hour, nil
	return s
}

func TestAReceiptEndsItsMessage(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	settleAll(t, l, expecting(m, "r1"))
	if got := receive(t, l, receipt("r1", provider.Pending)); got != (ledger.ReceiptCounts{
		Matched: 1,
	}) {
		t.Errorf("%+v", got)
	}
	if got := see(story); got != "accepted accepted |" {
		t.Error(got)
	}
	if got := receive(t, l, receipt("r1", provider.Delivered)); got != (ledger.ReceiptCounts{
		Matched: 1,
	}) {
		t.Errorf("%+v", got)
	}
	if got := see(story); got != "delivered accepted delivered delivered at | delivered a 1  delivered" {
		t.Error(got)
	}
	if got := receive(t, l, receipt("r1", provider.Undelivered),
		receipt("r1", provider.Delivered)); got != (ledger.ReceiptCounts{Repeated: 2}) {
		t.Errorf("%+v", got)
	}
	if got := see(story); got != "delivered accepted delivered delivered at | delivered a 1  delivered" {
		t.Error(got)
	}
}

func TestReportedNamesWhatHasAFinalReceipt(t *testing.T) {
	t.Parallel()
	l, m, _ := one(t)
	settleAll(t, l, expecting(m, "waits"))
	elsewhere := receipt("elsewhere", provider.Delivered)
	elsewhere.Channel = "b"
	receive(t, l, receipt("moves", provider.Pending), receipt("arrived", provider.Delivered),
		receipt("lost", provider.Undelivered), elsewhere)
	got, err := l.Receipts.Reported(t.Context(), "a",
		[]string{"waits", "moves", "arrived", "lost", "elsewhere", "never seen"})
	slices.Sort(got)
	if err != nil || !slices.Equal(got, []string{"arrived", "lost"}) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAnEarlyReceiptIsKeptForItsSettlement(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	if got := receive(t, l, receipt("r1", provider.Undelivered)); got != (ledger.ReceiptCounts{
		Early: 1,
	}) {
		t.Errorf("%+v", got)
	}
	settleAll(t, l, expecting(m, "r1"))
	if n := overdue(t, l); n != 1 {
		t.Errorf("%d closed", n)
	}
	if got := see(story); got != "undelivered accepted undelivered absent undelivered | "+
		"undelivered a 1 absent undelivered" {
		t.Error(got)
	}
}

func TestWithoutReceiptInTimeNobodyKnows(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	settleAll(t, l, expecting(m, "r1 r2"))
	receive(t, l, receipt("r2", provider.Delivered))
	if n := overdue(t, l); n != 0 {
		t.Errorf("%d closed", n)
	}
	see(allDue)
	if n := overdue(t, l); n != 1 {
		t.Errorf("%d closed", n)
	}
	if got := see(story); got != "no_receipt accepted no_receipt | no_receipt a 1  " {
		t.Error(got)
	}
	receive(t, l, receipt("r1", provider.Undelivered))
	if got := see(story); got != "undelivered accepted undelivered absent undelivered | "+
		"no_receipt a 1  , undelivered a 1 absent undelivered" {
		t.Error(got)
	}
	receive(t, l, receipt("r1", provider.Delivered))
	if got := see(story); got != "delivered accepted delivered delivered at | no_receipt a 1  , "+
		"undelivered a 1 absent undelivered, delivered a 1  delivered" {
		t.Error(got)
	}
}
