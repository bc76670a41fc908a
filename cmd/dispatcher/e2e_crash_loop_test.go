package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config/tier"
)

// TestACrashLoopOfOneProcessLeavesTheOthersAlone: two processes work while a third is killed and
// restarted. After its first crash it gets its partitions back, and the others keep theirs. After
// further crashes it joins no group for a while, so that its partitions go to the others.
func TestACrashLoopOfOneProcessLeavesTheOthersAlone(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	s := newStage(t, stageConfig{settings: map[string]string{"SEND_TIMEOUT": hasty}})
	processes := s.runAll(2)
	s.joined(2)
	third := s.run("crashes")
	third.awaitOutput(t, "dispatcher is running")
	s.joined(3)
	before := s.assignments()
	const pauses = "taking no messages for now, while others do"
	all := messages("loop", 600)
	crashes := 0
	for ; crashes < 2; crashes++ {
		killed := time.Now()
		s.crashEarly(third)
		third = s.run("crashes")
		third.awaitOutput(t, "dispatcher is running")
		restarted := time.Since(killed)
		s.publish("bulk", part(all, crashes))
		if crashes == 0 {
			if strings.Contains(third.out.String(), pauses) {
				t.Error("the process pauses after a single crash")
			}
			tier.Within(t, stepTimeout, "it sends again", func() bool {
				return s.count(`
					select count(*) from dispatcher.all_attempts where instance = (select max(id)
					from dispatcher.instances)`) > 0
			})
			tier.Within(t, stepTimeout, "each process has the partitions that it had", func() bool {
				// On a machine that is held up for longer, its session had ended.
				return restarted > 4*time.Second || cmp.Equal(before, s.assignments())
			})
		}
	}
	third.awaitOutput(t, pauses)
	s.crashEarly(third) // from now on it does not join
	// Its partitions go to the others when its session ends.
	s.joined(2)
	third = s.run("crashes")
	third.awaitOutput(t, `"crashes":3`)
	s.publish("bulk", part(all, 2))
	s.settled(len(all))
	s.checkNoneTwice()
	for _, p := range processes {
		p.stop(t)
	}
	// Without other members it does not wait.
	last := messages("alone", 20)
	s.publish("bulk", last)
	s.settled(len(all) + len(last))
}

// crashEarly kills the process that was started last. Its end counts as an early one, however long
// a busy machine let it work.
func (s *stage) crashEarly(p *process) {
	s.t.Helper()
	p.kill(s.t)
	s.execute(`
		update dispatcher.identities set working_from = clock_timestamp() + interval '1 minute'
		where number = (select number from dispatcher.identities order by taken_at desc limit 1)`)
}

// part returns the i-th third of the messages.
func part(all []envelope.Message, i int) []envelope.Message {
	n := len(all) / 3
	return all[i*n : (i+1)*n]
}

// assignments returns the partitions of the bulk lane of each process, by instance id.
func (s *stage) assignments() map[string]map[int32]bool {
	s.t.Helper()
	group := s.group("bulk")
	groups, err := kadm.NewClient(s.client).DescribeGroups(s.t.Context(), group)
	if err != nil {
		s.t.Fatal(err)
	}
	out := map[string]map[int32]bool{}
	for _, member := range groups[group].Members {
		name := member.MemberID
		if member.InstanceID != nil {
			name = *member.InstanceID
		}
		out[name] = map[int32]bool{}
		if assigned, ok := member.Assigned.AsConsumer(); ok {
			for _, topic := range assigned.Topics {
				for _, p := range topic.Partitions {
					out[name][p] = true
				}
			}
		}
	}
	return out
}
