package main

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dispatcher/config/tier"
	"dispatcher/provider/smpp/smpptest"
)

// TestAChannelThatLosesFewAnswersKeepsItsShare: a carrier accepts everything, but the answers to
// one submit in fifty are lost, and once those to forty in a row. They time out together, between
// good answers to later submits. The channel stays in use: no attempt finds the breaker open.
func TestAChannelThatLosesFewAnswersKeepsItsShare(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const n = 6_000
	var submits atomic.Int64
	lossy := smpptest.Behaviour{Decide: func(smpptest.Submit) smpptest.Answer {
		if i := submits.Add(1); i%50 == 0 || i > 400 && i <= 440 {
			return smpptest.Answer{State: smpptest.Dropped}
		}
		return smpptest.Answer{Delay: 3 * time.Millisecond}
	}}
	channels := []channel{
		{name: "g", weight: "60", behaviour: quick()},
		{name: "h", weight: "40", behaviour: lossy},
	}
	s := newStage(t,
		stageConfig{channels: channels, settings: map[string]string{"SEND_TIMEOUT": "10s"}})
	p := s.runAll(1)[0]
	ids := s.publish("bulk", messages("lost-answers", n))
	s.settled(n)

	s.checkNoneTwice()
	s.checkAllArrived(ids)
	s.checkShareOf(channels, n)
	// While lost answers time out, the channel may be at its in-flight bound; messages may fall back
	// for that reason.
	met := s.count(`
		select count(*) from dispatcher.all_attempts where ranking::text like '%breaker_open%'`)
	if met > 0 {
		t.Errorf("%d attempts reached an open breaker", met)
	}
	if n := s.count(`
		select count(*) from audit.attempts where provider_code = 'breaker_open'`); n > 0 {
		t.Errorf("%d attempts were refused by an open breaker", n)
	}
	if n := s.count(`select count(*) from audit.messages where state = 'unknown'`); n == 0 {
		t.Error("no answer was lost: the test proves nothing")
	}
	text := p.out.String()
	if strings.Contains(text, `"message":"breaker changed"`) ||
		strings.Contains(text, "takes no messages") {
		t.Error("the breaker opened, or the bind was closed")
	}
}
