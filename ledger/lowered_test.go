package ledger_test

import (
	"testing"

	"dispatcher/admission"
)

// TestALimitThatWasLoweredBelowWhatIsGrantedHoldsInTheNextWindow: the window in which it was
// lowered keeps what it had granted, and the next one allows no more than the new limit.
func TestALimitThatWasLoweredBelowWhatIsGrantedHoldsInTheNextWindow(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	applyLimits(t, l, []admission.Limit{limit(admission.Day, 10)}, budget(tenant("shop"), 10*28000))
	mustClaim(t, l, of("shop", 8), shop...)
	applyLimits(t, l, []admission.Limit{limit(admission.Day, 5)}, budget(tenant("shop"), 6*28000))
	if _, sent := mustClaim(t, l, of("shop", 2), shop...); len(sent) != 0 {
		t.Fatalf("%d went out beyond the lowered limit", len(sent))
	}
	if got := granted(t,
		db); got != "tenant:shop 86400 money 224000 of 224000 GBP, a channel 86400 messages 8 of 8" {
		t.Errorf("in the window of the change: %s", got)
	}
	// the next day has begun
	execute(t, db, `update dispatcher.limits set window_start = window_start - interval '1 day'`)
	_, sent := mustClaim(t, l, of("shop", 9), shop...)
	if len(sent) != 5 {
		t.Errorf("%d went out in the next window, want the 5 of the new limit", len(sent))
	}
	want := "tenant:shop 86400 money 224000 of 224000 GBP, tenant:shop 86400 money 140000 of " +
		"168000 GBP, a channel 86400 messages 8 of 8, a channel 86400 messages 5 of 5"
	if got := granted(t, db); got != want {
		t.Errorf("in both windows: %s", got)
	}
}
