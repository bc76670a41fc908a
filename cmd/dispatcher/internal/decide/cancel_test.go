package decide

import (
	"strings"
	"testing"
	"time"

	"dispatcher/ledger"
)

func TestOnlyWhatHasNotLeftCanBeCancelled(t *testing.T) {
	t.Parallel()
	attempt := func(outcome string) []ledger.AttemptRecord {
		return []ledger.AttemptRecord{{
			Attempt: ledger.Attempt{Number: 1, Channel: "a"}, Outcome: outcome,
		}}
	}
	for name, c := range map[string]struct {
		message  ledger.Message
		attempts []ledger.AttemptRecord
		why      string
	}{
		"scheduled": {message: ledger.Message{State: ledger.Scheduled}},
		"waiting":   {message: ledger.Message{State: ledger.Waiting}},
		"refused":   {ledger.Message{State: ledger.Retry}, attempt("refused"), ""},
		"sending":   {ledger.Message{State: ledger.Sending}, attempt(""), "on its way to a"},
		"accepted":  {ledger.Message{State: ledger.Accepted}, attempt("accepted"), "taken by a"},
		"resent":    {ledger.Message{State: ledger.Retry}, attempt("unknown"), "may have been taken"},
		"unknown":   {ledger.Message{State: ledger.Unknown}, attempt("unknown"), "may have been taken"},
		"repeated": {
			ledger.Message{State: ledger.Retry, SameKey: "k"}, attempt("unknown"), "may have been",
		},
		"in part": {
			ledger.Message{State: ledger.Retry, PartsLeft: []int{2}, Pinned: "a"},
			attempt("refused"), "taken by a in part",
		},
		"twice": {
			message: ledger.Message{State: ledger.Failed, Reason: ledger.ReasonCancelled},
			why:     "cancelled already",
		},
		"dead": {message: ledger.Message{State: ledger.Dead}, why: "has ended: it is dead"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.message.ID, c.message.Attempts = "m", len(c.attempts)
			c.message.Envelope = []byte(`{"id":"m","to":"+447700900123","text":"x","metadata":{"k":"v"}}`)
			got, why := Cancel(&ledger.Record{Message: c.message, Attempts: c.attempts}, time.Now())
			if (c.why == "") != (why == "") || !strings.Contains(why, c.why) {
				t.Fatalf("%q, want %q", why, c.why)
			}
			if why != "" {
				return
			}
			event := string(got.Notice.Value)
			for _, want := range []string{
				`"state":"failed"`, `"reason":"cancelled"`, `"metadata":{"k":"v"}`,
			} {
				if !strings.Contains(event, want) {
					t.Errorf("no %s in %s", want, event)
				}
			}
		})
	}
}

// TestAMessageThatWasCancelledBeforeItCameIsNotSent, now or later, and takes nothing of a limit.
func TestAMessageThatWasCancelledBeforeItCameIsNotSent(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	jobs := jobsNamed("m", 3)
	jobs[1].Message.SendAt = noon.Add(time.Hour)
	for i := range jobs {
		jobs[i].Produced = noon
	}
	plan := NewPlan(w.routing, testKeys, noon, jobs)
	seen := *w.seen
	seen.Messages, seen.Intakes = make([]ledger.Message, 3), make([]ledger.Intake, 3)
	for i := range seen.Messages {
		seen.Messages[i] = ledger.Message{Seq: int64(i + 1), ReceivedAt: noon}
	}
	seen.CancelledBefore = map[int]bool{0: true, 1: true}
	decided, err := Batch(plan, &seen, &Snapshot{Unready: w.unready})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []ledger.State{ledger.Failed, ledger.Failed, ledger.Sending} {
		if d := decided.Decisions[i]; d.State != want ||
			want == ledger.Failed && d.Reason != ledger.ReasonCancelled {
			t.Errorf("message %d: %s %s, want %s", i, d.State, d.Reason, want)
		}
	}
	if n := len(decided.Attempts); n != 1 {
		t.Errorf("%d attempts", n)
	}
	for i, want := range []string{`"reason":"cancelled"`, `"reason":"cancelled"`, `"state":"sending"`} {
		if got := string(decided.Notices()[i].Value); !strings.Contains(got, want) {
			t.Errorf("event %d: %s", i, got)
		}
	}
}
