package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
)

// openAmbiguity settles the attempt of one message as unknown, and opens an ambiguity that is due
// at once.
func openAmbiguity(
	t *testing.T, step ledger.Step,
) (*ledger.Ledger, ledger.Message, func(sql string) string) {
	t.Helper()
	l, m, see := one(t)
	s := unknown(m)
	now, err := l.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Ambiguity = &ledger.Ambiguity{Key: "k", Step: step, Until: now.Add(time.Minute), NextAt: now}
	if step == ledger.SameKey {
		s.State, s.Pinned, s.NextAt = ledger.Retry, "a", now.Add(time.Hour)
	}
	for range 2 { // twice has the effect of once
		settleAll(t, l, []ledger.Settlement{s})
	}
	return l, m, see
}

func ambiguities(t *testing.T, l *ledger.Ledger) []ledger.OpenAmbiguity {
	t.Helper()
	open, err := l.Ambiguities.Due(t.Context(), 10, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return open
}

func resolve(t *testing.T, l *ledger.Ledger, j ledger.Resolution) bool {
	t.Helper()
	ended, err := l.Ambiguities.Resolve(t.Context(), &j)
	if err != nil {
		t.Fatal(err)
	}
	return ended
}

// final resolves the ambiguity of a message as unknown for good.
func final(m ledger.Message) ledger.Resolution {
	return ledger.Resolution{
		Seq: m.Seq, Key: "k", As: ledger.Unresolved, Author: "ops", Via: ledger.ViaCommand,
		Note: "asked the carrier",
		Move: &ledger.Move{
			State: ledger.Unknown, Reason: "ambiguous_final",
			Notice: accepted([]ledger.Message{m})[0].Notice,
		},
	}
}

const seeAmbiguity = `select concat_ws(' ', m.state, m.reason, d.verdict, nullif(d.author, ''),
	case when d.next_at is null then 'closed' end,
	case when m.possible_duplicate then 'duplicate' end, m.same_key) from dispatcher.message_states m
	  left join dispatcher.ambiguous d on d.message_seq = m.seq`

func TestAnAmbiguityIsLookedAtByOneAtATime(t *testing.T) {
	t.Parallel()
	l, m, _ := openAmbiguity(t, ledger.Lookup)
	open := ambiguities(t, l)
	if len(open) != 1 || open[0].Message.ID != m.ID || open[0].Key != "k" ||
		open[0].Attempt.Channel != "a" || open[0].Asked != 1 || open[0].Step != ledger.Lookup {
		t.Fatalf("%+v", open)
	}
	if again := ambiguities(t, l); len(again) != 0 {
		t.Error("a leased ambiguity was given away twice")
	}
	if err := l.Ambiguities.Postpone(t.Context(), m.Seq, "k",
		time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if again := ambiguities(t, l); len(again) != 1 || again[0].Asked != 2 {
		t.Errorf("%+v", again)
	}
}

func TestALateAnswerIsToldToWhoeverClearsUp(t *testing.T) {
	t.Parallel()
	l, m, see := openAmbiguity(t, ledger.Lookup)
	if err := l.Ambiguities.Postpone(t.Context(), m.Seq, "k",
		time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if open := ambiguities(t, l); len(open) != 0 {
		t.Fatalf("%+v", open)
	}
	settleAll(t, l, accepted([]ledger.Message{m}))
	open := ambiguities(t, l)
	if len(open) != 1 || open[0].Answer != "accepted" || open[0].First != 1 ||
		open[0].Attempt.Number != 1 {
		t.Fatalf("%+v", open)
	}
	if !resolve(t, l, ledger.Resolution{Seq: m.Seq, Key: "k", As: ledger.Taken}) {
		t.Error("nothing was ended")
	}
	if got := see(seeAmbiguity); got != "accepted taken closed" {
		t.Error(got)
	}
	if _, err := l.Ambiguities.Of(t.Context(), m.ID, 0); !errors.Is(err, ledger.ErrNotAmbiguous) {
		t.Errorf("got %v", err)
	}
}

func TestAResolutionCountsOnceAndAFinalOneMayBeOverruled(t *testing.T) {
	t.Parallel()
	l, m, see := openAmbiguity(t, ledger.AwaitReceipt)
	if !resolve(t, l, final(m)) {
		t.Fatal("nothing was ended")
	}
	if got := see(seeAmbiguity); got != "unknown ambiguous_final final ops closed" {
		t.Error(got)
	}
	if list, err := l.Ambiguities.List(t.Context(), &ledger.AmbiguousFilter{}, 10); err != nil ||
		len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := l.Ambiguities.List(t.Context(), &ledger.AmbiguousFilter{Ended: true},
		10); err != nil || len(list) != 1 || list[0].Note != "asked the carrier" ||
		list[0].ResolvedAs != ledger.Unresolved || list[0].Via != ledger.ViaCommand {
		t.Errorf("%+v, %v", list, err)
	}
	truth := ledger.Resolution{
		Seq: m.Seq, Key: "k", As: ledger.Taken, Author: "ops",
		Note: "in its log", Settlement: &accepted([]ledger.Message{m})[0],
	}
	if !resolve(t, l, truth) {
		t.Error("a final word could not be overruled")
	}
	if got := see(seeAmbiguity); got != "accepted taken ops closed" {
		t.Error(got)
	}
	const both = "in its log (before: final, ops by command: asked the carrier)"
	if got := see(`select note from dispatcher.ambiguous`); got != both {
		t.Error(got)
	}
	if resolve(t, l, final(m)) || see(seeAmbiguity) != "accepted taken ops closed" {
		t.Error("a certain verdict was overruled")
	}
}

// asResent ends a search with a flagged resend on another channel.
func asResent(m ledger.Message) ledger.Resolution {
	r := final(m)
	r.As, r.Move.State, r.Move.Reason = ledger.Resent, ledger.Retry, "resend"
	r.Move.PossibleDuplicate, r.Move.Tried = true, true
	return r
}

func TestAResendIsAllowedOnceAndFlagged(t *testing.T) {
	t.Parallel()
	l, m, see := openAmbiguity(t, ledger.AwaitReceipt)
	if !resolve(t, l, asResent(m)) {
		t.Fatal("nothing was ended")
	}
	if got := see(seeAmbiguity); got != "retry resend resent ops closed duplicate" {
		t.Error(got)
	}
	if got := see(`select tried::text from dispatcher.messages`); got != "{a}" {
		t.Errorf("tried %s", got)
	}
}

// TestARepeatThatNeverCameToItsTurnEndsUnknown: the channel could not send for as long as the
// search lasted.
func TestARepeatThatNeverCameToItsTurnEndsUnknown(t *testing.T) {
	t.Parallel()
	l, m, see := openAmbiguity(t, ledger.SameKey)
	if got := see(seeAmbiguity); got != "retry k" {
		t.Fatal(got)
	}
	if !resolve(t, l, final(m)) {
		t.Fatal("nothing was ended")
	}
	if got := see(seeAmbiguity); got != "unknown ambiguous_final final ops closed" {
		t.Error(got)
	}
}

// TestALateSettlementDoesNotBringTheKeyBack: another process has settled the attempt meanwhile, and
// the search has ended.
func TestALateSettlementDoesNotBringTheKeyBack(t *testing.T) {
	t.Parallel()
	l, m, see := openAmbiguity(t, ledger.SameKey)
	if !resolve(t, l, asResent(m)) {
		t.Fatal("nothing was ended")
	}
	before := see(seeAmbiguity)
	settleAll(t, l, []ledger.Settlement{repeat(m, 1)})
	if got := see(seeAmbiguity); got != before {
		t.Errorf("got %s, before %s", got, before)
	}
}

// claimAgain makes the message of an ambiguity due and claims its next attempt under the key.
func claimAgain(t *testing.T, l *ledger.Ledger, see func(string) string) {
	t.Helper()
	see(`with w as (update dispatcher.messages set next_at = now() where state = 'retry'
		returning 1) select count(*)::text from w`)
	var key string
	err := runClaim(t.Context(), l, ledger.Claim{Due: 5, Channels: []string{"a"}},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			key = seen.Messages[0].SameKey
			return give(seen)
		})
	if err != nil || key != "k" {
		t.Fatalf("the due row repeats %q, %v", key, err)
	}
}

// repeat settles attempt n, made under the same key, as unknown.
func repeat(m ledger.Message, n int) ledger.Settlement {
	s := unknown(m)
	s.Attempt, s.State, s.Pinned, s.NextAt = n, ledger.Retry, "a", time.Now().Add(time.Hour)
	s.Ambiguity = &ledger.Ambiguity{
		Key: "k", Step: ledger.SameKey,
		Until: time.Now().Add(time.Minute), NextAt: time.Now().Add(time.Minute),
	}
	return s
}

const seeBill = `select string_agg(concat_ws(' ', outcome, segments, price_micros > 0), ', '
	order by attempt) from dispatcher.all_attempts`

func TestTheLatestAttemptUnderAKeyCarriesThePriceOfTheSubmission(t *testing.T) {
	t.Parallel()
	l, m, see := openAmbiguity(t, ledger.SameKey)
	claimAgain(t, l, see)
	settleAll(t, l, []ledger.Settlement{repeat(m, 2)})
	if got := see(seeBill); got != "unknown 0 f, unknown 1 t" {
		t.Error(got)
	}
	claimAgain(t, l, see)
	s := accepted([]ledger.Message{m})[0]
	s.Attempt = 3
	s.Ambiguity = &ledger.Ambiguity{
		Key: "k", Step: ledger.SameKey,
		Until: time.Now().Add(time.Minute), ResolvedAs: ledger.Taken,
	}
	settleAll(t, l, []ledger.Settlement{s})
	if got := see(seeBill); got != "unknown 0 f, unknown 0 f, accepted 1 t" {
		t.Error(got)
	}
	if got := see(seeAmbiguity); got != "accepted taken closed" {
		t.Error(got)
	}
}

// TestARepeatedSubmissionLocksItsAttemptsInOrder: the settlement sets the price of the first
// attempt to 0, and receipts lock the first attempt first.
func TestARepeatedSubmissionLocksItsAttemptsInOrder(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db, watch := rig.l, rig.db, raw(t, rig.url)
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	m := claimAll(t, l, []ledger.Message{message("m")}, "a").Messages[0]
	settleAll(t, l, []ledger.Settlement{repeat(m, 1)})
	claimAgain(t, l, func(sql string) string { return scalar[string](t, watch, sql) })
	execute(t, db, `begin`)
	execute(t, db, `select from dispatcher.attempts where attempt = 1 for update`)
	done := waiting(t, watch, func() error {
		return l.Settlements.Settle(t.Context(), []ledger.Settlement{repeat(m, 2)})
	})
	for _, sql := range []string{
		`select from dispatcher.attempts where attempt = 2 for update nowait`,
		`select from dispatcher.messages for update nowait`,
	} {
		if _, err := watch.Exec(t.Context(), sql); err != nil {
			t.Errorf("it has locked what comes after: %s: %v", sql, err)
		}
	}
	execute(t, db, `commit`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := scalar[string](t, db, seeBill); got != "unknown 0 f, unknown 1 t" {
		t.Error(got)
	}
}

// TestASettlementWaitsForNoMessageThatAnotherHasMoved: two instances close lost attempts, one of
// which is the same for both. The second instance then has a channel locked, and a claim that
// repeats the attempt which the first has closed waits for that channel.
func TestASettlementWaitsForNoMessageThatAnotherHasMoved(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a", ActiveMax: 9})
	m := claimAll(t, l, batch("m", 2), "a").Messages
	first, second := repeat(m[0], 1), repeat(m[1], 1)
	settleAll(t, l, []ledger.Settlement{first})
	execute(t, db, `begin`)
	execute(t, db, `select from dispatcher.messages where seq = $1 for update`, m[0].Seq)
	ctx, cancel := context.WithTimeout(t.Context(), tier.LongestWait)
	defer cancel()
	if err := l.Settlements.Settle(ctx, []ledger.Settlement{first, second}); err != nil {
		t.Error(err)
	}
	execute(t, db, `commit`)
	got := scalar[string](t, db,
		`select string_agg(concat_ws(' ', state, same_key), ', ') from dispatcher.message_states`)
	if got != "retry k, retry k" || activeOn(t, db, "a") != 0 {
		t.Errorf("%s, %d active", got, activeOn(t, db, "a"))
	}
}

// TestLateAnswersLockMessagesInOrder: two batches each have a late answer to one message, and the
// answer to the resend of the other. While the first message is locked they queue for it, before
// either has locked the second.
func TestLateAnswersLockMessagesInOrder(t *testing.T) {
	t.Parallel()
	url := ledgertest.Fresh(t)
	l, other, db, watch := connect(t, ledger.Config{URL: url}), connect(t, ledger.Config{URL: url}),
		raw(t, url), raw(t, url)
	apply(t, l, ledger.ChannelSpec{Name: "a", ActiveMax: 9})
	m := claimAll(t, l, batch("m", 2), "a").Messages
	for i := range m {
		resend := unknown(m[i])
		resend.State, resend.PossibleDuplicate = ledger.Retry, true
		settleAll(t, l, []ledger.Settlement{resend})
	}
	if err := runClaim(t.Context(), l, ledger.Claim{Due: 5, Channels: []string{"a"}},
		give); err != nil {
		t.Fatal(err)
	}
	late, again := accepted(m), accepted(m)
	for i := range again {
		again[i].Attempt = 2
	}
	execute(t, db, `begin`)
	execute(t, db, `select from dispatcher.messages where seq = $1 for update`, m[0].Seq)
	first := waiting(t, watch, func() error {
		return l.Settlements.Settle(t.Context(), []ledger.Settlement{late[0], again[1]})
	})
	second := waiting(t, watch, func() error {
		return other.Settlements.Settle(t.Context(), []ledger.Settlement{again[0], late[1]})
	})
	execute(t, db, `commit`)
	if err := errors.Join(<-first, <-second); err != nil {
		t.Error(err)
	}
	if got := scalar[string](t, db,
		`select string_agg(state, ', ') from dispatcher.message_states`); got != "accepted, accepted" ||
		activeOn(t, db, "a") != 0 {
		t.Errorf("%s, %d active", got, activeOn(t, db, "a"))
	}
}

func TestNothingIsResolvedWhileTheMessageIsSubmittedAgain(t *testing.T) {
	t.Parallel()
	l, m, see := openAmbiguity(t, ledger.SameKey)
	claimAgain(t, l, see)
	if resolve(t, l, final(m)) {
		t.Error("a verdict was passed while the answer may be on its way")
	}
	settleAll(t, l, []ledger.Settlement{repeat(m, 2)})
	if !resolve(t, l, final(m)) || see(seeAmbiguity) != "unknown ambiguous_final final ops closed" {
		t.Error(see(seeAmbiguity))
	}
}

// TestALateWordAboutAnEarlierAttemptKeepsTheKeyOfTheLatest: the instance that made the first
// submission does not know of the repetition.
func TestALateWordAboutAnEarlierAttemptKeepsTheKeyOfTheLatest(t *testing.T) {
	t.Parallel()
	l, m, see := openAmbiguity(t, ledger.SameKey)
	claimAgain(t, l, see)
	settleAll(t, l, []ledger.Settlement{repeat(m, 2)})
	for _, step := range []ledger.Step{ledger.AwaitReceipt, ledger.SameKey} {
		late := repeat(m, 1)
		late.Ambiguity.Step, late.Ambiguity.Account, late.Ambiguity.Key = step, "another", "other"
		settleAll(t, l, []ledger.Settlement{late})
		if got := see(`select concat_ws(' ', state, same_key, nullif(same_key_account, ''))
			from dispatcher.message_states`); got != "retry k" {
			t.Errorf("after %s it is %s", step, got)
		}
	}
}

// TestAnAmbiguityThatIsClosedWhileItIsPickedIsNotGivenAway: it was leased before it was closed.
func TestAnAmbiguityThatIsClosedWhileItIsPickedIsNotGivenAway(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l := rig.l
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	m := claimAll(t, l, []ledger.Message{message("m")}, "a").Messages[0]
	s := unknown(m)
	s.Ambiguity = &ledger.Ambiguity{
		Key: "k", Step: ledger.Lookup, Until: time.Now().Add(time.Minute), NextAt: time.Now(),
	}
	settleAll(t, l, []ledger.Settlement{s})
	leased := 0
	looker := connect(t,
		ledger.Config{URL: rig.url, Tracer: afterQuery{"for update of d skip locked", func() {
			if leased++; !resolve(t, l, final(m)) {
				t.Error("it was not ended")
			}
		}}})
	if open := ambiguities(t, looker); len(open) != 0 || leased != 1 {
		t.Errorf("leased %d times, given away %+v", leased, open)
	}
}

// TestAReceiptForARepeatedSubmissionReachesTheMessage: the receipt names the first attempt, and the
// message is at the second.
func TestAReceiptForARepeatedSubmissionReachesTheMessage(t *testing.T) {
	t.Parallel()
	for _, state := range []provider.ReceiptState{
		provider.Pending, provider.Delivered,
		provider.Undelivered,
	} {
		t.Run(state.String(), func(t *testing.T) {
			t.Parallel()
			l, m, see := openAmbiguity(t, ledger.SameKey)
			claimAgain(t, l, see)
			settleAll(t, l, []ledger.Settlement{repeat(m, 2)})
			_, err := l.Receipts.Receive(t.Context(), []ledger.Receipt{
				{Channel: "a", Reference: "r", Seq: m.Seq, Attempt: 1, State: state},
			},
				func(*ledger.Closing) *ledger.Notice { return nil })
			if err != nil {
				t.Fatal(err)
			}
			open := ambiguities(t, l)
			if len(open) != 1 || open[0].Answer != "accepted" || open[0].Attempt.Number != 2 {
				t.Fatalf("%+v", open)
			}
			s := accepted([]ledger.Message{m})[0]
			s.Attempt = 2
			j := ledger.Resolution{Seq: m.Seq, Key: "k", As: ledger.Taken, Settlement: &s}
			want := "accepted"
			if state.Final() {
				want = state.String()
				j.Move = &ledger.Move{State: ledger.State(want)}
			}
			if !resolve(t, l, j) || see(`select state from dispatcher.message_states`) != want {
				t.Errorf("the message is %s, want %s", see(`select state from dispatcher.message_states`),
					want)
			}
			if got := see(seeBill); got != "accepted 0 f, accepted 1 t" {
				t.Error(got)
			}
		})
	}
}

func TestARepeatThatIsNotTakenGoesElsewhere(t *testing.T) {
	t.Parallel()
	l, m, see := openAmbiguity(t, ledger.SameKey)
	no := unknown(m)
	no.Outcome, no.State, no.Reason, no.Tried, no.Segments, no.PriceMicros = provider.Refused,
		ledger.Retry, "refused", true, 0, 0
	j := ledger.Resolution{
		Seq: m.Seq, Key: "k", As: ledger.NotTaken, Author: "ops", Settlement: &no,
		Move: &ledger.Move{State: ledger.Retry, Reason: "refused", Tried: true},
	}
	if !resolve(t, l, j) {
		t.Fatal("nothing was ended")
	}
	if got := see(seeAmbiguity +
		` where m.tried = '{a}' and m.pinned is null
			and m.next_at <= now()`); got != "retry refused not_taken ops closed" {
		t.Error(got)
	}
}

// TestALateAnswerThatNothingWasSentFreesTheMessage: it waited to be submitted again under the key,
// on the same channel. Now any channel may take it, at once.
func TestALateAnswerThatNothingWasSentFreesTheMessage(t *testing.T) {
	t.Parallel()
	l, m, see := openAmbiguity(t, ledger.SameKey)
	late := unknown(m)
	late.Outcome, late.Code, late.State, late.Segments, late.PriceMicros = provider.Refused, "stale",
		ledger.Retry, 0, 0
	settleAll(t, l, []ledger.Settlement{late})
	if !resolve(t, l, ledger.Resolution{Seq: m.Seq, Key: "k", As: ledger.NotTaken}) {
		t.Fatal("nothing was ended")
	}
	if got := see(seeAmbiguity + ` where m.pinned is null and m.next_at <= now()
		and m.same_key is null`); got != "retry not_taken closed" {
		t.Errorf("the message is %q, %s", got, see(`select concat_ws(' ', state, pinned, next_at, same_key)
			from dispatcher.message_states`))
	}
}

func TestAnAnsweredAttemptOpensNoAmbiguity(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	settleAll(t, l, accepted([]ledger.Message{m}))
	late := unknown(m)
	late.Ambiguity = &ledger.Ambiguity{
		Key: "k", Step: ledger.Lookup, Until: time.Now(),
		NextAt: time.Now(),
	}
	settleAll(t, l, []ledger.Settlement{late})
	if got := see(`select count(*)::text from dispatcher.ambiguous`); got != "0" {
		t.Errorf("%s ambiguities about what is known", got)
	}
	if late.Outcome != provider.Unknown {
		t.Fatal("the settlement was to be unknown")
	}
}

// TestAnAmbiguityIsToldWithWhatItsLatestAttemptSays, also when that attempt is settled while Due
// runs. Otherwise a resolution would use old values and await no receipts.
func TestAnAmbiguityIsToldWithWhatItsLatestAttemptSays(t *testing.T) {
	t.Parallel()
	l := open(t)
	again := func(m ledger.Message, n int) ledger.Settlement {
		s := repeat(m, n)
		s.NextAt, s.Ambiguity.NextAt, s.Receipts, s.Await, s.Reference = time.Time{}, time.Now(), 2,
			time.Hour, fmt.Sprint(m.ID, n)
		return s
	}
	var first, second []ledger.Settlement
	for _, m := range claimAll(t, l, batch("m", tier.Size(40, 100)), "a").Messages {
		first, second = append(first, again(m, 1)), append(second, again(m, 2))
	}
	settleAll(t, l, first)
	pick(t, l, len(first), true)
	ctx, stop := context.WithCancel(t.Context())
	var lookers sync.WaitGroup
	for range 3 {
		lookers.Go(func() {
			for ctx.Err() == nil {
				open, err := l.Ambiguities.Due(t.Context(), len(first), 0)
				if err != nil {
					t.Error(err)
				}
				for i := range open {
					d := &open[i]
					if want := fmt.Sprint(d.Message.ID, d.Attempt.Number); d.Await != time.Hour ||
						d.Reference != want {
						t.Errorf("%s is told with %q and awaits %s", want, d.Reference, d.Await)
					}
				}
			}
		})
	}
	for i := range second {
		if err := l.Settlements.Settle(t.Context(), second[i:i+1]); err != nil {
			t.Error(err)
		}
	}
	stop()
	lookers.Wait()
}
