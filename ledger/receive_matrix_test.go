package ledger_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// fallback settles attempt 1 so that the message goes on, and claims attempt 2.
func fallback(
	t *testing.T, l *ledger.Ledger, m ledger.Message, outcome provider.Outcome,
) ledger.Message {
	t.Helper()
	first := unknown(m)
	first.Outcome, first.State, first.PossibleDuplicate = outcome, ledger.Retry,
		outcome == provider.Unknown
	if outcome != provider.Unknown {
		first.PriceMicros, first.Segments = 0, 0
	}
	settleAll(t, l, []ledger.Settlement{first})
	if err := runClaim(t.Context(), l, ledger.Claim{Due: 5, Channels: []string{"a"}},
		give); err != nil {
		t.Fatal(err)
	}
	m.Attempts = 1
	return m
}

// chronicle is a short text of the message's state, the outcome of each attempt, and all status
// events.
const chronicle = `select concat_ws(' | ', m.state,
	(select string_agg(concat_ws(' ', a.outcome, a.receipt_state), ', ' order by a.attempt)
	from dispatcher.all_attempts a where a.message_seq = m.seq),
	(select string_agg(split_part(convert_from(v, 'UTF8'), ' ', 1), ' ' order by o.seq)
	from dispatcher.outbox o, unnest(o."values") v))
	from dispatcher.message_states m where m.id = 'm'`

// TestAReceiptOfAnEarlierAttemptBesideTheFallback tries every receipt for a first attempt, by
// reference or by key, in the long tier, and a sample in the fast one. The second attempt is
// accepted and delivered. The receipt comes before the second attempt is settled, before its
// receipt, and after it.
func TestAReceiptOfAnEarlierAttemptBesideTheFallback(t *testing.T) {
	t.Parallel()
	type beside struct {
		outcome  provider.Outcome
		state    provider.ReceiptState
		by, when string
	}
	var cases []beside
	for _, outcome := range []provider.Outcome{
		provider.Refused, provider.Throttled, provider.Unknown,
	} {
		for _, state := range receiptStates {
			for _, by := range []string{"reference", "key", "both"} {
				for _, when := range []string{
					"before it is settled", "before its receipt", "after its receipt",
				} {
					cases = append(cases, beside{outcome, state, by, when})
				}
			}
		}
	}
	for _, c := range tier.Sample(cases, 4) {
		t.Run(fmt.Sprint(c.outcome, " ", c.state, " by ", c.by, " ", c.when),
			func(t *testing.T) {
				t.Parallel()
				besideFallback(t, c.outcome, c.state, c.by, c.when)
			})
	}
}

