package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config/tier"
)

// TestTheTopicOfAPausedLaneIsNotRead: neither of two processes reads it. The records of a running
// poll wait in the ledger, all others stay in Kafka and are the lag, and other lanes continue.
func TestTheTopicOfAPausedLaneIsNotRead(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	s := newStage(t, stageConfig{lanes: "  otp: {topics: [%s.otp], ttl: 24h}\n" +
		"  bulk: {topics: [%s.bulk], ttl: 24h}\n"})
	processes := s.runAll(2)
	s.joined(2)
	s.command("pause", "--lane", "bulk", "--reason", "wrong text", "--author", "ann")
	if said := s.command("pause", "--lane", "bulk", "--reason", "once more"); said !=
		"Nothing is changed, as it is paused already: lane bulk.\n" {
		t.Error(said)
	}
	tier.Within(t, stepTimeout, "both processes have paused the lane", func() bool {
		return s.count(`select count(*) from dispatcher.instances
			where (state -> 'lanes' -> 'bulk' ->> 'paused')::boolean`) == 2
	})
	// The poll that each process has running returns these records.
	bulk := s.publish("bulk", short("first", 100))
	tier.Within(t, stepTimeout, "no poll is under way any more", func() bool {
		read := map[int32]bool{}
		for _, p := range query(t, s.postgres, pgx.RowTo[int32],
			`select distinct kafka_partition from audit.messages where lane = 'bulk'`) {
			read[p] = true
		}
		for _, own := range s.assignments() {
			if !overlap(own, read) {
				return false
			}
		}
		return true
	})
	later := s.publish("bulk", short("later", 100))
	codes := s.publish("otp", short("codes", 30))
	tier.Within(t, stepTimeout, "the codes are accepted", func() bool {
		return s.count(`select count(*) from audit.messages
			where lane = 'otp' and state = 'accepted'`) == int64(len(codes))
	})
	if n := s.count(`select count(*) from audit.messages where id = any($1)`, later); n != 0 {
		t.Errorf("%d records of a paused lane were read", n)
	}
	if n := s.submitted(); n != len(codes) {
		t.Errorf("got %d sent messages, want only the %d otp messages", n, len(codes))
	}
	unread := int64(len(bulk)+len(later)) -
		s.count(`select count(*) from audit.messages where lane = 'bulk'`)
	tier.Within(t, stepTimeout, fmt.Sprintf("the lag is %d", unread), func() bool {
		lanes := s.status().Lanes
		at := slices.IndexFunc(lanes, func(l status.Lane) bool { return l.Lane == "bulk" })
		return at >= 0 && lanes[at].Lag != nil && *lanes[at].Lag == unread &&
			lagShown(t, processes, "bulk") == unread
	})
	s.command("resume", "--lane", "bulk", "--reason", "go on")
	all := slices.Concat(bulk, later, codes)
	s.settled(len(all))
	s.checkNoneTwice()
	s.checkAllArrived(all)
}

// lagShown is the lag of a lane by the metrics of all processes.
func lagShown(t *testing.T, processes []*process, lane string) (sum int64) {
	t.Helper()
	line := regexp.MustCompile(`(?m)^dispatcher_consumer_lag_records{lane="` + lane + `"} (\d+)$`)
	for _, p := range processes {
		_, metrics := p.get(t, "/metrics")
		found := line.FindStringSubmatch(metrics)
		if found == nil {
			return -1 // the process does not know it yet
		}
		n, err := strconv.ParseInt(found[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// overlap reports whether two sets have an element in common.
func overlap(a, b map[int32]bool) bool {
	for key := range a {
		if b[key] {
			return true
		}
	}
	return false
}

// TestWhatIsPausedWaitsAndLosesNothing: under traffic a tenant is paused, then everything. One of
// two processes is killed meanwhile, and its successor sends nothing that is paused. Then both
// pauses end, and all messages arrive once.
func TestWhatIsPausedWaitsAndLosesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, stageConfig{
		lanes: "  otp: {topics: [%s.otp], ttl: 24h}\n" +
			"  bulk: {topics: [%s.bulk], ttl: 24h, max_waiting: 20}\n",
		settings: map[string]string{"SEND_TIMEOUT": hasty},
	})
	p := s.runAll(2)[0]
	s.joined(2)
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
	tier.Within(t, stepTimeout, "the others have been sent, and the paused ones wait", func() bool {
		return sent(quiet) == 30 && paused() == 50
	})
	if n := sent(noisy); n != 0 {
		t.Errorf("%d messages of a paused tenant were sent", n)
	}
	s.command("pause", "--all", "--reason", "stop", "--author", "ann")
	p.kill(t)
	s.run("dispatcher 3").awaitOutput(t, "dispatcher is running")
	later := s.publish("bulk", story("later", "quiet", 30))
	later = append(later, s.publish("otp", story("codes", "quiet", 5))...)
	now := s.status()
	if !slices.Equal(now.Paused, []string{"all", "tenant noisy"}) || !now.Lanes[0].Paused {
		t.Errorf("status: %+v", now)
	}
	s.command("channel", "drain", "a", "--reason", "wakes all that wait")
	tier.Within(t, stepTimeout, "all that wait have been considered", func() bool {
		return queryOne[int](t, s.postgres, `select count(*) from dispatcher.messages m
			join (select max(version) as v from dispatcher.routing_versions) r on true
			where state = 'waiting' and reason = 'paused' and routing_version = r.v`) >= 50
	})
	if n := sent(noisy) + sent(later); n != 0 {
		t.Errorf("%d messages were sent although all is paused", n)
	}

	s.command("resume", "--all", "--reason", "go on", "--author", "ben")
	all := slices.Concat(noisy, quiet, later)
	s.settled(len(all))
	if n := sent(all); n != len(all) {
		t.Errorf("%d of %d were sent", n, len(all))
	}
	s.checkNoneTwice()
	s.checkAllArrived(all)
	s.checkStatuses()
	s.checkVerified(len(all))
}
