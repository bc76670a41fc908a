package ledger_test

import (
	"testing"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// TestALateYesLeavesTheFlagOfAnotherResend: the resend may have been taken as well, so a late
// answer to the first attempt does not take the flag back. It does where the resend is still to
// come.
func TestALateYesLeavesTheFlagOfAnotherResend(t *testing.T) {
	t.Parallel()
	for resent, want := range map[bool]string{true: "accepted duplicate", false: "accepted"} {
		l, m, see := one(t)
		s := unknown(m)
		s.State, s.PossibleDuplicate = ledger.Retry, true
		settleAll(t, l, []ledger.Settlement{s})
		if resent {
			claimNext(t, l, m)
			see(`with u as (update dispatcher.attempts set reason = 'resend' where attempt = 2
				returning 1) select count(*)::text from u`)
			s.Attempt = 2
			settleAll(t, l, []ledger.Settlement{s})
		}
		settleAll(t, l, accepted([]ledger.Message{m}))
		got := see(`select concat_ws(' ', state, case when possible_duplicate then 'duplicate' end)
			from dispatcher.message_states`)
		if got != want {
			t.Errorf("resent %v: %s, want %s", resent, got, want)
		}
	}
}

// TestAnIDThatSeveralMessagesOfOneBatchName belongs to the oldest message whose part was taken, not
// to one that was refused under it. There are enough of them that a sort by the id alone mixes
// them.
func TestAnIDThatSeveralMessagesOfOneBatchName(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a"})
	m := claimAll(t, l, batch("m", 40), "a").Messages
	var settlements []ledger.Settlement
	for i := range m[:3] {
		settlements = append(settlements, denied(m[i], provider.Rejected, "same"))
	}
	for i := range m[3:] {
		settlements = append(settlements, expecting(m[3+i], "same")...)
	}
	settleAll(t, l, settlements)
	receive(t, l, ledger.Receipt{
		Channel: "a", Reference: "same", State: provider.Delivered, At: time.Now(),
	})
	got := scalar[string](t, db, `
		select string_agg(id, ' ' order by id) from dispatcher.message_states where state = 'delivered'`)
	if want := settlements[3].ID; got != want {
		t.Errorf("delivered: %s, want %s alone", got, want)
	}
}
