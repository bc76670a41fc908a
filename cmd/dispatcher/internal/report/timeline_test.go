package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dispatcher/ledger"
)

// TestTheTimelineTellsWhatHappened: what operators and deadlines did to a message is in it, too, in
// order of time.
func TestTheTimelineTellsWhatHappened(t *testing.T) {
	t.Parallel()
	later := func(minutes int) time.Time { return ten.Add(time.Duration(minutes) * time.Minute) }
	scheduledFor := func(r *ledger.Record, at time.Time) {
		r.Message.Envelope = fmt.Appendf(nil, `{"id":"x","to":"+447700900123","text":"x",`+
			`"send_at":%q}`, at.Format(time.RFC3339))
	}
	for name, tc := range map[string]struct {
		record func() *ledger.Record
		want   []string
	}{
		"cancelled before its time": {func() *ledger.Record {
			r := newRecord(ledger.Failed)
			scheduledFor(r, later(60))
			r.Message.Reason, r.FinishedAt = ledger.ReasonCancelled, later(5)
			r.CancelledBy = "ann"
			return r
		}, []string{
			"10:00 received Received on lane otp",
			"10:00 scheduled Scheduled until 11:00",
			"10:05 cancelled Cancelled by ann",
		}},
		"expired": {func() *ledger.Record {
			r := newRecord(ledger.Failed, attempt("a", ledger.ByFirstChoice, outcomeRefused, "late"))
			r.Message.Reason, r.FinishedAt = "expired", later(10)
			return r
		}, []string{
			"10:00 received Received on lane otp",
			"10:00 attempt Attempt 1 on a",
			"10:00 answer Answer of a: refused",
			"10:10 expired Expired: its deadline passed",
		}},
		"settled by hand, then delivered": {func() *ledger.Record {
			r := newRecord(ledger.Delivered, attempt("a", ledger.ByFirstChoice, outcomeAccepted,
				"operator"))
			a := &r.Attempts[0]
			a.SettledAt, a.Receipt, a.ReceiptAt = later(8), ledger.Delivered, later(9)
			r.Ambiguities = []ledger.AmbiguityRecord{{
				Channel: "a", Attempt: 1, Last: 1, Step: ledger.Lookup, OpenedAt: later(1),
				Until: later(7), ClosedAt: later(8), ResolvedAs: ledger.Taken, Author: "ann",
			}}
			r.FinishedAt = later(9)
			return r
		}, []string{
			"10:00 received Received on lane otp",
			"10:00 attempt Attempt 1 on a",
			"10:01 ambiguous No answer of a: it may have taken the message",
			"10:08 answer Outcome of attempt 1 on a: accepted",
			"10:08 settled ann settled it as taken",
			"10:09 receipt Receipt: delivered",
			"10:09 ended Ended: delivered",
		}},
		"found out": {func() *ledger.Record {
			r := newRecord(ledger.Unknown, attempt("a", ledger.ByFirstChoice, outcomeUnknown, ""))
			r.Ambiguities = []ledger.AmbiguityRecord{{
				Channel: "a", Attempt: 1, Last: 1, Step: ledger.AwaitReceipt, OpenedAt: later(1),
				Until: later(7), ClosedAt: later(7), ResolvedAs: ledger.Unresolved,
			}}
			r.Message.Reason, r.FinishedAt = "ambiguous_final", later(7)
			return r
		}, []string{
			"10:00 received Received on lane otp",
			"10:00 attempt Attempt 1 on a",
			"10:00 answer Answer of a: unknown",
			"10:01 ambiguous No answer of a: it may have taken the message",
			"10:07 settled The search found nothing: nobody knows whether it was taken, and it " +
				"counts as possibly billable",
			"10:07 ended Ended: unknown",
		}},
		"ambiguous still": {func() *ledger.Record {
			r := newRecord(ledger.Unknown, attempt("a", ledger.ByFirstChoice, outcomeUnknown, ""))
			r.Ambiguities = []ledger.AmbiguityRecord{{
				Channel: "a", Attempt: 1, Last: 1, Step: ledger.Lookup, OpenedAt: later(1),
				Until: later(7),
			}}
			return r
		}, []string{
			"10:00 received Received on lane otp",
			"10:00 attempt Attempt 1 on a",
			"10:00 answer Answer of a: unknown",
			"10:01 ambiguous No answer of a: it may have taken the message until 10:07",
		}},
		"waits": {func() *ledger.Record {
			r := newRecord(ledger.Waiting)
			m := &r.Message
			m.Reason, m.WaitsFor, m.WaitingSince, m.NextAt = "no_slot", "a 1s messages", later(2),
				later(3)
			return r
		}, []string{
			"10:00 received Received on lane otp",
			"10:02 waiting Waits for a 1s messages until 10:03",
		}},
		"is tried again": {func() *ledger.Record {
			r := newRecord(ledger.Retry, attempt("a", ledger.ByFirstChoice, outcomeRefused, "late"))
			r.Message.NextAt = later(4)
			return r
		}, []string{
			"10:00 received Received on lane otp",
			"10:00 attempt Attempt 1 on a",
			"10:00 answer Answer of a: refused",
			"10:00 retry To be tried again until 10:04",
		}},
		"scheduled, its payload hidden": {func() *ledger.Record {
			r := newRecord(ledger.Scheduled)
			r.Message.Envelope, r.Message.NextAt = nil, later(60)
			return r
		}, []string{
			"10:00 received Received on lane otp", "10:00 scheduled Scheduled until 11:00",
		}},
	} {
		var got []string
		for _, e := range explain(t, tc.record(), nil).Timeline {
			line := e.At.Format("15:04") + " " + e.Kind + " " + e.Title
			if !e.Until.IsZero() {
				line += " until " + e.Until.Format("15:04")
			}
			got = append(got, line)
		}
		if a, b := strings.Join(got, "\n"), strings.Join(tc.want, "\n"); a != b {
			t.Errorf("%s: got\n%s\nwant\n%s", name, a, b)
		}
	}
}
