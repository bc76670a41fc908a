package main

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config/tier"
	"dispatcher/provider/smpp/smpptest"
)

// unanswered answers no submit until release is closed, so that no attempt is settled before.
func unanswered(release <-chan struct{}) smpptest.Behaviour {
	return smpptest.Behaviour{Decide: func(smpptest.Submit) smpptest.Answer {
		return smpptest.Answer{Hold: release}
	}}
}

// pick is one stored choice.
type pick struct {
	Channel   string
	Instance  int64
	ClaimedAt time.Time
	Ranking   []byte
}

// picks returns all choices grouped by claim, in the order of the database's clock, which a claim
// reads when it holds its locks.
func (s *stage) picks() []pick {
	s.t.Helper()
	return query(s.t, s.postgres, pgx.RowToStructByPos[pick], `
		select channel, instance, claimed_at, ranking::text::bytea from dispatcher.all_attempts
		where reason = 'first_choice' order by claimed_at, instance`)
}

func (p *pick) ranking(t *testing.T) decide.Ranking {
	t.Helper()
	var r decide.Ranking
	if err := json.Unmarshal(p.Ranking, &r); err != nil {
		t.Fatalf("ranking %q: %v", p.Ranking, err)
	}
	return r
}

// TestFourProcessesFollowOneRoundRobin: four processes with twelve partitions take turns as one
// would. After every claim of any process no channel is more than one message ahead of another, and
// each choice is the successor of the one before.
func TestFourProcessesFollowOneRoundRobin(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const n = 4_003
	names := []string{"a", "b", "c", "d", "e"}
	channels := make([]channel, len(names))
	for i, name := range names {
		channels[i] = channel{name: name, weight: "1", behaviour: quick()}
	}
	s := newStage(t,
		stageConfig{
			channels: channels, route: "mode: round_robin",
			settings: map[string]string{"BATCH": "37"},
		})
	processes := s.runAll(4)
	s.joined(len(processes))
	s.bound(4)
	s.publish("bulk", messages("turns", n))
	s.settled(n)

	all, carried, instances := s.picks(), map[string]int{}, map[int64]bool{}
	if len(all) != n {
		t.Fatalf("%d first choices of %d messages", len(all), n)
	}
	for i := range all {
		carried[all[i].Channel]++
		instances[all[i].Instance] = true
		if r := all[i].ranking(t); r.Cursor != "" && r.Cursor != before(names, all[i].Channel) {
			t.Fatalf("choice %d is %s after %s: %s", i, all[i].Channel, r.Cursor, all[i].Ranking)
		}
		end := i+1 == len(all) || !all[i+1].ClaimedAt.Equal(all[i].ClaimedAt)
		if end && spread(names, carried) > 1 {
			t.Fatalf("after the claim of %s: got messages by channel %v", all[i].ClaimedAt,
				carried)
		}
	}
	if len(instances) < 2 {
		t.Errorf("only %d of four processes carried messages", len(instances))
	}
	s.checkVerified(n)
}

// before returns the circular predecessor of a name.
func before(names []string, name string) string {
	return names[(slices.Index(names, name)+len(names)-1)%len(names)]
}

// spread returns how many more messages the most used channel carried than the least used one.
func spread(names []string, carried map[string]int) int {
	least, most := carried[names[0]], carried[names[0]]
	for _, name := range names {
		least, most = min(least, carried[name]), max(most, carried[name])
	}
	return most - least
}

// TestFourProcessesFillByExactLoadRatio: no submit is answered, so each message adds one to the
// load that all processes share. Whichever process claims it, the k-th message of all sees exactly
// k attempts in flight and goes to the least loaded channel. All channels become full at the same
// time.
func TestFourProcessesFillByExactLoadRatio(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const n = 240
	release := make(chan struct{})
	channels := []channel{
		{name: "a", weight: "1", behaviour: unanswered(release), document: "capacity: 60"},
		{name: "b", weight: "1", behaviour: unanswered(release), document: "capacity: 30"},
		{name: "c", weight: "1", behaviour: unanswered(release), document: "capacity: 150"},
	}
	s := newStage(t,
		stageConfig{channels: channels, route: "mode: longest_idle", settings: map[string]string{
			"BATCH": "7",
		}})
	processes := s.runAll(4)
	s.joined(len(processes))
	s.bound(4)
	s.publish("bulk", messages("load", n))
	tier.Within(t, stepTimeout, "all messages are under way", func() bool {
		ended := s.byID(`
			select channel || ' ' || outcome, string_agg(provider_code, ' ') from audit.attempts
			where outcome is not null group by 1`)
		if len(ended) > 0 {
			t.Fatalf("attempts have ended without an answer: %v", ended)
		}
		return s.count(`select count(*) from dispatcher.all_attempts`) == n
	})
	active := s.byID(`select channel, active::text from audit.active`)
	close(release)
	s.settled(n)

	if active["a"] != "60" || active["b"] != "30" || active["c"] != "150" {
		t.Errorf("got %v in flight, want the capacities 60, 30 and 150", active)
	}
	loads, instances := []int64{}, map[int64]bool{}
	for _, p := range s.picks() {
		instances[p.Instance] = true
		r := p.ranking(t)
		load, least := int64(0), r.Candidates[0]
		for _, c := range r.Candidates {
			load += c.Active
			if c.Active*least.Capacity < least.Active*c.Capacity {
				t.Fatalf("%s is ranked before the less loaded %s: %s", least.Channel, c.Channel,
					p.Ranking)
			}
		}
		if least.Channel != p.Channel {
			t.Fatalf("got channel %[2]s, want the least loaded, %[1]s", least.Channel, p.Channel)
		}
		loads = append(loads, load)
	}
	slices.Sort(loads)
	for k, load := range loads {
		if load != int64(k) {
			t.Fatalf("message %d saw %d attempts in flight", k, load)
		}
	}
	if len(instances) < 2 {
		t.Errorf("only %d of four processes carried messages", len(instances))
	}
	s.checkVerified(n)
}

// checkVerified derives every choice of the day again.
func (s *stage) checkVerified(n int) {
	s.t.Helper()
	verified := s.ask(nil, "audit", "verify", "--format", "json")
	var got struct {
		Checked    int   `json:"checked"`
		Mismatches []any `json:"mismatches"`
	}
	err := json.Unmarshal([]byte(verified.out), &got)
	if err != nil || verified.code != exitOK || got.Checked != n || len(got.Mismatches) > 0 {
		s.t.Errorf("got %+v", verified)
	}
}
