package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/cmd/dispatcher/internal/sandbox"
	"dispatcher/config/tier"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// threeParts returns messages of three parts in GSM-7, or of seven in UCS-2, which an ASCII channel
// needs for the pound sign.
func threeParts(story string, n int) []envelope.Message {
	all := short(story, n)
	for i := range all {
		all[i].Text = fmt.Sprintf("[%s] £", all[i].ID)
		all[i].Text += strings.Repeat("0123456789", 44)[:440-len([]rune(all[i].Text))]
	}
	return all
}

// delivers accepts everything and sends receipts at once.
func delivers() smpptest.Behaviour { return smpptest.Behaviour{Receipts: true} }

// throttlesSecondParts does the same, but throttles each second part. It holds these answers until
// it has seen the second parts of n messages, because the reduced rate leaves hardly any slots for
// others. Carriers that share one behaviour count together.
func throttlesSecondParts(n int64) smpptest.Behaviour {
	var seen atomic.Int64
	all := make(chan struct{})
	return smpptest.Behaviour{Decide: func(s smpptest.Submit) (a smpptest.Answer) {
		if s.Part != 2 {
			return a
		}
		if seen.Add(1) == n {
			close(all)
		}
		return smpptest.Answer{Status: pdu.StatusThrottled, Hold: all}
	}, Receipts: true}
}

// begun waits until this many messages have their second part left to send.
func (s *stage) begun(n int) {
	s.t.Helper()
	tier.Within(s.t, stepTimeout, "only the second part is left of every message", func() bool {
		return s.count(`
			select count(*) from dispatcher.message_states where parts_left = '{1}'
			and state in ('retry', 'waiting')`) == int64(n)
	})
}

// stuck waits until this many messages wait because their channel would split the text differently.
func (s *stage) stuck(n int) {
	s.t.Helper()
	tier.Within(s.t, stepTimeout, "the rests wait", func() bool {
		return s.count(`
			select count(*) from dispatcher.message_states where state = 'waiting'
			and reason = 'cut_otherwise' and waits_for = pinned`) == int64(n)
	})
}

// billed returns how many segments the messages of a story are billed.
func (s *stage) billed(story string) int64 {
	s.t.Helper()
	return s.count(`
		select coalesce(sum(segments), 0)::bigint from audit.attempts
		where message_id like $1 || '-%'`,
		story)
}

