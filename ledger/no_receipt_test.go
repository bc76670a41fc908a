package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// goingOn settles the first attempt of a message as accepted, with a receipt awaited for each
// reference. Its NextAt has passed, so it goes on to another channel.
func goingOn(m ledger.Message, references string) []ledger.Settlement {
	s := expecting(m, references)
	s[0].NextAt = time.Now().Add(-time.Second)
	if n := len(strings.Fields(references)); n > 1 {
		s[0].Receipts = n
	}
	return s
}

// goOnTo sends a message that was accepted to a further channel, which accepts it.
func goOnTo(t testing.TB, l *ledger.Ledger, channel string, m ledger.Message) {
	t.Helper()
	first := goingOn(m, "first-"+m.ID)
	first[0].Await = 0
	settleAll(t, l, first)
	second := further(claimFurther(t, l, channel), provider.Accepted)
	second[0].Await = 0
	settleAll(t, l, second)
}

// claimFurther claims the further attempt of the message, and returns the message as the claim
// showed it.
func claimFurther(t testing.TB, l *ledger.Ledger, channel string) (m ledger.Message) {
	t.Helper()
	err := runClaim(t.Context(), l, ledger.Claim{Due: 5, Channels: []string{channel}},
		func(seen *ledger.Seen) (ledger.Decisions, error) {
			d, err := give(seen)
			for i := range d.Each {
				d.Each[i].Attempt.Reason = ledger.ByNoReceipt
			}
			if len(seen.Messages) == 1 {
				m = seen.Messages[0]
			}
			return d, err
		})
	if err != nil || m.State != ledger.Accepted {
		t.Fatalf("claimed %+v: %v", m, err)
	}
	return m
}

// further settles the further attempt of a message that was accepted before.
func further(m ledger.Message, outcome provider.Outcome) []ledger.Settlement {
	s := accepted([]ledger.Message{m})
	s[0].Outcome, s[0].Reference, s[0].Await = outcome, "second", 72*time.Hour
	s[0].PossibleDuplicate, s[0].Reason = true, "no_receipt"
	s[0].Notice.Value = []byte("accepted again")
	if outcome != provider.Accepted {
		s[0].Reference, s[0].Segments, s[0].PriceMicros = "", 0, 0
		s[0].PossibleDuplicate, s[0].Reason, s[0].Notice = false, "", nil
	}
	return s
}

// wentOn is a short text of a message, its attempts, and its row of due.
const wentOn = `select concat_ws(' ', m.state, case when m.possible_duplicate then 'flagged' end,
	'|',
	(select string_agg(concat_ws(' ', a.channel, a.outcome, a.receipt_state), ', ' order by a.attempt)
	  from dispatcher.all_attempts a where a.message_seq = m.seq),
	(select '| due ' || d.state from dispatcher.due d where d.seq = m.seq))
	from dispatcher.message_states m where m.id = 'm'`

// TestAReceiptBeforeItsTimeKeepsAMessageWhereItIs: a final receipt ends the message, and a final
// receipt for one of several parts is shown to the claim. A pending one changes nothing.
func TestAReceiptBeforeItsTimeKeepsAMessageWhereItIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		references string
		state      provider.ReceiptState
		want       string
		came       bool
	}{
		{"r1", provider.Delivered, "delivered | a accepted delivered", false},
		{"r1", provider.Undelivered, "undelivered | a accepted undelivered", false},
		{"r1", provider.Pending, "accepted | a accepted | due accepted", false},
		{"r1 r2", provider.Delivered, "accepted | a accepted | due accepted", true},
	} {
		t.Run(fmt.Sprint(c.references, " ", c.state), func(t *testing.T) {
			t.Parallel()
			l, m, see := one(t)
			settleAll(t, l, goingOn(m, c.references))
			if open := see(`select open::text from facts.evidence`); open != "true" {
				t.Error("a message that may go on can be sealed as one that has ended")
			}
			receive(t, l, receipt("r1", c.state))
			if got := see(wentOn); got != c.want {
				t.Fatal(got)
			}
			if waiting, err := l.Claims.Waiting(t.Context()); err != nil || len(waiting) > 0 {
				t.Errorf("what was accepted counts as waiting: %v, %v", waiting, err)
			}
			shown := ledger.Message{}
			stay := func(seen *ledger.Seen) (ledger.Decisions, error) {
				d := ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}
				for i := range seen.Messages {
					shown = seen.Messages[i]
					d.Each[i] = ledger.Decision{State: ledger.Accepted, Plan: shown.Plan}
				}
				return d, nil
			}
			if err := runClaim(t.Context(), l, ledger.Claim{Due: 5}, stay); err != nil {
				t.Fatal(err)
			}
			if shown.ReceiptCame != c.came || shown.TakenAt.IsZero() != (shown.Seq == 0) {
				t.Errorf("the claim was shown %+v", shown)
			}
			if got := see(`select count(*)::text from dispatcher.due`); got != "0" {
				t.Errorf("%s messages stand in due after the claim left them where they are", got)
			}
		})
	}
}

