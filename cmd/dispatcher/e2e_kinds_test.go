package main

import (
	"path/filepath"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/sandbox"
	"dispatcher/config/tier"
)

// TestFiveKindsOfChannelKeepTheirShares sends over SMPP and four HTTP APIs at once. Every message
// is delivered, each carrier has as many as the record says, no message twice, and the shares are
// as agreed.
func TestFiveKindsOfChannelKeepTheirShares(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	n := tier.Size(200, 6_000)
	channels := []channel{
		{name: "smpp", weight: "30"},
		{name: "twilio", weight: "25"},
		{name: "vonage", weight: "20"},
		{name: "sinch", weight: "15"},
		{name: "telnyx", weight: "10"},
	}
	s := newStage(t,
		stageConfig{settings: map[string]string{
			"SEND_TIMEOUT": "20s", "POSTGRES_MAX_CONNS": tier.Size("3", "8"),
		}})
	carriers := s.startKinds(channels,
		sandbox.Profile{Receipts: 1, Delivered: 1, ReceiptDelay: 50 * time.Millisecond})
	s.run("dispatcher").awaitOutput(t, "dispatcher is running")
	s.joined(1)
	defer s.logStates()

	s.publish("bulk", messages("kinds", n))
	s.settled(n)
	tier.Within(t, stepTimeout, "every message is delivered", func() bool {
		return s.count(`select count(*) from audit.messages where state = 'delivered'`) == int64(n)
	})
	s.checkStatuses()
	s.checkShareOf(channels, n)
	for _, c := range carriers.Counts() {
		unit := "1"
		if c.Provider == "smpp" {
			unit = "segments" // its carrier gets each segment as one submit
		}
		sent := func(outcome string) int64 {
			return s.count(`select coalesce(sum(`+unit+`), 0)::bigint from audit.attempts
				where channel = $1 and outcome = $2`, c.Channel, outcome)
		}
		// On a busy machine an answer may come too late, and the outcome is unknown.
		accepted, unknown := sent("accepted"), sent("unknown")
		if n := int64(c.Submitted); n < accepted || n > accepted+unknown || accepted == 0 ||
			c.Accepted != c.Submitted || c.Unread != 0 {
			t.Errorf("%d accepted and %d unknown on record, the carrier: %+v", accepted, unknown, c)
		}
	}
	// An attempt that was refused because it missed its release time may be tried again.
	twice := s.count(`select count(*) from (select from audit.attempts
		where outcome in ('accepted', 'unknown') group by message_id having count(*) > 1) x`)
	if twice != 0 {
		t.Errorf("%d messages were sent twice; first attempts: %s", twice, s.firstOutcomes())
	}
	s.checkVerified(n)
}

// logStates logs, when a story has failed, the states of its messages and the outcomes of their
// first attempts. It is deferred, because the database is gone when cleanups run.
func (s *stage) logStates() {
	if s.t.Failed() {
		s.t.Logf("states %v; first attempts: %s", s.tally(), s.firstOutcomes())
	}
}

// firstOutcomes counts the outcomes of first attempts.
func (s *stage) firstOutcomes() string {
	s.t.Helper()
	return queryOne[string](s.t, s.postgres, `
		select string_agg(format('%s %s: %s', outcome, code, n), ', ') from (
		  select outcome, coalesce(provider_code, '-') as code, count(*) as n
		  from audit.attempts where attempt = 1 group by 1, 2 order by 1, 2) s`)
}

// startKinds starts a sandbox with a carrier of each kind, and uses its document for the stage.
// Only processes of the stage listen on the address of receipts.
func (s *stage) startKinds(channels []channel, profile sandbox.Profile) *sandbox.Sandbox {
	s.t.Helper()
	return s.startKindsBehind(channels, profile, func(address string) (public string) {
		return address
	})
}

// startKindsBehind is startKinds behind a proxy: carriers call its public URL.
func (s *stage) startKindsBehind(
	channels []channel, profile sandbox.Profile, front func(url string) (public string),
) *sandbox.Sandbox {
	s.t.Helper()
	_, address := reserve(s.t)
	public := front("http://" + address)
	s.settings["RECEIPTS_LISTEN"], s.settings["PUBLIC_URL"] = address, public
	var plan sandbox.Plan
	for _, c := range channels {
		plan.Carriers = append(plan.Carriers,
			sandbox.Carrier{Name: c.name, Provider: c.name, Weight: c.weight, Profile: profile})
	}
	carriers, err := sandbox.Start(sandbox.Config{
		Plan: plan, Folder: filepath.Join(s.folder, "accounts"), Receipts: public,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(carriers.Close)
	document, err := carriers.Routing()
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("routing.yaml",
		"timezone: Europe/London\n"+string(document)+"lanes:\n  bulk: "+
			"{topics: ["+s.topic("bulk")+"], ttl: 24h}\n")
	return carriers
}
