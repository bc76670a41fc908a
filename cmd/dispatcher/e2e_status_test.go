package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config/tier"
	"dispatcher/provider/smpp/pdu"
	"dispatcher/provider/smpp/smpptest"
)

// status returns the current output of the status command.
func (s *stage) status() (now status.Now) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.command("status", "--format", "json")), &now); err != nil {
		s.t.Fatal(err)
	}
	return now
}

// TestStatusShowsAChannelThatFails while another one carries its messages: the breaker and since
// when it is open, the code, the missing share, and the lag. Then the process is killed.
func TestStatusShowsAChannelThatFails(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	s := newStage(t, stageConfig{channels: []channel{
		{name: "good", weight: "40", behaviour: quick(), document: limitPerSecond(1000)},
		{name: "sick", weight: "60", behaviour: smpptest.Behaviour{
			ErrorEvery: 1, ErrorStatus: pdu.StatusSysErr,
		}},
	}})
	began := time.Now()
	p := s.run("dispatcher")
	p.awaitOutput(t, "dispatcher is running")
	s.joined(1)
	s.bound(1)
	s.publish("bulk", short("status", 150))
	s.settled(150)
	var now status.Now
	tier.Within(t, stepTimeout, "the status shows the open breaker", func() bool {
		now = s.status()
		good, failing := now.Channels[0], now.Channels[1]
		return (failing.Breaker == "open" || failing.Breaker == "half_open") && good.P50 != nil &&
			now.Lanes[0].Lag != nil && *now.Lanes[0].Lag == 0
	})
	good, failing := now.Channels[0], now.Channels[1]
	if failing.BreakerSince == nil || failing.BreakerSince.Before(began.Add(-time.Minute)) ||
		len(failing.Codes) == 0 || failing.Codes[0].Code != "0x00000008" ||
		*failing.AgreedShare != 0.6 || failing.CarriedShare == nil || *failing.CarriedShare != 0 {
		t.Errorf("got %+v", failing)
	}
	if good.Breaker != "closed" || good.Accepted != 150 || *good.CarriedShare != 1 ||
		good.Limit == nil || *good.Limit != 1000 || good.P99 == nil || good.Rate <= 0 {
		t.Errorf("got %+v", good)
	}
	if now.Instances != 1 || now.Lanes[0].Readers != 1 || now.RoutingVersion != 1 ||
		now.Processes[0].RoutingVersion != 1 {
		t.Errorf("got %+v", now)
	}
	for _, want := range []string{
		"its breaker is", "most frequent code 0x00000008",
		"carries 0.00 %, agreed is 60.00 %",
	} {
		if table := s.command("status"); !strings.Contains(strings.Join(strings.Fields(table), " "),
			want) {
			t.Errorf("%q is missing:\n%s", want, table)
		}
	}
	if list := s.command("channel", "list"); !strings.Contains(list, "since") {
		t.Errorf("channel list does not show the breaker:\n%s", list)
	}
	if got := s.ask(nil, "doctor"); !strings.Contains(got.out, "traffic of sick") {
		t.Errorf("doctor does not show the breaker: %+v", got)
	}
	p.kill(t)
	tier.Within(t, stepTimeout, "nobody runs", func() bool {
		now = s.status()
		return now.Instances == 0
	})
	if len(now.Findings) == 0 || now.Channels[1].Breaker != "" || now.Lanes[0].Lag != nil {
		t.Errorf("got %+v", now)
	}
}
