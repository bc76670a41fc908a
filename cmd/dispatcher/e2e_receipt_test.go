package main

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// mostOpen returns the largest number of spans that overlap. Each span is [from, to).
func mostOpen(spans [][2]time.Time) (most int) {
	type edge struct {
		at   time.Time
		step int
	}
	var edges []edge
	for _, s := range spans {
		edges = append(edges, edge{s[0], 1}, edge{s[1], -1})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.step - b.step
	})
	open := 0
	for _, e := range edges {
		open += e.step
		most = max(most, open)
	}
	return most
}

// TestSlotsAreHeldUntilTheReceipt: a carrier accepts at most five messages without receipt from two
// processes together, and counts them itself. Receipts free slots. For receipts that never come,
// the end of the hold does.
func TestSlotsAreHeldUntilTheReceipt(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const slots, hold = 5, 10 * time.Second
	const n = 150
	never := func(s smpptest.Submit) bool { return strings.HasSuffix(idOf(s.Text), "7") }
	s := newStage(t, stageConfig{channels: []channel{{
		name: "a", weight: "1", document: "active: {max: 5, until: receipt, hold: 10s}",
		behaviour: smpptest.Behaviour{Decide: func(s smpptest.Submit) smpptest.Answer {
			return smpptest.Answer{
				Delay:   2 * time.Millisecond,
				Receipt: &smpptest.Receipt{Never: never(s), Delay: 150 * time.Millisecond},
			}
		}},
	}}})
	processes := s.runAll(2)
	s.joined(len(processes))
	ids := s.publish("bulk", short("receipt", n))
	s.settled(n)
	s.checkNoneTwice()
	s.checkAllArrived(ids)

	var spans [][2]time.Time
	silent := 0
	for _, submit := range s.carriers["a"].Submits() {
		// The hold begins with the answer at the earliest, and nothing else frees the slot.
		end := submit.At.Add(hold)
		if never(submit) {
			silent++
		} else if !submit.Receipt {
			t.Fatal("a submit did not ask for its receipt")
		}
		if !submit.ReceiptAt.IsZero() && submit.ReceiptAt.Before(end) {
			end = submit.ReceiptAt
		}
		spans = append(spans, [2]time.Time{submit.At, end})
	}
	took := spans[len(spans)-1][0].Sub(spans[0][0])
	t.Logf("%d messages, %d of them without receipt, took %s", n, silent,
		took.Round(time.Millisecond))
	if most := mostOpen(spans); most != slots {
		t.Errorf("got %d messages without receipt at once, want %d", most, slots)
	}
	if silent <= slots {
		t.Errorf("only %d messages got no receipt: the end of their hold was not needed", silent)
	}
	if alone := time.Duration(n/slots) * hold; took > alone*3/4 {
		t.Errorf("took %s; with the ends of holds only it would take %s", took, alone)
	}
	tier.Within(t, stepTimeout, "every slot is free", func() bool {
		return s.count(`select coalesce(sum(active), 0)::bigint from audit.active`) == 0
	})
	s.checkVerified(n)
}

// TestReceiptsArePickedUpAfterARestart: the carrier keeps receipts that it cannot deliver while no
// process runs. Later they free their slots long before the hold ends.
func TestReceiptsArePickedUpAfterARestart(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const n = 10
	s := newStage(t, stageConfig{channels: []channel{{
		name: "a", weight: "1", document: "active: {max: 5, until: receipt, hold: 1h}",
		behaviour: quick(),
	}}})
	p := s.runAll(1)[0]
	s.publish("bulk", short("restart", n))
	carrier := s.carriers["a"]
	tier.Within(t, stepTimeout, "every slot is taken", func() bool {
		return s.count(`select count(*) from audit.attempts where outcome = 'accepted'`) == 5
	})
	p.stop(t)
	for _, submit := range carrier.Submits() {
		carrier.SendReceipt(submit, "UNDELIV")
	}
	s.runAll(1)
	tier.Within(t, stepTimeout, "the rest is sent", func() bool {
		return carrier.Stats().Submits == n
	})
	s.settled(n)
	s.checkNoneTwice()
	s.checkVerified(n)
}

// TestThrottledRetriesKeepTheirSlotUnderATicket: a carrier throttles each message once. With two
// slots, the third message begins only after one of the first two was retried and accepted: a retry
// keeps its active slot. It takes another slot of the limit per second, as the carrier counts it.
func TestThrottledRetriesKeepTheirSlotUnderATicket(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const slots = 2
	const n = 24
	var mu sync.Mutex
	seen := map[string]bool{}
	s := newStage(t, stageConfig{
		channels: []channel{{
			name: "a", weight: "1", document: "active: {max: 2, hold: 1m}, " + limitPerSecond(100),
			behaviour: smpptest.Behaviour{Decide: func(s smpptest.Submit) smpptest.Answer {
				mu.Lock()
				defer mu.Unlock()
				if id := idOf(s.Text); !seen[id] {
					seen[id] = true
					return smpptest.Answer{Status: pdu.StatusThrottled}
				}
				return smpptest.Answer{}
			}},
		}},
		route: "throttled: wait",
	})
	processes := s.runAll(2)
	s.joined(len(processes))
	ids := s.publish("bulk", short("ticket", n))
	s.settled(n)
	s.checkNoneTwice()
	s.checkAllArrived(ids)

	began, spans := map[string]time.Time{}, [][2]time.Time{}
	for _, submit := range s.carriers["a"].Submits() {
		if id := idOf(submit.Text); submit.Accepted() {
			spans = append(spans, [2]time.Time{began[id], submit.At})
		} else {
			began[id] = submit.At
		}
	}
	if most := mostOpen(spans); most > slots { // a busy machine may reach fewer
		t.Errorf("%d messages were in flight at once, from their first submit to the last, want "+
			"at most %d",
			most, slots)
	}
	got := s.count(`
		select count(*) from audit.attempts f join audit.attempts r on r.message_id = f.message_id
		where f.outcome = 'throttled' and r.outcome = 'accepted'
		and f.ticket_accepted_at = f.claimed_at
		  and r.ticket_accepted_at = f.claimed_at and r.ticket_last_check_in = r.claimed_at
		and r.claimed_at > f.claimed_at`)
	if got != int64(n) {
		t.Errorf("%d of %d messages were sent with the ticket of the throttled attempt", got, n)
	}
	got = s.count(`
		select coalesce(sum(granted), 0)::bigint - (select count(*) from audit.attempts)
		from audit.limit_windows where window_seconds = 1`)
	if got != 0 {
		t.Errorf("%d more slots per second were granted than there are attempts", got)
	}
	s.checkLimits()
	s.checkVerified(n)
}
