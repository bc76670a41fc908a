package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config/tier"
	"dispatcher/provider/smpp/smpptest"
)

// receipt returns a receipt that is sent some time after the answer.
func receipt(state string, delay time.Duration, again ...smpptest.Receipt) *smpptest.Receipt {
	return &smpptest.Receipt{State: state, Delay: delay, Again: again}
}

// ways are the ways in which a carrier may send receipts, with the states that the message must
// have after sending. The number after the last dash of a message's id selects one.
var ways = []struct {
	name   string
	answer smpptest.Answer
	states string
	cause  string
}{
	{
		"in time",
		smpptest.Answer{Receipt: receipt("DELIVRD", 50*time.Millisecond)},
		"accepted delivered", "",
	},
	{
		"early",
		smpptest.Answer{
			Delay: 400 * time.Millisecond, Receipt: receipt("DELIVRD", -350*time.Millisecond),
		},
		"accepted delivered", "",
	},
	{
		"early and wrong",
		smpptest.Answer{
			Delay: 300 * time.Millisecond,
			Receipt: receipt("UNDELIV", -250*time.Millisecond,
				*receipt("DELIVRD", 1500*time.Millisecond)),
		},
		"accepted undelivered delivered", "",
	},
	{
		"never delivered",
		smpptest.Answer{Receipt: receipt("EXPIRED", 100*time.Millisecond)},
		"accepted undelivered", "expired",
	},
	{
		"without a word",
		smpptest.Answer{Receipt: &smpptest.Receipt{Never: true}},
		"accepted no_receipt", "",
	},
	{
		"twice and contradicting",
		smpptest.Answer{
			Receipt: receipt("DELIVRD", 20*time.Millisecond, *receipt("DELIVRD", 30*time.Millisecond),
				*receipt("UNDELIV", 200*time.Millisecond)),
		},
		"accepted delivered", "",
	},
	{
		"out of order", smpptest.Answer{Receipt: &smpptest.Receipt{
			State: "DELIVRD", Delay: 40 * time.Millisecond, Again: []smpptest.Receipt{
				{State: "ENROUTE", Intermediate: true, Delay: 300 * time.Millisecond},
			},
		}}, "accepted delivered", "",
	},
	// Two parts: the first is delivered. The second has no id in it and is not delivered.
	{
		"in part",
		smpptest.Answer{Receipt: receipt("DELIVRD", 100*time.Millisecond)},
		"accepted undelivered", "deleted",
	},
	{
		"too late",
		smpptest.Answer{Receipt: receipt("DELIVRD", 20*time.Second)},
		"accepted no_receipt delivered", "",
	},
}

// way returns the index in ways for a message.
func way(id string) int {
	n, err := strconv.Atoi(id[strings.LastIndexByte(id, '-')+1:])
	if err != nil {
		panic(err) // the test chose the id
	}
	return n % len(ways)
}

// contradicted returns the states without one that a later receipt corrected.
func contradicted(states string) string {
	return strings.Replace(states, "undelivered delivered", "delivered", 1)
}

// TestReceiptsComeToTheSameHoweverTheyCome: two processes send to a carrier whose receipts come
// early, late, twice, out of order, in part or never.
func TestReceiptsComeToTheSameHoweverTheyCome(t *testing.T) {
	t.Parallel()
	n := tier.Size(90, 450)
	s := newStage(t, stageConfig{channels: []channel{{
		name: "a", weight: "1", document: "active: {max: 400, until: receipt, hold: 1m}, " +
			"receipts: {within: 7s}",
		behaviour: smpptest.Behaviour{Decide: func(s smpptest.Submit) smpptest.Answer {
			if id := idOf(s.Text); id != "" {
				return ways[way(id)].answer
			}
			return smpptest.Answer{Receipt: receipt("DELETED", 10*time.Millisecond)}
		}},
	}}})
	processes := s.runAll(2)
	s.joined(len(processes))
	all := short("delivery", n)
	for i := range all {
		if ways[way(all[i].ID)].name == "in part" {
			all[i].Text += strings.Repeat(" Terms and conditions apply.", 5)
		}
	}
	ids := s.publish("bulk", all)
	want, last := map[string]string{}, map[string]string{}
	for _, id := range ids {
		want[id] = "sending " + ways[way(id)].states
		last[id] = want[id][strings.LastIndexByte(want[id], ' ')+1:]
	}
	tier.Within(t, stepTimeout, "every message has its last word", func() bool {
		return maps.Equal(s.states(), last)
	})

	events := s.statuses(last)
	for _, id := range ids {
		var states []string
		for _, e := range events[id] {
			if e.State != "waiting" { // for a bind or for a slot
				states = append(states, e.State)
			}
		}
		got := strings.Join(states, " ")
		// Two processes may store the receipts of two binds in another order, and one process may store
		// both receipts of a message at once.
		if contradicted(got) != contradicted(want[id]) {
			t.Errorf("%s (%s): got states %q, want %q", id, ways[way(id)].name, got, want[id])
		}
		if e := events[id][len(events[id])-1]; e.Cause != ways[way(id)].cause {
			t.Errorf("%s (%s): cause %q", id, ways[way(id)].name, e.Cause)
		}
	}
	s.checkDelivered(ids, last)
	tier.Within(t, stepTimeout, "every slot is free", func() bool {
		return s.count(`select coalesce(sum(active), 0)::bigint from audit.active`) == 0
	})
	s.checkNoneTwice()
	s.checkVerified(n)
}

// checkDelivered compares the audit views and the daily report with the messages' states.
func (s *stage) checkDelivered(ids []string, states map[string]string) {
	s.t.Helper()
	attempts := s.byID(`
		select message_id, concat_ws(' ', receipt_state, case when delivered_at is not null
		then 'at' end, receipt_cause) from audit.attempts`)
	parts := s.byID(`
		select message_id, string_agg(state, ' ' order by part) from audit.receipts group by 1`)
	counts := map[string]int64{}
	for _, id := range ids {
		state, how := states[id], ways[way(id)]
		counts[state]++
		want := state
		switch {
		case state == "delivered":
			want += " at"
		case how.cause != "":
			want += " " + how.cause
		}
		if attempts[id] != want {
			s.t.Errorf("%s (%s): got %q in audit.attempts, want %q", id, how.name, attempts[id], want)
		}
		wantState := map[string]string{"no_receipt": "expected"}[state]
		switch {
		case how.name == "in part":
			wantState = "delivered undelivered"
		case wantState == "":
			wantState = state
		}
		if parts[id] != wantState {
			s.t.Errorf("%s (%s): got %q in audit.receipts, want %q", id, how.name, parts[id], wantState)
		}
	}
	day := s.report()
	at := slices.IndexFunc(day.Rows, func(r report.DailyRow) bool { return r.Channel == "a" })
	r := day.Rows[at]
	if r.Accepted != int64(len(ids)) || r.Delivered != counts["delivered"] ||
		r.Undelivered != counts["undelivered"] || r.NoReceipt != counts["no_receipt"] {
		s.t.Errorf("got report %+v, want %v", r, counts)
	}
}
