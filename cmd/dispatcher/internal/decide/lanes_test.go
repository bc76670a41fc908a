package decide

import (
	"testing"
	"time"

	"dispatcher/config"
)

func TestUnknownLaneGoesBehindAllOthers(t *testing.T) {
	t.Parallel()
	lanes := func(names ...string) *Routing {
		r := &Routing{Lanes: map[string]Lane{}}
		for i, name := range names {
			r.Lanes[name] = Lane{Lane: config.Lane{
				Name: name, TTL: time.Hour,
				Ambiguous: "resend_once",
			}, Order: i}
		}
		return r
	}
	restarted, live := lanes("otp", "bulk"), lanes("otp", "bulk")
	live.KeepLanes(lanes("old", "otp", "older", "bulk"))
	for _, name := range []string{"old", "older"} {
		there, here := restarted.Lane(name), live.Lane(name)
		if there.Order != here.Order || there.Order <= live.Lane("bulk").Order ||
			live.priority(here) != 0 || restarted.priority(there) != 0 {
			t.Errorf("%s: %+v after a restart, %+v live", name, there, here)
		}
		if here.TTL != time.Hour || !here.ResendOnce() {
			t.Errorf("%s lost its settings: %+v", name, here)
		}
	}
	for name, want := range map[string]int{"otp": 1, "bulk": 0} {
		if got := live.priority(live.Lane(name)); got != want ||
			restarted.priority(restarted.Lane(name)) != want {
			t.Errorf("priority of %s is %d, want %d", name, got, want)
		}
	}
	again := lanes("old", "otp")
	again.KeepLanes(live)
	if got := again.Lane("old"); got.Order != 0 || got.former ||
		again.priority(again.Lane("bulk")) != 0 {
		t.Errorf("a lane that was added again: got %+v", got)
	}
}
