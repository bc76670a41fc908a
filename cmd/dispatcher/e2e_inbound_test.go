package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/provider/smpp/smpptest"
)

// inboundRecord is a record of an inbound message.
type inboundRecord struct {
	ID         string `json:"id"`
	Channel    string `json:"channel"`
	From       string `json:"from"`
	To         string `json:"to"`
	Text       string `json:"text"`
	Tenant     string `json:"tenant"`
	Parts      int    `json:"parts"`
	Incomplete bool   `json:"incomplete"`
	Keyword    string `json:"keyword"`
	key        string
}

// inbound waits for n records of inbound messages without duplicates, and returns them in order:
// all are from one subscriber.
func (s *stage) inbound(n int) (all []inboundRecord) {
	s.t.Helper()
	seen := map[string]bool{}
	readTopic(s.t, s.kafka, s.topic("inbound"), func(r *kgo.Record) bool {
		h := inboundRecord{key: string(r.Key)}
		if err := json.Unmarshal(r.Value, &h); err != nil {
			s.t.Fatalf("an inbound message is not JSON: %v", err)
		}
		if !seen[h.ID] {
			seen[h.ID] = true
			h.ID = ""
			all = append(all, h)
		}
		return len(all) >= n
	})
	return all
}

// TestStopAndStartOfASubscriber: a subscriber sends STOP to the number of a shop. The shop's next
// message to them is rejected, that of a bank is sent; START reverses this. A long message of the
// subscriber, whose parts come over the binds of two processes, becomes one record. Everything is
// stored, and nothing printed shows a number.
func TestStopAndStartOfASubscriber(t *testing.T) {
	t.Parallel()
	const subscriber, shop = "99976540001", "+15550100"
	s := newStage(t, stageConfig{
		channels: []channel{{name: "a", weight: "1", behaviour: quick()}},
		lanes: "  bulk: {topics: [%s.bulk], ttl: 24h}\n  otp: {topics: [%s.otp], ignore_opt_out: " +
			"true}\n" +
			"inbound:\n  numbers:\n    \"" + shop + "\": {tenant: shop}\n",
	})
	createTopics(t, s.client, s.topic("inbound"))
	processes := s.runAll(2)
	s.joined(len(processes)) // one lane's group stands for both
	say := func(text string) {
		s.carriers["a"].SendInbound(smpptest.Inbound{
			SystemID: "e2e", From: subscriber, To: shop[1:], Text: text, Reference: 77,
		})
	}
	published := 0
	write := func(lane, tenant string) (id string) {
		published++
		id = fmt.Sprintf("%s-%s-%d", lane, tenant, published)
		s.publish(lane,
			[]envelope.Message{
				{ID: id, To: "+" + subscriber, Text: "[" + id + "] Hello", Tenant: tenant},
			})
		return id
	}
	record := func(text, keyword string, parts int) inboundRecord {
		return inboundRecord{
			Channel: "a", From: "+" + subscriber, To: shop[1:], Text: text, Tenant: "shop",
			Parts: parts, Keyword: keyword, key: "+" + subscriber,
		}
	}

	say("Stop!")
	want := []inboundRecord{record("Stop!", "stop", 0)}
	checkInbound(t, want, s.inbound(1))
	optedOut, other, code := write("bulk", "shop"), write("bulk", "bank"), write("otp", "shop")
	s.settled(3)

	say("start")
	want = append(want, record("start", "start", 0))
	checkInbound(t, want, s.inbound(2))
	again := write("bulk", "shop")
	s.settled(4)

	long := strings.Repeat("Where is my parcel? ", 30)
	say(long)
	want = append(want, record(long, "", 4))
	checkInbound(t, want, s.inbound(3))

	wantStates := map[string]string{
		optedOut: "rejected", other: "accepted", code: "accepted", again: "accepted",
	}
	if diff := cmp.Diff(wantStates, s.states()); diff != "" {
		t.Errorf("states: %s", diff)
	}
	arrived := s.arrivals()
	if diff := cmp.Diff(map[string]int{other: 1, code: 1, again: 1}, arrived); diff != "" {
		t.Errorf("submits at the carrier: %s", diff)
	}
	events := s.statuses(wantStates)[optedOut]
	if len(events) != 1 || events[0].Reason != "opted_out" {
		t.Errorf("events of the message that ended as opted_out: %+v", events)
	}
	explained := s.command("explain", optedOut)
	if !strings.Contains(strings.Join(strings.Fields(explained), " "),
		"The recipient had opted out of messages of shop, so nothing was sent.") {
		t.Errorf("explain: %s", explained)
	}
	s.command("audit", "verify")
	lists := s.command("optouts", "show", "+"+subscriber, "--tenant", "shop", "--format", "json")
	if !strings.Contains(lists, `"opted_out": false`) ||
		!strings.Contains(lists, `"source": "keyword"`) {
		t.Errorf("optouts: %s", lists)
	}
	_, metrics := processes[0].get(t, "/metrics")
	for _, printed := range []string{
		explained, lists, metrics, processes[0].out.String(), processes[1].out.String(),
	} {
		if strings.Contains(printed, subscriber) || strings.Contains(printed, "parcel") {
			t.Errorf("the output shows a number or a text: %s", printed)
		}
	}
}

func checkInbound(t *testing.T, want, got []inboundRecord) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(inboundRecord{})); diff != "" {
		t.Fatalf("records (-want +got):\n%s", diff)
	}
}
