package main

import (
	"context"
	"maps"
	"testing"

	"github.com/jackc/pgx/v5"

	"dispatcher/config/tier"
	"dispatcher/ledger"
)

// TestReceiptsThatAKilledProcessHadNotStoredComeAgain: a lock keeps receipts from being stored. A
// process is killed with receipts in memory and in an open transaction. The carrier got no
// response, so it sends them all to the next process, and every message gets its receipt.
func TestReceiptsThatAKilledProcessHadNotStoredComeAgain(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const n = 600
	s := newStage(t,
		stageConfig{
			channels: []channel{
				{name: "a", weight: "1", document: "receipts: {within: 1h}", behaviour: quick()},
			},
		})
	p := s.runAll(1)[0]
	ids := s.publish("bulk", short("killed", n))
	accepted, delivered := map[string]string{}, map[string]string{}
	for _, id := range ids {
		accepted[id], delivered[id] = string(ledger.Accepted), string(ledger.Delivered)
	}
	tier.Within(t, stepTimeout, "every message is accepted", func() bool {
		return maps.Equal(s.states(), accepted)
	})

	release := s.holdReceipts()
	carrier := s.carriers["a"]
	for _, submit := range carrier.Submits() {
		carrier.SendReceipt(submit, "DELIVRD")
	}
	const waiting = `
		select count(*) from pg_stat_activity where datname = current_database()
		and wait_event_type = 'Lock'`
	tier.Within(t, stepTimeout, "all receipts are with the process, and it tries to store some",
		func() bool {
			return carrier.Stats().ReceiptsSent >= uint64(n) && s.count(waiting) > 0
		})
	p.kill(t)
	if taken := carrier.Stats().ReceiptsTaken; taken != 0 {
		t.Errorf("%d receipts were acknowledged and not stored", taken)
	}
	// Otherwise the dead process's statement would be carried out when the lock is released.
	s.execute(`
		select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
		and wait_event_type = 'Lock'`)
	release()
	if got := s.states(); !maps.Equal(got, accepted) {
		t.Errorf("got stored receipts: %v", got)
	}

	s.runAll(1)
	tier.Within(t, stepTimeout, "every message is delivered", func() bool {
		return maps.Equal(s.states(), delivered)
	})
	tier.Within(t, stepTimeout, "every receipt is acknowledged", func() bool {
		return carrier.Stats().ReceiptsTaken == uint64(n)
	})
	s.checkNoneTwice()
}

// holdReceipts locks the table of receipts against writes until release is called.
func (s *stage) holdReceipts() (release func()) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.postgres)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.Begin(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = tx.Exec(s.t.Context(), `lock table dispatcher.receipts in share row exclusive mode`)
	if err != nil {
		s.t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(s.t.Context()); err != nil {
			s.t.Error(err)
		}
	}
}
