package main

import (
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/provider/smpp/smpptest"
)

// TestReceiptsFindWhatAnOperatorSettled: a carrier takes messages and answers for none; its
// receipts carry nothing but its own ids, which nobody knows. An operator reads them in the
// carrier's log.
func TestReceiptsFindWhatAnOperatorSettled(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	s := newStage(t, plot{
		channels: []channel{{
			name: "silent", weight: "1", document: "receipts: {within: 40s}",
			behaviour: smpptest.Behaviour{
				DropEvery: 1, Receipts: true, ReceiptDelay: 10 * time.Millisecond,
			},
		}},
		settings: map[string]string{"SEND_TIMEOUT": "1s"},
	})
	s.run("dispatcher").says(t, `"phase":"bound"`)
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
	eventually(t, stepTimeout, "the receipts have been found", func() bool {
		return s.tally()["delivered"] == 2
	})
	s.checkStatuses()
}
