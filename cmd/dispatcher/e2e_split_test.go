package main

import (
	"strings"
	"testing"

	"dispatcher/config/tier"
)

// TestLanesAreSplitOverTwoDatabases: two dispatchers serve one lane each. They share the carriers
// and the draw key, but no database, topic or group (docs/scale.md, "Beyond one database").
func TestLanesAreSplitOverTwoDatabases(t *testing.T) {
	t.Parallel()
	n := tier.Size(240, 6000)
	const half = "limits: [{window: 1s, max: 100}]" // of what a carrier allows
	channels := threeChannels(half, half, half)
	codes := newStage(t, stageConfig{
		channels: channels, lanes: "  otp: {topics: [%s.otp], ttl: 24h}\n",
	})
	bulk := newStage(t, stageConfig{channels: channels})
	bulk.sendTo(codes)
	codes.run("codes")
	bulk.run("bulk")

	all := messages("split", n)
	codes.publish("otp", all[:n/2])
	codes.publish("otp", all[:10]) // the ids are known
	bulk.publish("bulk", all[n/2-1:])
	codes.settled(n / 2)
	bulk.settled(n/2 + 1)

	both := all[n/2-1].ID // the databases do not know each other's ids
	for i := range all {
		want := 1
		if all[i].ID == both {
			want = 2
		}
		if got := codes.arrivals()[all[i].ID]; got != want {
			t.Errorf("the carriers accepted message %s %d times, want %d", all[i].ID, got, want)
		}
	}
	if a, b := codes.firstChoices()[both], bulk.firstChoices()[both]; a != b {
		t.Errorf("message %s was drawn for %s by one database and for %s by the other", both, a, b)
	}
	for _, s := range []*stage{codes, bulk} {
		s.checkLimits()
		s.checkShareOf(channels, int(s.count(`select count(*) from audit.messages`)))
		s.checkVerified(int(s.count(`select count(*) from audit.messages`)))
	}
}

// sendTo makes a stage use the carriers of another one.
func (s *stage) sendTo(other *stage) {
	s.t.Helper()
	document := s.read("routing.yaml")
	for name, carrier := range s.carriers {
		document = strings.ReplaceAll(document, carrier.Addr(), other.carriers[name].Addr())
	}
	s.write("routing.yaml", document)
	s.carriers = other.carriers
}
