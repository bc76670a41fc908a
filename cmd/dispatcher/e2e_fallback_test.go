package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config/tier"
	"dispatcher/provider/smpp/smpptest"
)

// limitPerSecond is a channel's limit for the routing document.
func limitPerSecond(n int) string { return fmt.Sprintf("limits: [{window: 1s, max: %d}]", n) }

// TestFallbackOrderAndReasons: four of six channels fail, each in another way. All messages are
// sent over the other two in the order of their load, the record has the reasons, and the first
// choices keep the agreed shares.
func TestFallbackOrderAndReasons(t *testing.T) {
	t.Parallel()
	n := tier.Size(400, 3_000)
	slow := smpptest.Behaviour{Latency: 20 * time.Millisecond, Jitter: 20 * time.Millisecond}
	channels := []channel{
		{
			name: "limited", weight: "20", behaviour: slow,
			document: "limits: [{window: 1d, max: 10}]",
		},
		{name: "broken", weight: "15", behaviour: smpptest.Behaviour{ErrorEvery: 1}},
		{name: "throttling", weight: "15", behaviour: smpptest.Behaviour{Throttle: true}},
		{name: "down", weight: "20", down: true},
		{
			name: "small", weight: "10", behaviour: slow,
			document: "capacity: 20, active: {max: 40}",
		},
		{
			name: "large", weight: "20", behaviour: slow,
			document: "capacity: 60, active: {max: 120}",
		},
	}
	s := newStage(t, stageConfig{channels: channels})
	s.runAll(1)
	s.bound(1)
	all := messages("fallback", n)
	ids := s.publish("bulk", all[:n/2])
	s.settled(n / 2) // by then the breakers are open
	ids = append(ids, s.publish("bulk", all[n/2:])...)
	s.settled(n)

	s.checkNoneTwice()
	s.checkAllArrived(ids)
	s.checkLimits()
	if got := s.tally()["accepted"]; got != n {
		t.Errorf("%d of %d messages are accepted: %v", got, n, s.tally())
	}
	s.checkRankings(map[string][]string{
		"limited":    {"no_slot"},
		"broken":     {"breaker_open", "already_tried"},
		"throttling": {"throttled"},
		"down":       {"connecting"},
		"small":      {"no_active", "connecting"},
		"large":      {"no_active", "connecting"},
	})
	s.checkShareOf(channels, n)
	s.checkReasons()
	s.checkVerified(n)
	carried := s.carriers["limited"].Stats().Accepted
	if carried > 12 { // ten messages, of which a few have two parts
		t.Errorf("the channel at its limit carried %d parts", carried)
	}
}

// checkRankings reads the ranking of each fallback. It must hold the first choice with its reason,
// then all others by ascending load ratio (ties by the longest idle), each with one of its reasons,
// up to the channel that accepted the message. The first reason of each failing channel must occur.
// Any channel may be at its in-flight bound for a moment, because four of them send their messages
// to the others.
func (s *stage) checkRankings(reasons map[string][]string) {
	s.t.Helper()
	type choice struct {
		ID, First, Channel string
		Ranking            []byte
	}
	seen := map[string]bool{}
	for _, c := range query(s.t, s.postgres, pgx.RowToStructByPos[choice], `
		select m.id, m.first_choice, a.channel, a.ranking::text::bytea
		from dispatcher.all_attempts a join dispatcher.messages m on m.seq = a.message_seq
		where a.reason = 'fallback'`) {
		var r decide.Ranking
		if err := json.Unmarshal(c.Ranking, &r); err != nil {
			s.t.Fatal(err)
		}
		first, chosen := r.Candidates[0], r.Chosen()
		if first.Channel != c.First || chosen < 1 || r.Candidates[chosen].Channel != c.Channel ||
			len(r.Candidates) != len(reasons) {
			s.t.Fatalf("message %s went from %s to %s, the record is %s", c.ID, c.First, c.Channel,
				c.Ranking)
		}
		if !slices.IsSortedFunc(r.Candidates[1:], byLoad) {
			s.t.Errorf("%s: candidates are not in the order of their load: %s", c.ID, c.Ranking)
		}
		for _, candidate := range r.Candidates[:chosen] {
			seen[candidate.Channel+" "+candidate.Reason] = true
			full := candidate.Reason == decide.InFlight || candidate.Reason == decide.Bulkhead
			if !full && !slices.Contains(reasons[candidate.Channel], candidate.Reason) {
				s.t.Errorf("channel %s was excluded with reason %q", candidate.Channel, candidate.Reason)
			}
		}
	}
	for _, name := range []string{"limited", "broken", "throttling", "down"} {
		if want := name + " " + reasons[name][0]; !seen[want] {
			s.t.Errorf("no record has the reason %q", want)
		}
	}
}

// byLoad orders candidates as the ranking must: by active/capacity as a fraction, then by the
// earlier last assignment.
func byLoad(a, b decide.Ranked) int {
	return cmp.Or(
		cmp.Compare(a.Active*b.Capacity, b.Active*a.Capacity),
		idleSince(a).Compare(idleSince(b)),
	)
}

func idleSince(r decide.Ranked) time.Time { return r.LastAssigned.Time() }

// checkShareOf compares the first choices with the weights of the channels.
func (s *stage) checkShareOf(channels []channel, n int) {
	s.t.Helper()
	var counts []int64
	var expected []float64
	for _, c := range channels {
		var weight float64
		if _, err := fmt.Sscan(c.weight, &weight); err != nil {
			s.t.Fatal(err)
		}
		counts = append(counts,
			s.count(`select count(*) from audit.messages where first_choice = $1`, c.name))
		expected = append(expected, weight/100*float64(n))
	}
	fit := report.FitOf(report.Sample{Counts: counts, Expected: expected})
	s.t.Logf("first choices %v, expected %v: %s (p = %.3f)", counts, expected, fit.Verdict, fit.P)
	if fit.Verdict != report.Fair {
		s.t.Errorf("got first choices %v, want shares %v: %s (p = %g)", counts, expected,
			fit.Verdict, fit.P)
	}
}

// checkReasons checks the reason of each attempt: on another channel than the first choice it is a
// fallback. On the first choice, the first attempt is neither, and a later one is a retry.
func (s *stage) checkReasons() {
	s.t.Helper()
	n := s.count(`
		select count(*) from audit.attempts a join audit.messages m on m.id = a.message_id
		where a.reason <> case when a.channel <> m.first_choice then 'fallback' when a.attempt = 1
		then 'first_choice' else 'retry' end`)
	if n > 0 {
		s.t.Errorf("%d attempts have a wrong reason", n)
	}
}
