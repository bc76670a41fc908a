package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// one claims a single message on channel a, and returns it with a function that runs a query.
func one(t *testing.T) (*ledger.Ledger, ledger.Message, func(sql string) string) {
	t.Helper()
	r := lend(t)
	l, db := r.l, r.db
	apply(t, l, ledger.ChannelSpec{Name: "a", ActiveMax: 100})
	m := claimAll(t, l, []ledger.Message{message("m")}, "a").Messages[0]
	return l, m, func(sql string) string {
		t.Helper()
		return scalar[string](t, db, sql)
	}
}

// look is a short text of the one message and its channel.
const look = `select concat_ws(' ', m.state, a.outcome, 'answers', a.answers, 'active', c.active,
	case when m.possible_duplicate then 'duplicate' end,
	'notices', (select count(*) from dispatcher.outbox))
	from dispatcher.message_states m, dispatcher.all_attempts a, audit.active c where a.attempt = 1`

func TestSettleTwiceHasTheEffectOfOnce(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	for range 2 {
		settleAll(t, l, accepted([]ledger.Message{m}))
		if got := see(look); got != "accepted accepted answers 1 active 0 notices 1" {
			t.Fatal(got)
		}
	}
}

// All of a plain batch is settled, even if some of its attempts were settled before: without an
// answer, or in the same way.
func TestPlainSettlementsAreSettledBesideThoseThatAreNot(t *testing.T) {
	t.Parallel()
	r := lend(t)
	apply(t, r.l, ledger.ChannelSpec{Name: "a", ActiveMax: 100})
	m := claimAll(t, r.l, batch("m", 6), "a").Messages
	all := accepted(m)
	all[1].Code, all[1].PriceMicros, all[1].Notice = "0", 14000, nil
	late, again := unknown(m[3]), all[4:5]
	settleAll(t, r.l, append([]ledger.Settlement{late}, again...))
	all[5].Outcome, all[5].State, all[5].Reference = provider.Rejected, ledger.Rejected, ""
	for range 2 {
		settleAll(t, r.l, all)
		got := scalar[string](t, r.db, `select string_agg(concat_ws(' ', m.state, a.outcome,
			a.answers, a.provider_reference, a.provider_code, a.price_micros), ', ' order by m.id)
			from dispatcher.message_states m join dispatcher.all_attempts a on a.message_seq = m.seq`)
		if want := "accepted accepted 1 ref-m-00000 28000, " +
			"accepted accepted 1 ref-m-00001 0 14000, accepted accepted 1 ref-m-00002 28000, " +
			"accepted accepted 2 ref-m-00003 28000, accepted accepted 1 ref-m-00004 28000, " +
			"rejected rejected 1 28000"; got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		if got := scalar[string](t, r.db, `select string_agg(key, ' ' order by key)
			from dispatcher.outbox, unnest(keys) as key`); got !=
			"m-00000 m-00002 m-00003 m-00004 m-00005" || activeOn(t, r.db, "a") != 0 {
			t.Fatalf("notices %s, %d active", got, activeOn(t, r.db, "a"))
		}
	}
	if n := scalar[int](t, r.db, `select count(*) from dispatcher.messages
		where state = 'sending'`); n != 4 {
		t.Errorf("%d rows of messages were left as they were, want those of four plain settlements", n)
	}
}

// unknown settles attempt 1 without an answer.
func unknown(m ledger.Message) ledger.Settlement {
	return ledger.Settlement{
		Seq: m.Seq, ID: m.ID, Attempt: 1, Outcome: provider.Unknown,
		Code: "timeout", Segments: 1, PriceMicros: 28000, State: ledger.Unknown,
	}
}

func TestALateTruthReplacesUnknownAndFreesNoSecondSlot(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	settleAll(t, l, []ledger.Settlement{unknown(m)})
	if got := see(look); got != "unknown unknown answers 1 active 0 notices 0" {
		t.Fatal(got)
	}
	// takes a slot that must not be freed again
	claimAll(t, l, []ledger.Message{message("other")}, "a")
	late := accepted([]ledger.Message{m})
	for range 2 {
		settleAll(t, l, late)
	}
	if got := see(look +
		` and m.id = 'm' and a.message_seq = m.seq`); got != "accepted accepted answers 2 active 1 notices 1" {
		t.Fatal(got)
	}
	settleAll(t, l, []ledger.Settlement{unknown(m)})
	if got := see(look +
		` and m.id = 'm' and a.message_seq = m.seq`); got != "accepted accepted answers 2 active 1 notices 1" {
		t.Errorf("unknown replaced a truth: %s", got)
	}
}