func besideFallback(
	t *testing.T, outcome provider.Outcome, state provider.ReceiptState, by, when string,
) {
	t.Helper()
	l, m, see := one(t)
	m = fallback(t, l, m, outcome)
	first := keyed(m, 1, "r1", state)
	switch by {
	case "reference":
		first.Seq, first.Attempt = 0, 0
	case "key":
		first.Reference = ""
	}
	var got ledger.ReceiptCounts
	second := expecting(m, "r2")
	steps := []func(){
		func() { settleAll(t, l, second) },
		func() { receive(t, l, receipt("r2", provider.Delivered)) },
	}
	at := map[string]int{
		"before it is settled": 0, "before its receipt": 1,
		"after its receipt": 2,
	}[when]
	for i := range 3 {
		if i == at {
			got = receive(t, l, first)
			receive(t, l, first)
		}
		if i < len(steps) {
			steps[i]()
		}
	}
	see(dueNow)
	overdue(t, l)
	contradictory := outcome != provider.Unknown && state == provider.Delivered && by != "reference"
	switch want := (ledger.ReceiptCounts{Matched: 1}); {
	case by == "reference" && state == provider.Pending:
		want = ledger.ReceiptCounts{Repeated: 1}
		fallthrough
	case by == "reference":
		if want.Repeated == 0 {
			want = ledger.ReceiptCounts{Early: 1}
		}
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	case contradictory:
		want = ledger.ReceiptCounts{Contradictory: 1}
		fallthrough
	default:
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if got := see(`select state from dispatcher.message_states`); got != "delivered" {
		t.Errorf("the message is %s: %s", got, see(chronicle))
	}
	if n := see(`select count(*)::text from dispatcher.outbox o, unnest(o."values") v
		where convert_from(v, 'UTF8') like 'undelivered%'`); n != "0" {
		t.Errorf("undelivered was told: %s", see(chronicle))
	}
	wantFirst := outcome.String()
	if outcome == provider.Unknown && by != "reference" {
		wantFirst = "accepted"
		if state.Final() {
			wantFirst += " " + state.String()
		}
	}
	if got := see(`select concat_ws(' ', outcome, nullif(receipt_state, 'no_receipt'))
		from dispatcher.all_attempts where attempt = 1`); got != wantFirst {
		t.Errorf("the first attempt is %q, want %q", got, wantFirst)
	}
	if n := see(`select count(*)::text from dispatcher.receipts
		where due_at < now() + interval '1 hour'`); n != "0" {
		t.Error("a row is looked at for ever")
	}
}

var receiptStates = []provider.ReceiptState{
	provider.Pending, provider.Undelivered, provider.Delivered,
}

// TestReceiptsOfTheOnlyAttempt tries every receipt for one attempt of each outcome, before and
// after its settlement, in the long tier, and a sample in the fast one.
func TestReceiptsOfTheOnlyAttempt(t *testing.T) {
	t.Parallel()
	final := map[provider.Outcome]ledger.State{
		provider.Accepted: ledger.Accepted, provider.Refused: ledger.Failed,
		provider.Throttled: ledger.Failed,
		provider.Rejected:  ledger.Rejected, provider.Unknown: ledger.Unknown,
	}
	type only struct {
		outcome provider.Outcome
		state   provider.ReceiptState
		by      string
		early   bool
	}
	var cases []only
	for _, outcome := range slices.Sorted(maps.Keys(final)) {
		for _, state := range receiptStates {
			for _, by := range []string{"reference", "key", "both"} {
				for _, early := range []bool{false, true} {
					cases = append(cases, only{outcome, state, by, early})
				}
			}
		}
	}
	// Every fifth has each state with each way to name the attempt, early and late.
	for _, c := range tier.Sample(cases, 5) {
		t.Run(fmt.Sprint(c.outcome, " ", c.state, " by ", c.by, " early ", c.early),
			func(t *testing.T) {
				t.Parallel()
				onlyAttempt(t, c.outcome, final[c.outcome], c.state, c.by, c.early)
			})
	}
}

func onlyAttempt(
	t *testing.T, outcome provider.Outcome, ends ledger.State, state provider.ReceiptState,
	by string, early bool,
) {
	t.Helper()
	l, m, see := one(t)
	r := keyed(m, 1, "r1", state)
	switch by {
	case "reference":
		r.Seq, r.Attempt = 0, 0
	case "key":
		r.Reference = ""
	}
	s := unknown(m)
	s.Outcome, s.State = outcome, ends
	if outcome == provider.Accepted {
		s.Reference, s.Await = "r1", time.Hour
	}
	contradictory := 0
	take := func() { contradictory += receive(t, l, r).Contradictory }
	if early {
		take()
	}
	settleAll(t, l, []ledger.Settlement{s})
	if !early {
		take()
	}
	take()
	see(soonDue)
	for range 2 {
		swept, err := l.Receipts.Overdue(t.Context(), 100, tellState)
		if err != nil {
			t.Fatal(err)
		}
		contradictory += swept.Contradictory
	}
	taken := outcome == provider.Accepted || outcome == provider.Unknown && by != "reference"
	want, wantContradictory := ends, 0
	if !taken && outcome != provider.Unknown && by != "reference" && state == provider.Delivered {
		want, wantContradictory = ledger.Delivered, 1
	}
	switch {
	case taken && state.Final():
		want = ledger.State(state.String())
	case taken:
		want = ledger.Accepted
	}
	if got := see(`select state from dispatcher.message_states`); got != string(want) {
		t.Errorf("the message is %s, want %s", got, want)
	}
	if contradictory != wantContradictory {
		t.Errorf("%d were contradictory, want %d", contradictory, wantContradictory)
	}
	if got := see(`select concat_ws(' ', receipt_state) from dispatcher.all_attempts`); !taken &&
		got != "" {
		t.Errorf("an attempt that was not taken is %q", got)
	}
}

// TestPartsThatWereTakenBeforeARefusalStayCounted: parts that only a receipt with our key names do
// not count.
func TestPartsThatWereTakenBeforeARefusalStayCounted(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	first := expecting(m, "r1")
	first[0].Outcome, first[0].State, first[0].Pinned, first[0].PartsLeft = provider.Refused,
		ledger.Retry, "a", []int{1}
	settleAll(t, l, first)
	receive(t, l, receipt("r1", provider.Delivered))
	if got := receive(t, l, keyed(m, 1, "r9", provider.Undelivered)); got != (ledger.ReceiptCounts{
		Matched: 1,
	}) {
		t.Errorf("%+v", got)
	}
	if err := runClaim(t.Context(), l, ledger.Claim{Due: 5, Channels: []string{"a"}},
		give); err != nil {
		t.Fatal(err)
	}
	m.Attempts = 1
	settleAll(t, l, expecting(m, "r2"))
	receive(t, l, receipt("r2", provider.Delivered))
	if got := see(chronicle); got != "delivered | refused delivered, accepted delivered | delivered" {
		t.Error(got)
	}
}

// TestAReferenceOfOneMessageWithTheKeyOfAnother: the key cannot be forged, but the reference may be
// a mistake. Such a receipt changes neither message.
func TestAReferenceOfOneMessageWithTheKeyOfAnother(t *testing.T) {
	t.Parallel()
	for _, state := range []provider.ReceiptState{
		provider.Pending, provider.Undelivered,
		provider.Delivered,
	} {
		for _, company := range []string{"alone", "first", "last"} {
			t.Run(state.String()+" "+company, func(t *testing.T) {
				t.Parallel()
				l, db, _ := holding(t, 0)
				m := claimAll(t, l, batch("m", 2), "a").Messages
				settleAll(t, l, append(expecting(m[0], "r1"), unknown(m[1])))
				wrong, right := keyed(m[1], 1, "r1", state),
					keyed(m[0], 1, "r1", provider.Undelivered)
				given := []ledger.Receipt{wrong}
				want := ledger.ReceiptCounts{
					Contradictory: 1,
				}
				then := "m-00000 accepted, m-00001 unknown"
				if company != "alone" {
					given = append(given, right)
					want = ledger.ReceiptCounts{
						Contradictory: 1, Matched: 1,
					}
					then = "m-00000 undelivered, m-00001 unknown"
				}
				if company == "last" {
					given[0], given[1] = given[1], given[0]
				}
				if got := receive(t, l, given...); got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
				if got := scalar[string](t, db, states); got != then {
					t.Error(got)
				}
				receive(t, l, receipt("r1", provider.Delivered),
					keyed(m[1], 1, "r2", provider.Delivered))
				if got := scalar[string](t, db,
					states); got != "m-00000 delivered, m-00001 delivered" {
					t.Error(got)
				}
			})
		}
	}
}

// TestWhatIsPendingForNobodyIsNotKept: a webhook with a pending receipt is not always signed, and
// whoever captured one can repeat it.
func TestWhatIsPendingForNobodyIsNotKept(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	for i := range 3 {
		if got := receive(t, l, receipt(fmt.Sprint("r", i), provider.Pending)); got != (ledger.ReceiptCounts{Repeated: 1}) {
			t.Errorf("%+v", got)
		}
	}
	if n := see(`select count(*)::text from dispatcher.receipts`); n != "0" {
		t.Errorf("%s rows", n)
	}
	if got := receive(t, l, receipt("r1", provider.Pending), receipt("r1", provider.Delivered),
		keyed(m, 1, "r2", provider.Pending)); got != (ledger.ReceiptCounts{
		Early: 1, Matched: 1, Repeated: 1,
	}) {
		t.Errorf("%+v", got)
	}
	settleAll(t, l, expecting(m, "r1"))
	receive(t, l, receipt("r1", provider.Pending))
	overdue(t, l)
	if got := see(`select string_agg(reference || ' ' || state, ', ' order by reference)
		from dispatcher.receipts`); got != "r1 delivered, r2 pending" {
		t.Error(got)
	}
}

// TestAKeyFindsTheMessageOfAnEarlyReceipt: a receipt without a key came first, of any state.
func TestAKeyFindsTheMessageOfAnEarlyReceipt(t *testing.T) {
	t.Parallel()
	for _, early := range []provider.ReceiptState{provider.Undelivered, provider.Delivered} {
		for _, second := range []provider.ReceiptState{
			provider.Pending, provider.Undelivered,
			provider.Delivered,
		} {
			t.Run(early.String()+" "+second.String(), func(t *testing.T) {
				t.Parallel()
				l, m, see := one(t)
				settleAll(t, l, []ledger.Settlement{unknown(m)})
				if got := receive(t, l, receipt("r1", early)); got != (ledger.ReceiptCounts{
					Early: 1,
				}) {
					t.Errorf("%+v", got)
				}
				if got := receive(t, l, keyed(m, 1, "r1", second)); got != (ledger.ReceiptCounts{
					Matched: 1,
				}) {
					t.Errorf("%+v", got)
				}
				want := early
				if second == provider.Delivered {
					want = second
				}
				if got := see(`select state from dispatcher.message_states`); got != want.String() {
					t.Errorf("the message is %s, want %s", got, want)
				}
			})
		}
	}
}