// TestReceiptsOfAMessageThatWentOn: each receipt is stored on its own attempt. While the further
// attempt is in flight, a receipt of the first one ends the message only if it says delivered.
func TestReceiptsOfAMessageThatWentOn(t *testing.T) {
	t.Parallel()
	first := func(state provider.ReceiptState) ledger.Receipt { return receipt("first", state) }
	second := func(state provider.ReceiptState) ledger.Receipt {
		r := receipt("second", state)
		r.Channel = "b"
		return r
	}
	for name, c := range map[string]struct {
		before  []ledger.Receipt // the answer of the next channel
		outcome provider.Outcome
		after   []ledger.Receipt
		want    string
	}{
		"nothing yet": {
			nil, provider.Accepted, nil, "accepted flagged | a accepted, b accepted",
		},
		"the second is delivered": {
			nil, provider.Accepted,
			[]ledger.Receipt{second(provider.Delivered)},
			"delivered flagged | a accepted, b accepted delivered",
		},
		"the first is delivered late": {
			nil, provider.Accepted,
			[]ledger.Receipt{first(provider.Delivered)},
			"delivered flagged | a accepted delivered, b accepted",
		},
		"one of them is not": {
			nil, provider.Accepted,
			[]ledger.Receipt{first(provider.Undelivered)},
			"accepted flagged | a accepted undelivered, b accepted",
		},
		"neither is": {
			nil, provider.Accepted,
			[]ledger.Receipt{first(provider.Undelivered), second(provider.Undelivered)},
			"undelivered flagged | a accepted undelivered, b accepted undelivered",
		},
		"the first is on its way while the next is asked": {
			[]ledger.Receipt{first(provider.Pending)},
			provider.Accepted, nil,
			"accepted flagged | a accepted, b accepted",
		},
		"the first is delivered while the next is asked": {
			[]ledger.Receipt{first(provider.Delivered)},
			provider.Accepted, nil,
			"delivered flagged | a accepted delivered, b accepted",
		},
		"the first is not while the next is asked": {
			[]ledger.Receipt{first(provider.Undelivered)},
			provider.Accepted,
			[]ledger.Receipt{second(provider.Delivered)},
			"delivered flagged | a accepted undelivered, b accepted delivered",
		},
		"the first is not, and the next refuses": {
			[]ledger.Receipt{first(provider.Undelivered)},
			provider.Rejected, nil,
			"undelivered | a accepted undelivered, b rejected",
		},
		"the next refuses": {
			nil, provider.Rejected,
			[]ledger.Receipt{first(provider.Delivered)},
			"delivered | a accepted delivered, b rejected",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := lend(t)
			l, see := r.l, func(sql string) string { return scalar[string](t, r.db, sql) }
			apply(t, l, ledger.ChannelSpec{Name: "a", ActiveMax: 100},
				ledger.ChannelSpec{Name: "b", ActiveMax: 100})
			m := claimAll(t, l, []ledger.Message{message("m")}, "a").Messages[0]
			settleAll(t, l, goingOn(m, "first"))
			m = claimFurther(t, l, "b")
			receive(t, l, c.before...)
			settleAll(t, l, further(m, c.outcome))
			awaited := scalar[int](t, r.db, `select count(*) from dispatcher.receipts where attempt = 2`)
			if (awaited == 1) != (c.outcome == provider.Accepted) {
				t.Errorf("%d receipts are awaited of the further attempt", awaited)
			}
			receive(t, l, c.after...)
			see(soonDue)
			overdue(t, l)
			if got := see(wentOn); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			all := append(slices.Clone(always), "maybe_taken_once", "without_receipt_once_a_channel",
				"states_follow_from_attempts")
			if found := violations(t, r.db, all...); len(found) > 0 {
				t.Error(found)
			}
		})
	}
}