func TestALateTruthStopsAResendThatHasNotBegun(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	resend := unknown(m)
	resend.State, resend.Reason, resend.PossibleDuplicate, resend.Tried = ledger.Retry, "resend",
		true, true
	settleAll(t, l, []ledger.Settlement{resend})
	if got := see(look); got != "retry unknown answers 1 active 0 duplicate notices 0" {
		t.Fatal(got)
	}
	settleAll(t, l, accepted([]ledger.Message{m}))
	if got := see(look); got != "accepted accepted answers 2 active 0 notices 1" {
		t.Fatal(got)
	}
	if n, err := l.Claims.Due(t.Context(), 1); n != 0 || err != nil {
		t.Errorf("%d due, %v", n, err)
	}
}

// TestALateYesEndsAMessageWhoseResendIsUnderWay: its status event has the flag of the message, and
// no answer to the resend changes it.
func TestALateYesEndsAMessageWhoseResendIsUnderWay(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]ledger.Settlement{
		"accepted": {Outcome: provider.Accepted, State: ledger.Accepted},
		"refused":  {Outcome: provider.Refused, State: ledger.Retry, Tried: true},
		"rejected": {Outcome: provider.Rejected, State: ledger.Unknown},
		"unknown":  {Outcome: provider.Unknown, State: ledger.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, m, see := one(t)
			resend := unknown(m)
			resend.State, resend.PossibleDuplicate = ledger.Retry, true
			settleAll(t, l, []ledger.Settlement{resend})
			claimNext(t, l, m)
			settleAll(t, l, accepted([]ledger.Message{m}))
			second.Seq, second.ID, second.Attempt, second.PossibleDuplicate = m.Seq, m.ID, 2, true
			second.Notice = &ledger.Notice{
				Kind: ledger.Status, Key: m.ID,
				Value: []byte(`{"state":"of the second"}`),
			}
			for range 2 {
				if got := see(look +
					` and a.message_seq = m.seq`); got != "accepted accepted answers 2 active "+
					see(`select active::text from audit.active`)+" duplicate notices 1" {
					t.Error(got)
				}
				settleAll(t, l, []ledger.Settlement{second})
			}
			if got := see(`select string_agg(convert_from(v, 'UTF8'), ' ')
				from dispatcher.outbox, unnest("values") v`); got != `{"state":"accepted","possible_duplicate":true}` {
				t.Error(got)
			}
			if got := see(`select coalesce(outcome, '') from dispatcher.all_attempts
				where attempt = 2`); got != name {
				t.Errorf("the second attempt is %q", got)
			}
		})
	}
}

// TestAnEventHasTheFlagThatAReceiptGaveItsMessage while the attempt was in flight, together with an
// event that needs no flag.
func TestAnEventHasTheFlagThatAReceiptGaveItsMessage(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	first := denied(m, provider.Refused, "7F")
	first.DeniedParts = 2
	settleAll(t, l, []ledger.Settlement{first})
	m = claimNext(t, l, m)
	receive(t, l, receipt("7F", provider.Delivered))
	other := claimAll(t, l, []ledger.Message{message("other")}, "a").Messages[0]
	settleAll(t, l, accepted([]ledger.Message{m, other}))
	got := see(`select string_agg(k || convert_from(v, 'UTF8'), ' ' order by k)
		from dispatcher.outbox, unnest(keys, "values") as u(k, v)`)
	if got != `m{"state":"accepted","possible_duplicate":true} other{"state":"accepted"}` {
		t.Error(got)
	}
}

func TestRetryWithoutATimeIsDueAtOnceWithWhatWasLearned(t *testing.T) {
	t.Parallel()
	l, m, _ := one(t)
	settleAll(t, l, []ledger.Settlement{{
		Seq: m.Seq, ID: m.ID, Attempt: 1, Outcome: provider.Refused, Code: "dial",
		State: ledger.Retry, Reason: "refused", Tried: true,
		Pinned: "a", PartsLeft: []int{1, 2}, PartsCut: "smpp gsm7 udh8 3 9f2c11ab03de",
	}})
	waiting, err := l.Claims.Waiting(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int64{"otp": 1}, waiting); diff != "" {
		t.Error(diff)
	}
	var due ledger.Message
	err = runClaim(t.Context(), l, ledger.Claim{Due: 5, Channels: []string{"a"}},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			due = seen.Messages[0]
			d, err := give(seen)
			d.Each[0].NewRound = true
			return d, err
		})
	if err != nil {
		t.Fatal(err)
	}
	want := m
	want.Digest = 0
	want.State, want.Reason, want.Attempts, want.NextAt = ledger.Retry, "refused", 1, due.NextAt
	want.Tried, want.Pinned, want.PartsLeft, want.PartsCut = []string{"a"}, "a", []int{1, 2},
		"smpp gsm7 udh8 3 9f2c11ab03de"
	if diff := cmp.Diff(want, due); diff != "" {
		t.Error(diff)
	}
	record, err := l.Messages.Record(t.Context(), "m")
	if err != nil {
		t.Fatal(err)
	}
	if record.Message.Tried != nil || record.Message.Rounds != 1 || record.Message.Attempts != 2 {
		t.Errorf("a new round left tried %v, rounds %d, attempts %d", record.Message.Tried,
			record.Message.Rounds, record.Message.Attempts)
	}
}

