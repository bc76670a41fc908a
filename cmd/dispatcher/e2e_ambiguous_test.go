package main

import (
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/provider/smpp/smpptest"
)

// TestReceiptsFindWhatAnOperatorSettled: a carrier accepts messages and answers none. Its receipts
// have only its own ids, which the dispatcher does not know. An operator reads the ids in the
// carrier's log and settles the messages with them.
func TestReceiptsFindWhatAnOperatorSettled(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	s := newStage(t, stageConfig{
		channels: []channel{{
			name: "silent", weight: "1", document: "receipts: {within: 40s}",
			behaviour: smpptest.Behaviour{
				DropEvery: 1, Receipts: true, ReceiptDelay: 10 * time.Millisecond,
			},
		}},
		settings: map[string]string{"SEND_TIMEOUT": "1s"},
	})
	s.run("dispatcher").awaitOutput(t, `"phase":"bound"`)
	ids := s.publish("bulk", messages("lost", 2))
	s.settled(2)
	for _, id := range ids {
		if state := s.states()[id]; state != "unknown" {
			t.Fatalf("%s is %s", id, state)
		}
	}
	for _, submit := range s.submits() {
		s.command("ambiguous", "settle", idOf(submit.Text), "--as", "taken", "--reference",
			submit.MessageID, "--reason", "in the carrier's log", "--author", "ann")
	}
	tier.Within(t, stepTimeout, "the receipts have been found", func() bool {
		return s.tally()["delivered"] == 2
	})
	s.checkStatuses()
}
