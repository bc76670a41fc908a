package main

import (
	"strings"
	"testing"
	"time"
)

// TestACancelledMessageIsNeverSent: messages are scheduled, the process is killed, some of them are
// cancelled while nobody runs and some while the next process does. The others arrive once each.
func TestACancelledMessageIsNeverSent(t *testing.T) {
	t.Parallel()
	s := newStage(t, plot{})
	p := s.run("dispatcher 1")
	p.says(t, "dispatcher is running")
	const n = 30
	all := short("cancel", n)
	at := s.now().Add(20 * time.Second)
	for i := range all {
		all[i].SendAt = at
	}
	ids := s.publish("bulk", all)
	eventually(t, stepTimeout, "all are scheduled", func() bool {
		return s.tally()["scheduled"] == n
	})
	p.kill(t)
	cancel := func(some []string) {
		for _, id := range some {
			s.command("cancel", id, "--reason", "the wrong day", "--author", "ann")
		}
	}
	cancel(ids[:3])
	s.run("dispatcher 2").says(t, "dispatcher is running")
	cancel(ids[3:6])
	s.settled(n)
	for _, submit := range s.submits() {
		for _, id := range ids[:6] {
			if idOf(submit.Text) == id {
				t.Errorf("%s was cancelled, and sent", id)
			}
		}
	}
	if tally := s.tally(); tally["failed"] != 6 || tally["accepted"] != n-6 {
		t.Errorf("%v", tally)
	}
	s.checkNoneTwice()
	s.checkStatuses()
	if text := s.command("explain", ids[0]); !strings.Contains(text, "operator cancelled it") {
		t.Errorf("explain says %s", text)
	}
	again := s.ask(nil, "cancel", ids[6], "--reason", "late")
	if again.code != exitFailed || !strings.Contains(again.err, "has been taken by") {
		t.Errorf("%+v", again)
	}
	if got := queryOne[int](t, s.postgres, `select count(*) from audit.operator_actions
		where author = 'ann' and action = 'cancel'`); got != 6 {
		t.Errorf("%d cancellations are on record", got)
	}
}