// said lists the reasons of the events with a state.
func said(events []event, state string) (reasons []string) {
	for _, e := range events {
		if e.State == state {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// TestTheRestOfATextIsNotSentUnderAnotherCut: a carrier accepts two of three parts. Then the
// alphabet of its channel is changed, under which the text has seven parts. None of these is sent.
// Messages with a deadline fail with two parts billed. The others are completed when the change is
// rolled back.
func TestTheRestOfATextIsNotSentUnderAnotherCut(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const each = 6
	s := newStage(t, stageConfig{
		channels: []channel{
			{
				name: "a", weight: "1", behaviour: throttlesSecondParts(2 * each),
				settings: "alphabet: gsm7, " + patient,
			},
		},
	})
	s.run("dispatcher").awaitOutput(t, "dispatcher is running")
	s.joined(1)
	s.bound(1)
	hurried := threeParts("hurried", each)
	for i := range hurried {
		hurried[i].ExpiresAt = time.Now().Add(2 * time.Minute)
	}
	ids := append(s.publish("bulk", hurried), s.publish("bulk", threeParts("patient", each))...)
	s.begun(2 * each)

	s.edit("alphabet: gsm7", "alphabet: ascii")
	s.carriers["a"].SetBehaviour(delivers())
	s.stuck(2 * each)
	since := time.Now()
	whole := s.publish("bulk", threeParts("whole", each))
	tier.Within(t, stepTimeout, "the channel carries other messages", func() bool {
		return s.count(`
			select count(*) from audit.messages where state = 'delivered'
			and id like 'whole-%'`) == each
	})
	tier.Within(t, stepTimeout, "what has a deadline fails", func() bool {
		return s.count(`
			select count(*) from audit.messages where state = 'failed'
			and id like 'hurried-%'`) == each
	})
	for _, submit := range s.submits() {
		if submit.At.After(since) && submit.Parts != 7 {
			t.Errorf("part %d of %d was sent while the channel split the text differently", submit.Part,
				submit.Parts)
		}
	}

	s.change("routing", "rollback", "1")
	tier.Within(t, stepTimeout, "the rest goes out as it was cut", func() bool {
		return s.count(`
			select count(*) from audit.messages where state = 'delivered'
			and id like 'patient-%'`) == each
	})
	s.checkNoneTwice()
	s.checkCut(map[string]bool{"hurried": false, "patient": true, "whole": true})
	for story, want := range map[string]int64{"hurried": 2, "patient": 3, "whole": 7} {
		if got := s.billed(story); got != want*each {
			t.Errorf("%s: got %d billed segments, want %d", story, got, want*each)
		}
	}
	events := s.statuses(s.states())
	for _, id := range ids {
		story, _, _ := strings.Cut(id, "-")
		if story == "hurried" && strings.Join(said(events[id], "failed"), " ") != "cut_otherwise" {
			t.Errorf("%s failed: %v", id, events[id])
		}
		// A message that was waiting already when the channel changed has no event with the new reason.
		waits := said(events[id], "waiting")
		if len(waits) == 0 || waits[0] != "cut_otherwise" && waits[0] != "throttled" {
			t.Errorf("no waiting event of %s has the reason: %v", id, events[id])
		}
	}
	story := strings.Join(strings.Fields(s.command("explain", ids[0])), " ")
	if !strings.Contains(story, "split the text differently") {
		t.Errorf("%s: got %s, want %q in it", ids[0], story, "split the text differently")
	}
	s.checkStatuses()
	s.checkVerified(len(ids) + len(whole))
}

// checkCut compares the parts that arrived of each message, by story: the whole text, or a part of
// it.
func (s *stage) checkCut(whole map[string]bool) {
	s.t.Helper()
	texts := map[string]string{}
	for story := range whole {
		for _, m := range threeParts(story, 100) {
			texts[m.ID] = m.Text
		}
	}
	for _, m := range smpptest.Join(s.submits()) {
		id := idOf(m.Text)
		story, _, _ := strings.Cut(id, "-")
		if m.Complete != whole[story] || m.Complete && m.Text != texts[id] || m.Repeated > 0 {
			s.t.Errorf("%q: of %d parts, whole %v, %d repeated", id, m.Parts, m.Complete,
				m.Repeated)
		}
	}
}

// TestTheRestOfATextDoesNotGoToAnotherKindOfProvider: carriers accept two of three parts over SMPP.
// Then each channel name belongs to another kind of provider, which would send the whole text. None
// of them gets a request for it. When the channels are SMPP again, the rest is sent.
func TestTheRestOfATextDoesNotGoToAnotherKindOfProvider(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const n, fresh = 60, 20
	var over, under []channel
	reluctant := throttlesSecondParts(n)
	for _, kind := range []string{
		"twilio", "vonage", "infobip", "sinch", "plivo", "telnyx", "bird", "httpapi",
	} {
		over = append(over, channel{name: kind, weight: "10", behaviour: reluctant})
		under = append(under, channel{name: kind, weight: "10"})
	}
	s := newStage(t, stageConfig{channels: over})
	smsc := s.read("routing.yaml")
	carriers := s.startKinds(under, sandbox.Profile{Receipts: 1, Delivered: 1})
	s.write("web.yaml", s.read("routing.yaml"))
	s.write("routing.yaml", smsc)
	s.run("dispatcher").awaitOutput(t, "dispatcher is running")
	s.joined(1)
	s.publish("bulk", threeParts("kinds", n))
	s.begun(n)
	used := s.count(`select count(distinct pinned) from dispatcher.messages`)
	if used != int64(len(over)) {
		t.Fatalf("only %d channels have begun messages", used)
	}

	s.change("routing", "apply", s.path("web.yaml"))
	for _, c := range s.carriers {
		c.SetBehaviour(delivers())
	}
	s.stuck(n)
	s.publish("bulk", threeParts("fresh", fresh))
	tier.Within(t, stepTimeout, "the other kinds carry other messages", func() bool {
		return s.count(`
			select count(*) from audit.messages where state = 'delivered'
			and id like 'fresh-%'`) == fresh
	})
	got := 0
	for _, c := range carriers.Counts() {
		got += c.Submitted
	}
	if got != fresh {
		t.Errorf("the other providers got %d messages, want the %d new ones", got, fresh)
	}

	s.change("routing", "rollback", "1")
	tier.Within(t, stepTimeout, "the rest goes out as it was cut", func() bool {
		return s.count(`
			select count(*) from audit.messages where state = 'delivered'
			and id like 'kinds-%'`) == n
	})
	s.checkNoneTwice()
	s.checkCut(map[string]bool{"kinds": true})
	if segments := s.billed("kinds"); segments != 3*n {
		t.Errorf("got %d billed segments, want %d", segments, 3*n)
	}
	s.checkStatuses()
	s.checkVerified(n + fresh)
}
