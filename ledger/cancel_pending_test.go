package ledger_test

import (
	"slices"
	"testing"
	"time"

	"dispatcher/ledger"
)

// TestACancellationThatComesFirstEndsItsMessage when the message is stored, even a scheduled one.
// The claim after it asks in its first round trip. Arrived lists a message that was being stored
// when its cancellation came.
func TestACancellationThatComesFirstEndsItsMessage(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	by := ledger.Canceller{Author: "shop", Reason: "withdrawn", Via: ledger.ViaTopic}
	messages := batch("m", 4)
	for _, i := range []int{1, 2, 2} {
		if err := l.Cancellations.Later(t.Context(), messages[i].ID, by); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Cancellations.Later(t.Context(), "never-comes", by); err != nil {
		t.Fatal(err)
	}
	messages[2].State, messages[2].NextAt = ledger.Scheduled, time.Now().Add(time.Hour)
	claim := func(messages []ledger.Message, cancelled ...int) {
		t.Helper()
		want := ledger.Claim{Messages: messages, Channels: []string{"a"}}
		err := runClaim(t.Context(), l, want, func(seen *ledger.Seen) (ledger.Decisions, error) {
			d := ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}
			for i := range seen.Messages {
				if seen.CancelledBefore[i] != slices.Contains(cancelled, i) {
					t.Errorf("message %d: cancelled %v", i, seen.CancelledBefore[i])
				}
				d.Each[i] = ledger.Decision{State: ledger.Failed, Reason: ledger.ReasonCancelled}
				if !seen.CancelledBefore[i] {
					d.Each[i] = giveOne(seen, &seen.Messages[i])
				}
			}
			// one more, of a message that this claim is just storing
			return d, l.Cancellations.Later(t.Context(), messages[0].ID, by)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n, oldest, err := l.Cancellations.CountPending(t.Context()); err != nil || n != 3 ||
		time.Since(oldest).Abs() > time.Minute {
		t.Errorf("%d pending, the oldest since %v, %v", n, oldest, err)
	}
	withoutReason := by
	withoutReason.Reason = ""
	for id, want := range map[string]bool{messages[1].ID: true, "none": false} {
		got, err := l.Cancellations.Pending(t.Context(), id)
		if err != nil || (got != nil) != want || want && (got.Canceller != withoutReason || got.ID != id) {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
	claim(messages, 1, 2)
	again := batch("n", 2)
	if err := l.Cancellations.Later(t.Context(), again[1].ID, by); err != nil {
		t.Fatal(err)
	}
	claim(again, 1)
	for sql, want := range map[string]int{
		`select count(*) from dispatcher.messages where state = 'failed' and reason = 'cancelled'
			and next_at is null and finished_at is not null and attempts = 0`: 3,
		`select count(*) from dispatcher.all_attempts`: 3,
		`select count(*) from dispatcher.operator_actions where action = 'cancel'
			and author = 'shop' and reason = 'withdrawn' and via = 'control topic'`: 3,
		`select count(*) from dispatcher.operator_actions where action = 'cancel_pending'
			and author = 'shop' and reason = 'withdrawn' and via = 'control topic'`: 6,
		`select count(*) from dispatcher.pending_cancellations`: 3,
	} {
		if got := scalar[int](t, db, sql); got != want {
			t.Errorf("%s: %d, want %d", sql, got, want)
		}
	}
	arrived, err := l.Cancellations.Arrived(t.Context())
	if err != nil || len(arrived) != 2 || arrived[0].Canceller != by {
		t.Fatalf("arrived: %+v, %v", arrived, err)
	}
	for i := range arrived {
		if id := arrived[i].ID; id != messages[0].ID && id != again[0].ID {
			t.Errorf("%s has arrived", id)
		}
		if err := l.Cancellations.Forget(t.Context(), arrived[i].ID); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, db, `update dispatcher.pending_cancellations set at = now() - interval '25 hours'`)
	if _, err := l.Days.Keep(t.Context(), ledger.Retention{
		IDs: 24 * time.Hour, Payloads: 24 * time.Hour, Facts: 24 * time.Hour,
	}); err != nil {
		t.Fatal(err)
	}
	if n := scalar[int](t, db, `select count(*) from dispatcher.pending_cancellations`); n != 0 {
		t.Errorf("%d cancellations are kept for ever", n)
	}
}
