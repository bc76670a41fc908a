package main

import (
	"sync/atomic"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
)

// TestADatabaseASecondAwaySlowsTheWorkDown: while a process runs, each statement begins to take a
// second. Messages are still sent, with and without a limit, and none without a slot. It runs
// alone, as TestSlowDatabaseKeepsTheLimits does.
func TestADatabaseASecondAwaySlowsTheWorkDown(t *testing.T) {
	tier.LongOnly(t)
	const perSecond, n = 20, 60
	for name, limits := range map[string]string{
		"without a limit": "", "with a limit": limitPerSecond(perSecond),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // with the other, and with no other story
			server := ledgertest.Server(t, nil)
			s := newStage(t, stageConfig{
				postgres: server.URL(),
				channels: []channel{{name: "a", weight: "1", behaviour: quick(), document: limits}},
			})
			var half atomic.Int64
			far := distance{grows: &half}.open(t, hostOf(t, server.URL()))
			p := s.runWith("dispatcher", map[string]string{
				"POSTGRES_URL": withHost(t, server.URL(), far), "POSTGRES_MAX_CONNS": "8",
				"SEND_TIMEOUT": "10s", "DEAD_AFTER": "6s",
			})
			p.awaitOutput(t, "dispatcher is running")
			s.joined(1)
			half.Store(int64(500 * time.Millisecond))
			t.Cleanup(func() { half.Store(0) }) // so that the stop is not slow
			slow := s.now()
			tier.Within(t, stepTimeout, "heartbeats go on", func() bool {
				return s.count(`
					select count(*) from dispatcher.instances where last_seen > $1
					and last_seen - beating_since > interval '8 s'`,
					slow.Add(10*time.Second)) > 0
			})
			stalls := watchStalls(t)
			ids := s.publish("bulk", short("far", n))
			began := time.Now()
			s.settled(n)
			t.Logf("all were settled after %s, %d attempts were late",
				time.Since(began).Round(100*time.Millisecond),
				s.count(`select count(*) from audit.attempts where provider_code = 'late'`))

			s.checkNoneTwice()
			s.checkAllArrived(ids)
			s.checkWindows()
			most := mostInASecond(s.arrived("a"))
			if limits != "" && most > perSecond+int(perSecond*stalls()/time.Second) {
				t.Errorf("got %d submits in one second, the limit is %d", most, perSecond)
			}
		})
	}
}
