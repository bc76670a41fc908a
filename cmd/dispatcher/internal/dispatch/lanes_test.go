package dispatch

import (
	"testing"
	"time"
)

func TestUnknownLaneGoesBehindAllOthers(t *testing.T) {
	t.Parallel()
	lanes := func(names ...string) *Routing {
		r := &Routing{Lanes: map[string]Lane{}}
		for i, name := range names {
			r.Lanes[name] = Lane{Name: name, Order: i, TTL: time.Hour, ResendOnce: true}
		}
		return r
	}
	restarted, live := lanes("otp", "bulk"), lanes("otp", "bulk")
	live.keepLanes(lanes("old", "otp", "older", "bulk"))
	for _, name := range []string{"old", "older"} {
		there, here := restarted.lane(name), live.lane(name)
		if there.Order != here.Order || there.Order <= live.lane("bulk").Order || live.priority(here) != 0 || restarted.priority(there) != 0 {
			t.Errorf("%s: %+v after a restart, %+v live", name, there, here)
		}
		if here.TTL != time.Hour || !here.ResendOnce {
			t.Errorf("%s lost its settings: %+v", name, here)
		}
	}
	for name, want := range map[string]int{"otp": 1, "bulk": 0} {
		if got := live.priority(live.lane(name)); got != want || restarted.priority(restarted.lane(name)) != want {
			t.Errorf("priority of %s is %d, want %d", name, got, want)
		}
	}
	again := lanes("old", "otp")
	again.keepLanes(live)
	if got := again.lane("old"); got.Order != 0 || got.former || again.priority(again.lane("bulk")) != 0 {
		t.Errorf("a lane that came back is %+v", got)
	}
}

// TestALargeBatchOfTheFirstLaneHasTheSlotsThatAreKeptForIt: all others are held by attempts that
// nobody answers.
func TestALargeBatchOfTheFirstLaneHasTheSlotsThatAreKeptForIt(t *testing.T) {
	t.Parallel()
	p := setup(t, nil)
	p.slots.hold(t, p.slots.size())
	defer p.slots.release(p.slots.size())
	messages := 2*p.express.size() + 1
	p.handle(t, jobsNamed("code", messages))
	p.eventually(t, byState, map[string]int64{"accepted": int64(messages)})
}
