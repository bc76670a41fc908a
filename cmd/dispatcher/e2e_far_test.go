package main

import (
	"sync/atomic"
	"testing"
	"time"

	"dispatcher/ledger/ledgertest"
)

// TestADatabaseASecondAwaySlowsTheWorkDown: while a process runs, each statement begins to take a
// second. Messages leave all the same, with and without a limit, and none leaves without a slot. It
// runs alone, as TestSlowDatabaseKeepsTheLimits does.
func TestADatabaseASecondAwaySlowsTheWorkDown(t *testing.T) {
	const perSecond = 20
	server := ledgertest.Server(t, nil)
	s := newStage(t, plot{
		postgres: server.URL(),
		channels: []channel{
			{name: "limited", weight: "1", behaviour: quick(), document: limitPerSecond(perSecond)},
			{name: "free", weight: "1", behaviour: quick()},
		},
	})
	var half atomic.Int64
	far := distance{grows: &half}.open(t, hostOf(t, server.URL()))
	p := s.runWith("dispatcher", map[string]string{
		"POSTGRES_URL": withHost(t, server.URL(), far), "POSTGRES_MAX_CONNS": "8",
		"SEND_TIMEOUT": "10s", "DEAD_AFTER": "6s",
	})
	p.says(t, "dispatcher is running")
	s.joined(1)
	n := 5 * perSecond
	half.Store(int64(500 * time.Millisecond))
	t.Cleanup(func() { half.Store(0) }) // the stop need not be slow
	stalls := watchStalls(t)
	ids := s.publish("bulk", short("far", n))
	began := time.Now()
	for _, channel := range []string{"free", "limited"} {
		eventually(t, 2*time.Minute, "half of the messages of "+channel+" are accepted", func() bool {
			return s.count(`select count(*) from audit.attempts where outcome = 'accepted' and channel = $1`, channel) >= int64(n/4)
		})
		t.Logf("half of those of %s were accepted after %s", channel, time.Since(began).Round(100*time.Millisecond))
	}
	s.settled(n, 3*time.Minute)
	t.Logf("all were settled after %s, %d attempts were late", time.Since(began).Round(100*time.Millisecond),
		s.count(`select count(*) from audit.attempts where provider_code = 'late'`))

	s.checkNoneTwice()
	s.checkAllArrived(ids)
	s.checkWindows()
	if most := mostInASecond(s.arrived("limited")); most > perSecond+int(perSecond*stalls()/time.Second) {
		t.Errorf("%d submits in one second, the limit is %d", most, perSecond)
	}
}
