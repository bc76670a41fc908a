package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/ledger"
	"dispatcher/provider"
)

func TestThroughputCountsAttemptsByIntervalAndChannel(t *testing.T) {
	t.Parallel()
	rig := lend(t)
	l, db := rig.l, rig.db
	apply(t, l, ledger.ChannelSpec{Name: "a"}, ledger.ChannelSpec{Name: "b"})
	answers(t, l, "a", "a", provider.Accepted, "", provider.Accepted, "", provider.Rejected, "11")
	answers(t, l, "b", "b", provider.Accepted, "")
	execute(t, db, `update dispatcher.attempts set claimed_at = date_trunc('minute', now())
		- case channel when 'a' then interval '2 minutes' else interval '3 minutes' end`)
	got, err := l.Messages.Throughput(t.Context(), 10*time.Minute, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	want := []ledger.Throughput{
		{At: got[0].At, Channel: "b", Attempts: 1, Accepted: 1},
		{At: got[0].At.Add(time.Minute), Channel: "a", Attempts: 3, Accepted: 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, err = l.Messages.Throughput(t.Context(), time.Minute, time.Minute); err != nil ||
		len(got) != 0 {
		t.Errorf("of the last minute: %+v, %v", got, err)
	}
}
