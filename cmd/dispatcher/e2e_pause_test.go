package main

import (
	"slices"
	"testing"

	"dispatcher/cmd/dispatcher/internal/envelope"
)

// TestWhatIsPausedWaitsAndLosesNothing: a tenant is paused while messages stream, then everything.
// A process is killed meanwhile, and its successor sends nothing that is paused either. Then both
// are resumed, and all messages arrive once.
func TestWhatIsPausedWaitsAndLosesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, plot{lanes: "  otp: {topics: [%s.otp], ttl: 24h}\n" +
		"  bulk: {topics: [%s.bulk], ttl: 24h, max_waiting: 20}\n"})
	p := s.run("dispatcher 1")
	p.says(t, "dispatcher is running")
	s.joined(1)
	story := func(name, tenant string, n int) []envelope.Message {
		all := short(name, n)
		for i := range all {
			all[i].Tenant = tenant
		}
		return all
	}
	sent := func(ids []string) (n int) {
		for _, submit := range s.submits() {
			if slices.Contains(ids, idOf(submit.Text)) {
				n++
			}
		}
		return n
	}
	paused := func() int {
		return queryOne[int](t, s.postgres, `select count(*) from dispatcher.messages
			where state = 'waiting' and reason = 'paused'`)
	}

	s.command("pause", "--tenant", "noisy", "--reason", "wrong text", "--author", "ann")
	noisy := s.publish("bulk", story("noisy", "noisy", 50)) // more than may wait in the lane
	quiet := s.publish("bulk", story("quiet", "quiet", 30))
	eventually(t, stepTimeout, "the others have been sent, and the paused ones wait", func() bool {
		return sent(quiet) == 30 && paused() == 50
	})
	if n := sent(noisy); n != 0 {
		t.Errorf("%d messages of a paused tenant were sent", n)
	}
	s.command("pause", "--all", "--reason", "stop", "--author", "ann")
	p.kill(t)
	s.run("dispatcher 2").says(t, "dispatcher is running")
	later := s.publish("bulk", story("later", "quiet", 30))
	later = append(later, s.publish("otp", story("codes", "quiet", 5))...)
	now := s.status()
	if !slices.Equal(now.Paused, []string{"all", "tenant noisy"}) || !now.Lanes[0].Paused {
		t.Errorf("status: %+v", now)
	}
	s.command("channel", "drain", "a", "--reason", "wakes all that wait")
	eventually(t, stepTimeout, "all that wait have been considered", func() bool {
		return queryOne[int](t, s.postgres, `select count(*) from dispatcher.messages m
			join (select max(version) as v from dispatcher.routing_versions) r on true
			where state = 'waiting' and reason = 'paused' and routing_version = r.v`) >= 50
	})
	if n := sent(noisy) + sent(later); n != 0 {
		t.Errorf("%d messages were sent although all is paused", n)
	}

	s.command("resume", "--all", "--reason", "go on", "--author", "ben")
	all := slices.Concat(noisy, quiet, later)
	s.settled(len(all), stepTimeout)
	if n := sent(all); n != len(all) {
		t.Errorf("%d of %d were sent", n, len(all))
	}
	s.checkNoneTwice()
	s.checkAllArrived(all)
	s.checkStatuses()
	s.checkVerified(len(all))
}
