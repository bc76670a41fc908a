package main

import (
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config/tier"
	"dispatcher/provider/smpp/smpptest"
)

// TestOnlyALaneThatAllowsItSendsAgainAfterUnknown: a carrier accepts messages and never answers. An
// otp message is sent once more over another channel, and flagged. A bulk message is not.
func TestOnlyALaneThatAllowsItSendsAgainAfterUnknown(t *testing.T) {
	t.Parallel()
	s := newStage(t, stageConfig{
		channels: []channel{
			{
				name: "silent", weight: "100", behaviour: smpptest.Behaviour{DropEvery: 1},
				settings: "response_timeout: 5s",
			},
			{name: "good", weight: "0", behaviour: quick()}, // only ever a fallback
		},
		lanes: "  otp: {topics: [%s.otp], ambiguous: resend_once}\n  bulk: {topics: " +
			"[%s.bulk]}\n",
	})
	s.run("dispatcher")
	s.bound(1)
	codes := s.publish("otp", messages("code", 2))
	bulk := s.publish("bulk", messages("bulk", 2)) // four in all: the breaker opens at five
	s.settled(4)

	arrivals, states := s.arrivals(), s.states()
	for _, id := range codes {
		if arrivals[id] != 2 || states[id] != "accepted" {
			t.Errorf("otp message %s arrived %d times and is %s", id, arrivals[id], states[id])
		}
	}
	for _, id := range bulk {
		if arrivals[id] != 1 || states[id] != "unknown" {
			t.Errorf("bulk message %s arrived %d times and is %s", id, arrivals[id], states[id])
		}
	}
	n := s.count(`select count(*) from audit.messages where possible_duplicate and lane = 'otp'`)
	if n != 2 {
		t.Errorf("got %d of 2 otp messages flagged as possible duplicates", n)
	}
	n = s.count(`
		select count(*) from audit.attempts where reason = 'resend' and channel = 'good'`)
	if n != 2 {
		t.Errorf("got %d of 2 attempts with the reason resend", n)
	}
	s.checkStatuses()
}

// TestScheduledMessagesWaitAndLateOnesFail: nothing leaves before its send_at or after its
// expires_at.
func TestScheduledMessagesWaitAndLateOnesFail(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	s := newStage(t,
		stageConfig{
			channels: []channel{
				{name: "good", weight: "100", behaviour: quick()},
				{name: "down", weight: "0", down: true},
			},
		})
	s.run("dispatcher")
	s.joined(1)
	// A message that is read after its deadline is dead, not failed, and a busy machine reads late.
	at := time.Now().Add(time.Minute)
	all := messages("scheduled", 6)
	for i := range all {
		all[i].SendAt = at
	}
	for i := range all[:3] { // the carrier throttles until they have expired
		all[i].SendAt, all[i].ExpiresAt = time.Time{}, at
	}
	s.carriers["good"].SetBehaviour(smpptest.Behaviour{Throttle: true})
	s.publish("bulk", all)
	tier.Within(t, stepTimeout, "the first have expired", func() bool {
		return s.tally()["failed"] == 3
	})
	s.carriers["good"].SetBehaviour(quick())
	s.settled(len(all))

	for _, submit := range s.submits() {
		if submit.At.Before(at) && submit.Accepted() {
			t.Errorf("a message left %s before its time", at.Sub(submit.At))
		}
	}
	arrivals := s.arrivals()
	checkArrived(t, arrivals, all[:3], 0)
	checkArrived(t, arrivals, all[3:], 1)
	s.checkStatuses()
}

func checkArrived(t *testing.T, arrivals map[string]int, messages []envelope.Message, times int) {
	t.Helper()
	for i := range messages {
		if got := arrivals[messages[i].ID]; got != times {
			t.Errorf("message %s: arrived %d times, want %d", messages[i].ID, got, times)
		}
	}
}
