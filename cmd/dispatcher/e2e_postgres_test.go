package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
)

// TestPostgresStoppedAndRestarted: without its database the dispatcher sends nothing. When the
// database is back, it sends everything.
func TestPostgresStoppedAndRestarted(t *testing.T) {
	t.Parallel()
	n, outage := tier.Size(240, 6_000), time.Duration(tier.Size(3, 10))*time.Second
	const mayBeClaimed, sendTimeout = 50, 5 * time.Second
	server := ledgertest.Server(t,
		map[string]string{"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"})
	// The channels together admit so few a second that the outage falls into the middle.
	rate := n / tier.Size(4, 10)
	s := newStage(t, stageConfig{
		postgres: server.URL(),
		channels: threeChannels(limitPerSecond(rate/4), limitPerSecond(rate*15/100),
			limitPerSecond(rate*60/100)),
		settings: map[string]string{
			"MAX_UNSETTLED": "50", "SEND_TIMEOUT": sendTimeout.String(), "POSTGRES_MAX_CONNS": "4",
		},
	})
	processes := s.runAll(2)
	s.joined(len(processes))
	ids := s.publish("bulk", messages("postgres", n))
	tier.Within(t, stepTimeout, "a quarter of the messages are submitted", func() bool {
		return s.submitted() > n/4
	})

	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	await(t.Context(), outage)
	restarted := time.Now()
	during, last := 0, stopped
	for _, submit := range s.submits() {
		if submit.At.After(stopped) {
			during, last = during+1, submit.At
		}
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d submits, the last %s into an outage of %s", during,
		last.Sub(stopped).Round(time.Millisecond), restarted.Sub(stopped).Round(time.Millisecond))
	if most := len(processes) * mayBeClaimed; during > most {
		t.Errorf("%d submits while the database was away; %d could have been claimed before",
			during, most)
	}
	if last.Sub(stopped) > sendTimeout {
		t.Error("a submit left after the send deadline of everything that was claimed")
	}

	s.settled(n)
	s.committed("bulk")
	s.checkNoneTwice()
	s.checkAllArrived(ids)
	s.checkLimits()
	s.checkStatuses()
	accepted := s.count(`select count(*) from audit.messages where state = 'accepted'`)
	if accepted != int64(n) {
		t.Errorf("%d of %d messages are accepted: %v", accepted, n, s.tally())
	}
	for _, p := range processes {
		if !p.running() {
			t.Errorf("%s ended", p.name)
		}
		p.checkOneOutage(t, "PostgreSQL")
	}
}

// checkOneOutage expects one warning in the log and one line that the outage is over. The reminders
// of outages longer than a minute are warnings with their duration. Warnings about other things do
// not count: a broker on a busy machine may be slow.
func (p *process) checkOneOutage(t testing.TB, what string) {
	t.Helper()
	var warnings, back []string
	for line := range strings.Lines(p.out.String()) {
		warning := strings.Contains(line, `"level":"warn"`) &&
			strings.Contains(line, `"what":"`+what+`"`) || strings.Contains(line, `"level":"error"`)
		switch {
		case warning && !strings.Contains(line, `"for":"`):
			warnings = append(warnings, line)
		case strings.Contains(line, `"level":"info"`) &&
			strings.Contains(line, what+" is back after "):
			back = append(back, line)
		}
	}
	if len(warnings) != 1 || len(back) != 1 || !strings.Contains(warnings[0], `"what":"`+what+`"`) {
		t.Errorf("%s: got warnings\n%s\nand end lines\n%s", p.name, strings.Join(warnings, ""),
			strings.Join(back, ""))
	}
}

// tally counts the messages by state.
func (s *stage) tally() map[string]int {
	s.t.Helper()
	counts := map[string]int{}
	for _, state := range s.states() {
		counts[state]++
	}
	return counts
}

// await sleeps, or returns early when the context ends.
func await(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
