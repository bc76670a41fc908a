package main

import (
	"encoding/json"
	"strings"
	"testing"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config/tier"
)

// TestATestChannelDoesEverythingButTheSend sends over a normal channel and a test channel. Choice,
// limit, record, price, receipt, status and report are those of any channel. The carrier of the
// test channel listens and gets nothing.
func TestATestChannelDoesEverythingButTheSend(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const n = 200
	channels := threeChannels("", `test: true, limits: [{window: 1d, max: 100000}]`, "")[:2]
	channels[0].weight, channels[1].weight = "50", "50"
	channels[0].behaviour.Receipts = true
	s := newStage(t, stageConfig{channels: channels})
	running := s.run("dispatcher")
	running.awaitOutput(t, `"phase":"bound"`) // the test channel has no bind
	s.publish("bulk", messages("trial", n))
	tier.Within(t, stepTimeout, "every message is delivered", func() bool {
		return s.count(`select count(*) from audit.messages where state = 'delivered'`) == n
	})

	if silent := s.carriers["b"].Stats(); silent.Connections != 0 || silent.Submits != 0 {
		t.Errorf("the carrier of a test channel got %+v", silent)
	}
	tried := s.count(`select count(*) from audit.attempts where channel = 'b'`)
	whole := s.count(`
		select count(*) from audit.attempts where channel = 'b' and reason = 'first_choice'
		and outcome = 'accepted' and delivered_at is not null
		and provider_reference <> '' and segments > 0 and price_micros = 30000 * segments
		and currency = 'GBP'`)
	if tried == 0 || whole != tried ||
		tried+s.count(`select count(*) from audit.attempts where channel = 'a'`) != n {
		t.Errorf("got %d of %d attempts on the test channel as on a normal one", whole, tried)
	}
	granted := s.count(`select sum(granted)::bigint from audit.limit_windows where channel = 'b'`)
	if granted != tried {
		t.Errorf("%d attempts took %d slots of the limit", tried, granted)
	}
	s.checkShareOf(channels, n)
	s.checkStatuses()
	s.checkTrialRow(tried)
	s.checkVerified(n)
	var explanation report.Explanation
	id := queryOne[string](t, s.postgres,
		`select message_id from audit.attempts where channel = 'b' limit 1`)
	err := json.Unmarshal([]byte(s.command("explain", id, "--format", "json")), &explanation)
	if err != nil || channelOf(&explanation) != "b" || !strings.Contains(explanation.Text, "b accepted it") {
		t.Errorf("got %+v, error %v", explanation, err)
	}
}

// checkTrialRow checks the test channel's row of the daily report and what it was billed.
func (s *stage) checkTrialRow(attempts int64) {
	s.t.Helper()
	day := s.report()
	cost := s.count(`select sum(price_micros)::bigint from audit.attempts where channel = 'b'`)
	for _, row := range day.Rows {
		if row.Channel == "b" && row.Accepted == attempts && row.Delivered == attempts &&
			row.FirstChoice == attempts && row.CostMicros == cost && cost > 0 {
			return
		}
	}
	s.t.Errorf("no row of %d messages for %d micros in %+v", attempts, cost, day.Rows)
}
