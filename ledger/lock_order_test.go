package ledger_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// lateChannel is one of the last of manyChannels. Without an order by, some channels before it by
// name would be locked after it.
const lateChannel = "c12"

func manyChannels() (names []string, specs []ledger.ChannelSpec) {
	for i := range 16 {
		names = append(names, fmt.Sprintf("c%02d", i))
		specs = append(specs, ledger.ChannelSpec{Name: names[i], ActiveMax: 10})
	}
	return names, specs
}

// claimOneEach claims a message on each of the channels.
func claimOneEach(t *testing.T, l *ledger.Ledger, channels []string) (messages []ledger.Message) {
	t.Helper()
	want := ledger.Claim{Messages: batch("m", len(channels)), Channels: channels}
	err := runClaim(t.Context(), l, want, func(seen *ledger.Seen) (ledger.Decisions, error) {
		d := ledger.Decisions{Each: make([]ledger.Decision, len(seen.Messages))}
		for i := range seen.Messages {
			one := *seen
			one.Channels = seen.Channels[i : i+1]
			d.Each[i] = giveOne(&one, &seen.Messages[i])
		}
		messages = seen.Messages
		return d, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

// TestSlotsOfManyChannelsAreGivenBackInTheOrderOfLocks: slots are given back in the order of the
// channels' names. While another session has lateChannel locked, all channels before it are locked.
func TestSlotsOfManyChannelsAreGivenBackInTheOrderOfLocks(t *testing.T) {
	t.Parallel()
	names, specs := manyChannels()
	hold := func(s *ledger.Settlement) { s.Hold, s.Await = time.Hour, 72*time.Hour }
	for _, c := range []struct {
		what   string
		before func(*ledger.Settlement) // nil when no attempt is settled before
		free   func(*testing.T, *rig, []ledger.Settlement) error
	}{
		{"a plain settlement", nil, func(t *testing.T, r *rig, all []ledger.Settlement) error {
			return r.l.Settlements.Settle(t.Context(), all)
		}},
		{"settle", nil, func(t *testing.T, r *rig, all []ledger.Settlement) error {
			for i := range all {
				all[i].Tried = true
			}
			return r.l.Settlements.Settle(t.Context(), all)
		}},
		{"receipts", hold, func(t *testing.T, r *rig, all []ledger.Settlement) error {
			var receipts []ledger.Receipt
			for i := range all {
				receipts = append(receipts, ledger.Receipt{
					Channel: names[i], Reference: all[i].Reference, State: provider.Delivered,
				})
			}
			_, err := r.l.Receipts.Receive(t.Context(), receipts, nil)
			return err
		}},
		{"the end of a hold", hold, func(t *testing.T, r *rig, _ []ledger.Settlement) error {
			_, err := r.l.Settlements.ReleaseSlots(t.Context(), 6*time.Second)
			return err
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			r := lend(t)
			watch := raw(t, r.url)
			apply(t, r.l, specs...)
			all := accepted(claimOneEach(t, r.l, names))
			if c.before != nil {
				for i := range all {
					c.before(&all[i])
				}
				settleAll(t, r.l, all)
				endHolds(t, r.db)
			}
			execute(t, r.db, `begin`)
			execute(t, r.db,
				`select from dispatcher.freed_slots where channel = $1 for update`, lateChannel)
			done := waiting(t, watch, func() error { return c.free(t, r, all) })
			const free = `
				with free as (
				  select from dispatcher.freed_slots where channel < $1 for update skip locked)
				select count(*) from free`
			if n := scalar[int](t, watch, free, lateChannel); n > 0 {
				t.Errorf("%d of the channels before %s come after it", n, lateChannel)
			}
			execute(t, r.db, `commit`)
			if err := <-done; err != nil {
				t.Error(err)
			}
			for _, name := range names {
				if n := activeOn(t, r.db, name); n != 0 {
					t.Errorf("%d slots of %s are taken", n, name)
				}
			}
		})
	}
}

// TestAClaimWaitsForChannelsBeforeItLocksWhatIsDue: a late answer, of a provider that throttles,
// changes a message that has come due, and waits for the channel, as the claim does. If the claim
// had locked the message's row of due before, the two would wait for each other.
func TestAClaimWaitsForChannelsBeforeItLocksWhatIsDue(t *testing.T) {
	t.Parallel()
	r := lend(t)
	watch := raw(t, r.url)
	apply(t, r.l, ledger.ChannelSpec{Name: "a", ActiveMax: 9})
	m := claimAll(t, r.l, batch("m", 2), "a").Messages
	lost := unknown(m[0])
	lost.State, lost.PossibleDuplicate = ledger.Retry, true
	settleAll(t, r.l, []ledger.Settlement{lost})
	execute(t, r.db, `begin`)
	execute(t, r.db, `select from dispatcher.channels for update`)
	late := accepted(m)
	late[0].Slow = &ledger.Slow{}
	settled := waiting(t, watch, func() error { return r.l.Settlements.Settle(t.Context(), late) })
	claimed := waiting(t, watch, func() error {
		return runClaim(t.Context(), r.l, ledger.Claim{Due: 5, Channels: []string{"a"}}, give)
	})
	execute(t, r.db, `commit`)
	if err := errors.Join(<-settled, <-claimed); err != nil {
		t.Error(err)
	}
	if n := scalar[int](t, r.db, `select count(*) from dispatcher.all_attempts`); n != 2 {
		t.Errorf("%d attempts of two messages that were accepted", n)
	}
}

// TestRowsThatNoReceiptMatchesAreLockedLast: when another message already has an id, a settlement
// writes its row for that id after all its other rows of receipts. Due rows are locked in the same
// order.
func TestRowsThatNoReceiptMatchesAreLockedLast(t *testing.T) {
	t.Parallel()
	r := lend(t)
	watch := raw(t, r.url)
	apply(t, r.l, ledger.ChannelSpec{Name: "a", ActiveMax: 9})
	m := claimAll(t, r.l, batch("m", 1), "a").Messages
	settleAll(t, r.l, expecting(m[0], "z"))
	execute(t, r.db, `insert into dispatcher.receipts
		  (channel, reference, message_seq, attempt, part, due_at)
		select channel, 'b ' || message_seq || '.1', message_seq, attempt, 2, due_at
		from dispatcher.receipts`)
	execute(t, r.db, `update dispatcher.receipts set due_at = now()`)
	execute(t, r.db, `update dispatcher.awaited set due_at = now()`)
	execute(t, r.db, `begin`)
	execute(t, r.db, `select from dispatcher.receipts where reference = 'z' for update`)
	done := waiting(t, watch, func() error {
		_, err := r.l.Receipts.Overdue(t.Context(), 10, tellState)
		return err
	})
	if n := scalar[int](t, watch, `with free as (select from dispatcher.receipts
		where starts_with(reference, 'b ') for update skip locked) select count(*) from free`); n != 1 {
		t.Error("it was locked before the row of z")
	}
	execute(t, r.db, `commit`)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
