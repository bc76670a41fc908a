package main

import (
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
)

// TestAStandbyTakesOver: under traffic the primary of a pair is killed, and some time later its
// standby is promoted. Two processes have one URL with both hosts. Nothing is lost or sent twice,
// no limit is exceeded, and work resumes by itself.
func TestAStandbyTakesOver(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	takeOver(t, func(pair *ledgertest.Pair, _ *stage) { pair.Primary.Kill() },
		func(*ledgertest.Pair, *stage) {})
}

// TestAStandbyTakesOverFromAServerThatHangs: the primary is frozen, and comes back later without
// knowing of the promotion. It is the first host of the URL and accepts writes, but no process uses
// it.
func TestAStandbyTakesOverFromAServerThatHangs(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	var thaw func()
	var back time.Time
	s, pair := takeOver(t,
		func(pair *ledgertest.Pair, s *stage) { thaw = pair.Freeze(s.t) },
		func(pair *ledgertest.Pair, s *stage) {
			// A process that starts now finds the server that answers.
			s.run("dispatcher 3").awaitOutput(s.t, "dispatcher is running")
			thaw()
			back = time.Now()
			pair.Do(s.t, pair.Primary, `set synchronous_commit = local`,
				`alter system reset synchronous_standby_names`, `select pg_reload_conf()`)
			s.execute(cutOthers) // on the new primary: all processes look for a server again
		})
	n := queryOne[int64](s.t, pair.Primary.URL(),
		`select count(*) from audit.attempts where claimed_at > $1`, back)
	if n > 0 {
		t.Errorf("%d attempts were claimed on the old primary", n)
	}
}

// takeOver lets traffic run, calls end to take the primary away, promotes the standby a while
// later, and calls then once a part of the rest has been submitted.
func takeOver(t *testing.T, end, then func(*ledgertest.Pair, *stage)) (*stage, *ledgertest.Pair) {
	t.Helper()
	const n, outage = 3_000, 6 * time.Second
	pair := ledgertest.NewPair(t)
	if err := migrations.Migrate(t.Context(), pair.URL("")); err != nil {
		t.Fatal(err)
	}
	s := newStage(t, stageConfig{
		// For the queries of this test, which do not look for the primary themselves. A claim that hung
		// on the old primary may commit there when that server comes back; nothing reads it.
		postgres: pair.StandbyFirst("&target_session_attrs=read-write&connect_timeout=20"),
		channels: threeChannels(limitPerSecond(n/80), limitPerSecond(n/120), limitPerSecond(n/32)),
		settings: map[string]string{"POSTGRES_URL": pair.URL(""), "SEND_TIMEOUT": hasty},
	})
	processes := s.runAll(2)
	s.joined(len(processes))
	ids := s.publish("bulk", messages("standby", n))
	tier.Within(t, stepTimeout, "a fifth of the messages are submitted", func() bool {
		return s.submitted() > n/5
	})

	end(pair, s)
	begun := time.Now()
	await(t.Context(), outage)
	ended := time.Now()
	pair.Promote(t)
	claimed := s.count(`
		select count(*) from audit.attempts where claimed_at > $1 and claimed_at < $2`,
		begun.Add(time.Second), ended)
	if claimed > 0 {
		t.Errorf("%d attempts were claimed while no server accepted writes", claimed)
	}
	before := s.submitted()
	tier.Within(t, stepTimeout, "a tenth more is submitted", func() bool {
		return s.submitted() > before+n/10
	})
	t.Logf("a tenth more was submitted %s after the standby was promoted",
		time.Since(ended).Round(100*time.Millisecond))
	then(pair, s)
	s.postgres = pair.Standby.URL()

	s.settled(n)
	s.committed("bulk")
	s.checkNoneTwice()
	s.checkAllArrived(ids)
	s.checkLimits()
	s.checkStatuses()
	for _, p := range processes {
		if !p.running() {
			t.Errorf("%s ended", p.name)
		}
	}
	return s, pair
}