// TestHowATextWasCutStaysOnRecord: without it the choices of a message that was sent in parts could
// not be derived again.
func TestHowATextWasCutStaysOnRecord(t *testing.T) {
	t.Parallel()
	l, m, _ := one(t)
	cut := func() string {
		t.Helper()
		record, err := l.Messages.Record(t.Context(), "m")
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(record.Message.PartsLeft, record.Message.PartsCut)
	}
	rest := ledger.Settlement{
		Seq: m.Seq, ID: m.ID, Attempt: 1, Outcome: provider.Throttled, State: ledger.Retry,
		Reason: "throttled",
		Pinned: "a", PartsLeft: []int{2}, PartsCut: "broken\x00 cut",
	}
	settleAll(t, l, []ledger.Settlement{rest})
	if got := cut(); got != "[2]broken\uFFFD cut" {
		t.Errorf("after some parts: %q", got)
	}
	if err := runClaim(t.Context(), l, ledger.Claim{Due: 5, Channels: []string{"a"}},
		give); err != nil {
		t.Fatal(err)
	}
	last := accepted([]ledger.Message{m})
	last[0].Attempt, last[0].Await = 2, time.Hour
	settleAll(t, l, last)
	if got := cut(); got != "[]broken\uFFFD cut" {
		t.Errorf("after the last part: %q", got)
	}
}

func TestSettleTakesAnyWordOfAProvider(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	s := accepted([]ledger.Message{m})
	s[0].Code, s[0].Reference = "zero\x00byte", "broken\xff\xfeutf8"
	settleAll(t, l, s)
	if got := see(`select provider_code || ' ' || provider_reference
		from dispatcher.all_attempts`); got != "zero\uFFFDbyte broken\uFFFDutf8" {
		t.Errorf("%q", got)
	}
}

func TestSettleIgnoresAttemptsThatDoNotExist(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	s := accepted([]ledger.Message{m, {Seq: m.Seq + 999}})
	s[0].Attempt = 2
	settleAll(t, l, s)
	if got := see(`select state || (select count(*) from dispatcher.outbox)
		from dispatcher.message_states`); got != "sending0" {
		t.Error(got)
	}
}

func TestALoweredActiveBoundSinksWithWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l := rig.l
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	seen := claimAll(t, l, batch("m", 10), "a")
	apply(t, l, ledger.ChannelSpec{Name: "a", ActiveMax: 4})
	db := rig.db
	for settled, want := range []string{
		"10/10", "9/9", "8/8", "7/7", "6/6", "5/5", "4/4", "4/3",
		"4/2",
	} {
		if got := scalar[string](t, db,
			`select max || '/' || active from audit.active`); got != want {
			t.Errorf("after %d: %s, want %s", settled, got, want)
		}
		settleAll(t, l, accepted(seen.Messages[settled:settled+1]))
	}
}

func TestWaitingRowsCarryTheStateTheyWereDecidedOn(t *testing.T) {
	t.Parallel()
	l := open(t, ledger.ChannelSpec{Name: "a", ActiveMax: 1})
	seen := claimAll(t, l, batch("m", 3), "a")
	record, err := l.Messages.Record(t.Context(), "m-00002")
	if err != nil {
		t.Fatal(err)
	}
	m := record.Message
	if m.State != ledger.Waiting || m.Reason != "no_slot" || m.Attempts != 0 ||
		!m.NextAt.Equal(seen.Now.Add(time.Minute)) {
		t.Errorf("state %s, reason %s, attempts %d, next %s", m.State, m.Reason, m.Attempts,
			m.NextAt)
	}
	if got := string(record.Seen); got != `{"a": "no_slot"}` || len(record.Attempts) != 0 {
		t.Errorf("seen %s, %d attempts", got, len(record.Attempts))
	}
}
