package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// denied settles the next attempt of a message as not taken, by an answer that names an id.
func denied(m ledger.Message, outcome provider.Outcome, id string) ledger.Settlement {
	s := unknown(m)
	s.Attempt, s.Outcome, s.State, s.Reason, s.Await, s.Denied = m.Attempts+1, outcome,
		ledger.Retry, outcome.String(), 72*time.Hour, id
	s.Segments, s.PriceMicros = 0, 0
	if outcome == provider.Rejected {
		s.State = ledger.Rejected
	}
	return s
}

// claimNext claims the next attempt of a message.
func claimNext(t *testing.T, l *ledger.Ledger, m ledger.Message) ledger.Message {
	t.Helper()
	if err := runClaim(t.Context(), l, ledger.Claim{Due: 5, Channels: []string{"a"}},
		give); err != nil {
		t.Fatal(err)
	}
	m.Attempts++
	return m
}

// contradicted is a short text of the message, whether it is flagged, its attempts with their
// costs, and its status events.
const contradicted = `select concat_ws(' ', m.state, case when m.possible_duplicate
	then 'flagged' end, '|',
	(select string_agg(concat_ws(' ', a.outcome, a.receipt_state, a.price_micros,
	  case when a.contradicted_at is not null then 'contradicted' end), ', ' order by a.attempt)
	   from dispatcher.all_attempts a where a.message_seq = m.seq), '|',
	(select string_agg(convert_from(u.raw, 'UTF8'), ', ' order by o.seq, u.nr)
	   from dispatcher.outbox o, unnest(o.keys, o."values") with ordinality as u(key, raw, nr)
	   where u.key = m.id))
	from dispatcher.message_states m where m.id = 'm'`

// TestADenialThatNamesAnIDAndDeliveredForThatID: the message is not sent again, costs nothing, and
// the contradiction is reported once, whether the answer or the receipt comes first.
func TestADenialThatNamesAnIDAndDeliveredForThatID(t *testing.T) {
	t.Parallel()
	for _, outcome := range []provider.Outcome{
		provider.Refused, provider.Throttled,
		provider.Rejected,
	} {
		for _, early := range []bool{false, true} {
			t.Run(fmt.Sprint(outcome, " early ", early), func(t *testing.T) {
				t.Parallel()
				l, m, see := one(t)
				var told []ledger.Discrepancy
				take := func() {
					got, err := l.Receipts.Receive(t.Context(), []ledger.Receipt{
						receipt("7F", provider.Delivered),
					}, tellState)
					if err != nil {
						t.Fatal(err)
					}
					told = append(told, got.Discrepancies...)
				}
				if early {
					take()
				}
				settleAll(t, l, []ledger.Settlement{denied(m, outcome, "7F")})
				if !early {
					take()
				}
				take()
				swept, err := l.Receipts.Overdue(t.Context(), 100, tellState)
				if err != nil {
					t.Fatal(err)
				}
				told = append(told, swept.Discrepancies...)
				if want := fmt.Sprintf("delivered | %s 0 contradicted | delivered a 1  delivered",
					outcome); see(contradicted) != want {
					t.Errorf("got  %s\nwant %s", see(contradicted), want)
				}
				if len(told) != 1 ||
					told[0] != (ledger.Discrepancy{
						Kind: ledger.DeliveredThoughDenied, Channel: "a",
						Reference: "7F", Answered: "7F",
					}) {
					t.Errorf("told %+v", told)
				}
				if n, err := l.Claims.Due(t.Context(), 1); n != 0 || err != nil {
					t.Errorf("%d are to be sent again, %v", n, err)
				}
				if n := see(`select count(*)::text from dispatcher.receipts
					where due_at is not null`); n != "0" {
					t.Error("somebody is to look at its row for ever")
				}
			})
		}
	}
}

