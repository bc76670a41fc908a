package main

import (
	"strings"
	"testing"
	"time"

	"dispatcher/config/tier"
)

// TestACancelledMessageIsNeverSent: messages are scheduled and the process is killed. Some messages
// are cancelled while no process runs, others while the next process runs. All others arrive once.
func TestACancelledMessageIsNeverSent(t *testing.T) {
	t.Parallel()
	s := newStage(t, stageConfig{})
	p := s.run("dispatcher 1")
	p.awaitOutput(t, "dispatcher is running")
	const n = 30
	all := short("cancel", n)
	at := s.now().Add(20 * time.Second)
	for i := range all {
		all[i].SendAt = at
	}
	ids := s.publish("bulk", all)
	tier.Within(t, stepTimeout, "all are scheduled", func() bool {
		return s.tally()["scheduled"] == n
	})
	p.kill(t)
	cancel := func(some []string) {
		for _, id := range some {
			s.command("cancel", id, "--reason", "the wrong day", "--author", "ann")
		}
	}
	cancel(ids[:3])
	s.run("dispatcher 2").awaitOutput(t, "dispatcher is running")
	list := write(t, "ids.txt", strings.Join(ids[3:6], "\r\n")+"\n\nno-such-id\n")
	many := s.ask(nil, "cancel", "--file", list, "--reason", "the wrong day", "--author", "ann")
	if many.code != exitFailed || !strings.HasSuffix(many.out, "3 messages are cancelled; 1 is not.\n") ||
		!strings.Contains(many.out, "message no-such-id is not in the ledger") {
		t.Errorf("got %+v", many)
	}
	s.settled(n)
	for _, submit := range s.submits() {
		for _, id := range ids[:6] {
			if idOf(submit.Text) == id {
				t.Errorf("cancelled message %s was sent", id)
			}
		}
	}
	if tally := s.tally(); tally["failed"] != 6 || tally["accepted"] != n-6 {
		t.Errorf("got %v", tally)
	}
	s.checkNoneTwice()
	s.checkStatuses()
	if text := s.command("explain", ids[0]); !strings.Contains(text, "operator cancelled it") {
		t.Errorf("got from explain: %s", text)
	}
	again := s.ask(nil, "cancel", ids[6], "--reason", "late")
	if again.code != exitFailed || !strings.Contains(again.err, "has been taken by") {
		t.Errorf("got %+v, want exit code %d and %q in the error", again, exitFailed, "has been taken by")
	}
	if got := queryOne[int](t, s.postgres, `select count(*) from dispatcher.operator_actions
		where author = 'ann' and action = 'cancel' and via = 'command'`); got != 6 {
		t.Errorf("got %d stored cancellations", got)
	}
}
