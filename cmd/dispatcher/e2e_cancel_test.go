package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/config/tier"
)

// TestACancelledMessageIsNeverSent: messages are scheduled and the process is killed. Some messages
// are cancelled while no process runs, others while the next process runs. All others arrive once.
func TestACancelledMessageIsNeverSent(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	s := newStage(t, stageConfig{})
	p := s.run("dispatcher 1")
	p.awaitOutput(t, "dispatcher is running")
	const n = 30
	all := short("cancel", n)
	for i := range all {
		all[i].SendAt = s.now().Add(time.Hour)
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
	s.execute(`update dispatcher.messages set next_at = now() where state = 'scheduled'`)
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
	text := strings.Join(strings.Fields(s.command("explain", ids[0])), " ")
	if !strings.Contains(text, "It was cancelled before it left") {
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

// TestACancellationOvertakesItsMessage: a tenth of the messages are cancelled on the control topic
// before they are published, while two processes send what came before. None of these is sent,
// every other one is sent once, and the choices can be derived again.
func TestACancellationOvertakesItsMessage(t *testing.T) {
	t.Parallel()
	s := newStage(t, stageConfig{})
	s.settings["CONTROL_TOPIC"] = s.topic("control")
	createTopics(t, s.client, s.topic("control"))
	for _, name := range []string{"dispatcher 1", "dispatcher 2"} {
		s.run(name).awaitOutput(t, "dispatcher is running")
	}
	n := tier.Size(150, 3000)
	all := short("overtake", n)
	ids := s.publish("bulk", all[:n/3])
	var withdrawn []string
	for i := n / 3; i < n; i += 10 {
		withdrawn = append(withdrawn, all[i].ID)
		record := &kgo.Record{
			Topic: s.topic("control"), Value: fmt.Appendf(nil, `{"cancel":%q}`, all[i].ID),
		}
		if err := s.client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	tier.Within(t, stepTimeout, "the cancellations wait for their messages", func() bool {
		return s.count(`select count(*) from dispatcher.pending_cancellations`) ==
			int64(len(withdrawn))
	})
	ids = append(ids, s.publish("bulk", all[n/3:])...)
	s.settled(len(ids))
	for _, submit := range s.submits() {
		if slices.Contains(withdrawn, idOf(submit.Text)) {
			t.Errorf("cancelled message %s was sent", idOf(submit.Text))
		}
	}
	if got := s.count(`select count(*) from dispatcher.messages
		where state = 'failed' and reason = 'cancelled' and id = any($1)`, withdrawn); got !=
		int64(len(withdrawn)) {
		t.Errorf("%d of %d are cancelled", got, len(withdrawn))
	}
	// A record that is read twice may come back just after its message ended, see Arrived.
	tier.Within(t, stepTimeout, "no cancellation is left", func() bool {
		return s.count(`select count(*) from dispatcher.pending_cancellations`) == 0
	})
	s.checkNoneTwice()
	s.checkStatuses()
	s.command("audit", "verify")
}
