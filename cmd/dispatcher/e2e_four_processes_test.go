package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/config/tier"
	"dispatcher/provider/smpp/smpptest"
	"dispatcher/selector"
)

// TestFourProcessesOneKilled: four processes share twelve partitions, limits bind, and one process
// is killed while it works.
func TestFourProcessesOneKilled(t *testing.T) {
	t.Parallel()
	n := tier.Size(450, 40_000)
	const mayBeLost = 100 // as many as one process may have claimed and not settled
	// Together the channels admit 250 a second, or 6 000 in the long tier.
	limited := func(perSecond int, unit string, active int) string {
		return fmt.Sprintf("limits: [{window: 1s, max: %d, unit: %s}, {window: 1m, max: 200000}], "+
			"active: {max: %d}", perSecond, unit, active)
	}
	channels := threeChannels(
		limited(tier.Size(60, 1500), "messages", 250),
		limited(tier.Size(40, 900), "segments", 150),
		limited(tier.Size(150, 3600), "messages", 500))
	// The carriers are so slow that every process has as many attempts in flight as it may. Its other
	// records are in memory and not in the ledger.
	for i := range channels {
		channels[i].settings = patient
		channels[i].behaviour = smpptest.Behaviour{
			Latency: time.Duration(tier.Size(200, 40)) * time.Millisecond,
			Jitter:  time.Duration(tier.Size(100, 40)) * time.Millisecond,
		}
	}
	s := newStage(t, stageConfig{
		channels: channels,
		settings: map[string]string{
			"MAX_UNSETTLED": strconv.Itoa(mayBeLost), "BATCH": strconv.Itoa(mayBeLost),
			"SEND_TIMEOUT": hasty,
		},
	})
	processes := s.runAll(4)
	s.joined(len(processes))
	all := messages("four", n)
	ids := s.publish("bulk", all[:n*2/3])
	tier.Within(t, 2*stepTimeout, "a third of the messages is submitted", func() bool {
		return s.submitted() > n/3
	})
	answer := s.holdAnswers()
	ids = append(ids, s.publish("bulk", all[n*2/3:])...)
	killed := s.killBusiest(processes)
	answer()
	s.settled(n)
	// The records that the killed process had not committed are read again when its session at the
	// broker has ended.
	s.committed("bulk")
	s.checkStatuses()
	tier.Within(t, stepTimeout, "the outbox is empty", func() bool {
		return s.count(`select count(*) from dispatcher.outbox`) == 0
	})
	for _, p := range processes {
		if p != killed {
			p.stop(t)
		}
	}

	s.checkNoneTwice()
	s.checkAllArrived(ids)
	s.checkUnknown(mayBeLost)
	s.checkLimits()
	s.checkShareOf(channels, n)
	s.checkChoices(ids)
	s.checkVerified(n)
}

// holdAnswers lets no carrier answer a submit until the result is called.
func (s *stage) holdAnswers() (answer func()) {
	hold := make(chan struct{})
	for _, c := range s.carriers {
		c.SetBehaviour(smpptest.Behaviour{Decide: func(smpptest.Submit) smpptest.Answer {
			return smpptest.Answer{Hold: hold}
		}})
	}
	return func() { close(hold) }
}

// killBusiest kills the process with the most attempts that cannot be settled any more: those that
// were claimed since no carrier answers. If no process can claim more, that is every attempt that
// is still open two seconds later: the carriers answered sooner.
func (s *stage) killBusiest(processes []*process) (killed *process) {
	s.t.Helper()
	since := queryOne[time.Time](s.t, s.postgres, `select clock_timestamp()`)
	tier.Within(s.t, stepTimeout, "a process has attempts under way", func() bool {
		busiest := query(s.t, s.postgres, pgx.RowTo[int64],
			`select instance from dispatcher.all_attempts where outcome is null
			  and (claimed_at > $1 or clock_timestamp() > $1 + interval '2 seconds')
			group by instance order by count(*) desc limit 1`, since)
		for _, p := range processes {
			if len(busiest) > 0 &&
				strings.Contains(p.out.String(), fmt.Sprintf(`"instance":%d,`, busiest[0])) {
				p.kill(s.t)
				killed = p
			}
		}
		return killed != nil
	})
	return killed
}

// checkUnknown: only the killed process leaves unknown attempts: at least one, and no more than it
// may have in flight.
func (s *stage) checkUnknown(most int64) {
	s.t.Helper()
	unknown := s.count(`select count(*) from audit.attempts where outcome = 'unknown'`)
	lost := s.count(`
		select count(*) from audit.attempts where outcome = 'unknown'
		and provider_code = 'instance_lost'`)
	s.t.Logf("%d attempts are unknown", unknown)
	if unknown != lost || lost > most || lost == 0 {
		s.t.Errorf("%d attempts are unknown, %d of them the killed process's, which may have %d "+
			"under way",
			unknown, lost, most)
	}
	n := s.count(`
		select count(distinct instance) from dispatcher.all_attempts where outcome = 'unknown'`)
	if n > 1 {
		s.t.Errorf("got unknown attempts of %d processes, want 1", n)
	}
	if n := s.count(`select count(*) from audit.attempts where outcome is null`); n > 0 {
		s.t.Errorf("%d attempts have no outcome", n)
	}
}

// checkChoices derives every first choice again from the id and the key: [0,24] a, [25,39] b,
// [40,99] c.
func (s *stage) checkChoices(ids []string) {
	s.t.Helper()
	key, err := selector.ParseKey(stageKey)
	if err != nil {
		s.t.Fatal(err)
	}
	drawer, chosen, wrong := selector.NewDrawer(key), s.firstChoices(), 0
	for _, id := range ids {
		want := "c"
		switch draw := drawer.Draw(id, 1, 100); {
		case draw < 25:
			want = "a"
		case draw < 40:
			want = "b"
		}
		if chosen[id] != want {
			wrong++
		}
	}
	if wrong > 0 {
		s.t.Errorf("%d of %d first choices differ from their draw", wrong, len(ids))
	}
}

// TestSameIDsPickTheSameChannels: the same ids, in a fresh database, with another number of
// processes and in another order, get the same first choices.
func TestSameIDsPickTheSameChannels(t *testing.T) {
	t.Parallel()
	n := tier.Size(300, 3_000)
	choices := make([]map[string]string, 2)
	for i := range choices {
		s := newStage(t, stageConfig{})
		processes := s.runAll(1 + i)
		all := messages("same", n)
		if i == 1 {
			for a, b := 0, len(all)-1; a < b; a, b = a+1, b-1 {
				all[a], all[b] = all[b], all[a]
			}
		}
		s.publish("bulk", all)
		s.settled(n)
		choices[i] = s.firstChoices()
		for _, p := range processes {
			p.stop(t)
		}
	}
	for id, first := range choices[0] {
		if second := choices[1][id]; first != second {
			t.Fatalf("message %s: got first choice %s, then %s", id, first, second)
		}
	}
}