// TestAMessageHasNoReceiptOnlyWhenNothingOfItIsOnItsWay: the time of the first receipt ends while
// the further attempt is in flight. The message becomes no_receipt only when the answer to that
// attempt shows that nothing more will come. If the next channel refuses, the message goes on to
// the one after it.
func TestAMessageHasNoReceiptOnlyWhenNothingOfItIsOnItsWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outcome provider.Outcome
		onward  bool     // the answer sends the message on to channel c, which accepts it
		want    []string // after the answer, and when the time of all receipts is over
	}{
		"the next channel accepts": {provider.Accepted, false, []string{
			"accepted flagged | a accepted no_receipt, b accepted",
			"no_receipt flagged | a accepted no_receipt, b accepted no_receipt",
		}},
		"the next channel rejects": {provider.Rejected, false, []string{
			"no_receipt | a accepted no_receipt, b rejected",
			"no_receipt | a accepted no_receipt, b rejected",
		}},
		"the next channel does not answer": {provider.Unknown, false, []string{
			"no_receipt | a accepted no_receipt, b unknown",
			"no_receipt | a accepted no_receipt, b unknown",
		}},
		"the next channel refuses": {provider.Refused, true, []string{
			"accepted | a accepted no_receipt, b refused | due accepted",
			"no_receipt flagged | a accepted no_receipt, b refused, c accepted no_receipt",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := lend(t)
			l, see := r.l, func(sql string) string { return scalar[string](t, r.db, sql) }
			apply(t, l, ledger.ChannelSpec{Name: "a", ActiveMax: 100},
				ledger.ChannelSpec{Name: "b", ActiveMax: 100},
				ledger.ChannelSpec{Name: "c", ActiveMax: 100})
			m := claimAll(t, l, []ledger.Message{message("m")}, "a").Messages[0]
			settleAll(t, l, goingOn(m, "first"))
			m = claimFurther(t, l, "b")
			timeUp(t, r.db)
			for range 2 { // the second time it is due again
				overdue(t, l)
				if got := see(wentOn); got != "sending | a accepted no_receipt, b" {
					t.Fatal(got)
				}
				if due := see(soonDue); due != "1" {
					t.Fatalf("%s rows are looked at again soon, want that of the first attempt", due)
				}
			}
			second := further(m, c.outcome)
			if c.onward {
				second[0].NextAt = time.Now().Add(-time.Second)
			}
			settleAll(t, l, second)
			for _, want := range c.want {
				see(soonDue)
				overdue(t, l)
				if got := see(wentOn); got != want {
					t.Fatalf("%s, want %s", got, want)
				}
				if found := violations(t, r.db, append(slices.Clone(always),
					"states_follow_from_attempts", "waiting_is_due")...); len(found) > 0 {
					t.Error(found)
				}
				if c.onward {
					third := further(claimFurther(t, l, "c"), provider.Accepted)
					third[0].Reference = "third"
					settleAll(t, l, third)
					c.onward = false
				}
				timeUp(t, r.db)
			}
			if due := see(soonDue); due != "0" {
				t.Errorf("%s rows are looked at again for ever", due)
			}
		})
	}
}

// TestAReceiptOfAnAttemptThatWasNotTakenKeepsNoMessage where it is.
func TestAReceiptOfAnAttemptThatWasNotTakenKeepsNoMessage(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	apply(t, l, ledger.ChannelSpec{Name: "a"}, ledger.ChannelSpec{Name: "b"})
	settleAll(t, l, goingOn(m, "r1"))
	see(`insert into dispatcher.receipts
		  (channel, reference, message_seq, attempt, part, state, received_at)
		select 'a', 'refused', seq, 7, 1, 'undelivered', now() from dispatcher.messages
		returning reference`)
	if m := claimFurther(t, l, "b"); m.ReceiptCame {
		t.Error("the receipt of a refused attempt counts")
	}
}

// TestAMessageWithoutATimeIsSettledAsEver: its row is not rewritten, and due has no row of it.
func TestAMessageWithoutATimeIsSettledAsEver(t *testing.T) {
	t.Parallel()
	l, m, see := one(t)
	settleAll(t, l, expecting(m, "r1"))
	if got := see(`select state || ' ' || (select count(*) from dispatcher.due)
		from dispatcher.messages`); got != "sending 0" {
		t.Error(got)
	}
}
