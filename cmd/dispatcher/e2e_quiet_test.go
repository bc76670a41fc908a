package main

import (
	"fmt"
	"testing"
	"time"

	"dispatcher/config/tier"
)

// TestQuietHoursHoldACampaignAndNothingElse: messages of a route in its quiet hours wait, more of
// them than may wait in the lane, and the other messages of the lane are sent. A new document
// without quiet hours releases them.
func TestQuietHoursHoldACampaignAndNothingElse(t *testing.T) {
	t.Parallel()
	london, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().In(london)
	clock := func(d time.Duration) string { return now.Add(d).Format("15:04") }
	quiet := fmt.Sprintf(", quiet: {hours: \"%s-%s\"}", clock(-4*time.Hour), clock(6*time.Hour))
	s := newStage(t, stageConfig{
		match: "tenant: campaigns", route: quiet[2:] + "}\n  - {name: others, weights: {a: 1}",
		lanes: "  bulk: {topics: [%s.bulk], ttl: 24h, max_waiting: 20}\n",
	})
	s.run("dispatcher 1").awaitOutput(t, "dispatcher is running")
	s.joined(1)
	campaign := short("campaign", 50)
	for i := range campaign {
		campaign[i].Tenant = "campaigns"
	}
	held := s.publish("bulk", campaign)
	waiting := func() int {
		return queryOne[int](t, s.postgres, `select count(*) from dispatcher.messages
			where state = 'waiting' and reason = 'quiet_hours' and next_at > now() + interval '5 hours'`)
	}
	tier.Within(t, stepTimeout, "the campaign waits", func() bool { return waiting() == 50 })
	others := s.publish("bulk", short("others", 30))
	tier.Within(t, stepTimeout, "the others have been sent", func() bool {
		return s.submitted() == 30 && waiting() == 50
	})
	if all := s.statuses(map[string]string{held[0]: "waiting"}); all[held[0]][0].Reason != "quiet_hours" {
		t.Errorf("status of a waiting message: %+v", all[held[0]])
	}
	s.edit(quiet, "")
	s.settled(len(held) + len(others))
	s.checkNoneTwice()
	s.checkAllArrived(append(held, others...))
	s.checkVerified(len(held) + len(others))
}