// TestADenialThatNamesAnIDSaysNothingAboutTheFallback: no receipt is awaited for the denied
// attempt, and a receipt that says undelivered for it changes nothing.
func TestADenialThatNamesAnIDSaysNothingAboutTheFallback(t *testing.T) {
	t.Parallel()
	for _, state := range []provider.ReceiptState{0, provider.Pending, provider.Undelivered} {
		t.Run(state.String(), func(t *testing.T) {
			t.Parallel()
			l, m, see := one(t)
			settleAll(t, l, []ledger.Settlement{denied(m, provider.Refused, "7F")})
			m = claimNext(t, l, m)
			if state != 0 {
				receive(t, l, receipt("7F", state))
			}
			second := expecting(m, "r2")
			settleAll(t, l, second)
			receive(t, l, receipt("r2", provider.Delivered))
			if got, want := see(contradicted),
				"delivered | refused 0, accepted delivered 28000 | delivered a 2  delivered"; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// TestBothCarriersDeliveredIt: the message is flagged, and a status event says so to those who had
// one before.
func TestBothCarriersDeliveredIt(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]string{
		"before the fallback is settled": "delivered flagged | refused 0 contradicted, accepted " +
			"delivered 28000 | delivered flagged a 1",
		"before its receipt": "delivered flagged | refused 0 contradicted, accepted delivered " +
			"28000 | delivered flagged a 1",
		"after its receipt": "delivered flagged | refused 0 contradicted, accepted delivered " +
			"28000 | delivered a 2, delivered flagged a 2",
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			l, m, see := one(t)
			settleAll(t, l, []ledger.Settlement{denied(m, provider.Refused, "7F")})
			m = claimNext(t, l, m)
			for _, now := range []string{
				"before the fallback is settled", "before its receipt",
				"after its receipt",
			} {
				if now == when {
					for range 2 {
						if _, err := l.Receipts.Receive(t.Context(), []ledger.Receipt{
							receipt("7F", provider.Delivered),
						}, tellFlag); err != nil {
							t.Fatal(err)
						}
					}
				}
				switch now {
				case "before the fallback is settled":
					settleAll(t, l, expecting(m, "r2"))
				case "before its receipt":
					if _, err := l.Receipts.Receive(t.Context(), []ledger.Receipt{
						receipt("r2", provider.Delivered),
					}, tellFlag); err != nil {
						t.Fatal(err)
					}
				}
			}
			if got := see(contradicted); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func tellFlag(c *ledger.Closing) *ledger.Notice {
	flag := ""
	if c.PossibleDuplicate {
		flag = "flagged "
	}
	return &ledger.Notice{Kind: ledger.Status, Key: c.ID, Value: fmt.Appendf(nil, "%s %s%s %d",
		c.State, flag, c.Channel, c.Attempt)}
}

// TestAnIDThatADenialNamesTakesNoRowFromAnybody: carriers give the same id to everything that they
// refuse, or the id of an earlier message.
func TestAnIDThatADenialNamesTakesNoRowFromAnybody(t *testing.T) {
	t.Parallel()
	l, db, _ := holding(t, 0)
	m := claimAll(t, l, batch("m", 3), "a").Messages
	settleAll(t, l, append(expecting(m[0], "r1"), denied(m[1], provider.Refused, "r1"),
		denied(m[2], provider.Refused, "r1")))
	receive(t, l, receipt("r1", provider.Undelivered))
	receive(t, l, receipt("r1", provider.Delivered))
	if got := scalar[string](t, db,
		states); got != "m-00000 delivered, m-00001 retry, m-00002 retry" {
		t.Error(got)
	}
	more := claimAll(t, l, batch("n", 2), "a").Messages
	settleAll(t, l, []ledger.Settlement{denied(more[0], provider.Refused, "r2")})
	settleAll(t, l, expecting(more[1], "r2"))
	receive(t, l, receipt("r2", provider.Delivered))
	if got := scalar[string](t, db,
		`select string_agg(state, ' ' order by id) from dispatcher.message_states
			where id like 'n%'`); got != "retry delivered" {
		t.Error(got)
	}
}

// TestAnIDThatADenialNamesIsForgotten when its time is over: the carrier may then have given it to
// another message, whose receipt can come before its answer. A delivered one stays on record.
func TestAnIDThatADenialNamesIsForgotten(t *testing.T) {
	t.Parallel()
	for _, said := range []provider.ReceiptState{
		0, provider.Pending, provider.Undelivered,
		provider.Delivered,
	} {
		t.Run(said.String(), func(t *testing.T) {
			t.Parallel()
			l, m, see := one(t)
			settleAll(t, l, []ledger.Settlement{denied(m, provider.Rejected, "7F")})
			if said != 0 {
				receive(t, l, receipt("7F", said))
			}
			see(`with a as (update dispatcher.awaited set due_at = due_at - interval '71 hours'),
				w as (update dispatcher.receipts set due_at = due_at - interval '71 hours',
				  look_at = look_at - interval '71 hours' returning 1) select count(*)::text from w`)
			sweep := func() {
				if _, err := l.Receipts.Overdue(t.Context(), 100, tellState); err != nil {
					t.Fatal(err)
				}
			}
			const rows = `select count(*)::text from dispatcher.receipts`
			if sweep(); see(rows) != "1" {
				t.Fatal("it is forgotten an hour before its time is over")
			}
			see(dueNow)
			sweep()
			if said == provider.Undelivered || said == provider.Delivered {
				if see(rows) != "1" || see(dueNow) != "0" {
					t.Errorf("%s rows, of which %s are awaited", see(rows), see(dueNow))
				}
				return
			}
			next := claimAll(t, l, []ledger.Message{message("n")}, "a").Messages[0]
			receive(t, l, receipt("7F", provider.Delivered)) // before its answer
			settleAll(t, l, expecting(next, "7F"))
			sweep()
			const states = `select string_agg(concat_ws(' ', m.id, m.state,
				a.contradicted_at is not null), ', ' order by m.id)
				from dispatcher.message_states m join dispatcher.all_attempts a on a.message_seq = m.seq`
			if got := see(states); got != "m rejected f, n delivered f" {
				t.Error(got)
			}
		})
	}
}

// TestAMessageThatIsTakenHasTheIDOfADenial at once, also while the row of the denied attempt is
// awaited, and after a pending receipt.
func TestAMessageThatIsTakenHasTheIDOfADenial(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{false, true} {
		l, m, see := one(t)
		settleAll(t, l, []ledger.Settlement{denied(m, provider.Rejected, "7F")})
		next := claimAll(t, l, []ledger.Message{message("n")}, "a").Messages[0]
		if early {
			receive(t, l, receipt("7F", provider.Pending))
		}
		settleAll(t, l, expecting(next, "7F"))
		receive(t, l, receipt("7F", provider.Delivered))
		if got := see(`select string_agg(concat_ws(' ', id, state), ', ' order by id)
			from dispatcher.message_states`); got != "m rejected, n delivered" {
			t.Errorf("early %t: %s", early, got)
		}
	}
}

// TestAReceiptThatOurKeyProvesUnderAnotherID is stored on the attempt, and reported.
func TestAReceiptThatOurKeyProvesUnderAnotherID(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{false, true} {
		t.Run(fmt.Sprint("early ", early), func(t *testing.T) {
			t.Parallel()
			l, m, see := one(t)
			if !early {
				settleAll(t, l, expecting(m, "r1"))
			}
			got, err := l.Receipts.Receive(t.Context(), []ledger.Receipt{
				keyed(m, 1, "0x7F", provider.Delivered),
			}, tellState)
			if err != nil {
				t.Fatal(err)
			}
			told := got.Discrepancies
			if early {
				settleAll(t, l, expecting(m, "r1"))
				see(dueNow)
				swept, err := l.Receipts.Overdue(t.Context(), 100, tellState)
				if err != nil {
					t.Fatal(err)
				}
				told = append(told, swept.Discrepancies...)
			} else if got.ReceiptCounts != (ledger.ReceiptCounts{OtherID: 1}) {
				t.Errorf("%+v", got)
			}
			if len(told) != 1 || told[0] != (ledger.Discrepancy{
				Kind: ledger.UnderAnotherID, Channel: "a", Reference: "0x7F", Answered: "r1",
			}) {
				t.Errorf("told %+v", told)
			}
			if got := see(story); got != "delivered accepted delivered delivered at | delivered a 1  delivered" {
				t.Error(got)
			}
			receive(t, l, receipt("r1", provider.Undelivered))
			receive(t, l, receipt("0x7F", provider.Delivered))
			if got := see(story); got != "delivered accepted delivered delivered at | delivered a 1  delivered" {
				t.Error(got)
			}
		})
	}
}
