package ledger_test

import "testing"

func TestUnusableRecordsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	store(t, rig.db, "id, lane, state, finished_at, detail, reason", `select 'd' || n, 'otp', 'dead',
		now(), 'no JSON', 'malformed' from generate_series(1, 3) n order by n`)
	store(t, rig.db, "id, lane, state, finished_at", `select 'fine', 'otp', 'failed', now()`)
	got, err := rig.l.Reports.Unusable(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].ID != "d3" || got[1].ID != "d2" {
		t.Fatalf("%+v", got)
	}
	store(t, rig.db, "id, lane, state, finished_at, detail", `select repeat('x', 65), 'otp', 'dead',
		now(), 'no JSON'`)
	if got, err := rig.l.Reports.Unusable(t.Context(), 1); err != nil || got[0].ID != "" {
		t.Errorf("without an id of its own: %+v, %v", got, err)
	}
	if d := got[0]; d.Lane != "otp" || d.Detail != "no JSON" || d.Reason != "malformed" ||
		d.ReceivedAt.IsZero() {
		t.Errorf("%+v", d)
	}
}
