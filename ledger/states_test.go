package ledger_test

import (
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/ledger"
)

func TestPresentShowsWhatClaimsHaveTaken(t *testing.T) {
	t.Parallel()
	l := open(t, ledger.ChannelSpec{Name: "b", ActiveMax: 2, Limits: []admission.Limit{
		limit(admission.Day, 9),
	}}, ledger.ChannelSpec{Name: "a"})
	claimAll(t, l, batch("m", 3), "a", "b")
	p, err := l.Limits.Present(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Channels) != 2 || p.Channels[0].Name != "a" || p.Channels[1].Name != "b" ||
		time.Since(p.Now).Abs() > time.Minute {
		t.Fatalf("%+v", p)
	}
	a, b := p.Channels[0], p.Channels[1]
	if a.Gate.Active.Count != 3 || a.LastAssigned.IsZero() || len(a.Gate.Counters) != 0 {
		t.Errorf("%+v", a)
	}
	if b.Gate.Active.Max != 2 || b.Gate.Active.Count != 0 || !b.LastAssigned.IsZero() ||
		len(b.Gate.Counters) != 1 || b.Gate.Counters[0].Free() != 9 {
		t.Errorf("%+v", b)
	}
	if err := l.Ping(t.Context()); err != nil { // no connection is left in use
		t.Error(err)
	}
}

func TestPresentLeavesOutRemovedChannels(t *testing.T) {
	t.Parallel()
	l := open(t)
	apply(t, l, ledger.ChannelSpec{Name: "b"})
	p, err := l.Limits.Present(t.Context())
	if err != nil || len(p.Channels) != 1 || p.Channels[0].Name != "b" {
		t.Errorf("%v %+v", err, p)
	}
}
