package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"dispatcher/cmd/dispatcher/internal/status"
)

// TestTheChannelListShowsRatesErrorsAndAnswerTimes in 120 columns, with the channels of the demo
// while one of them fails.
func TestTheChannelListShowsRatesErrorsAndAnswerTimes(t *testing.T) {
	t.Parallel()
	agreed, carried, limit, p50, p99 := 0.25, 0.1234, 1000.0, 12.4, 1843.6
	since := time.Date(2026, 11, 21, 3, 4, 5, 0, time.UTC)
	detail := func(name string) status.Detail {
		return status.Detail{
			Channel: status.Channel{
				Name: name, State: "enabled", Breaker: "closed", AgreedShare: &agreed,
				CarriedShare: &carried, Throttled: 1, Rate: 987.61, Limit: &limit, P50: &p50, P99: &p99,
				Waiting: 10000,
			},
			Provider: "sandbox", Active: 300,
			Limits: []status.DetailLimit{{
				Window: "1s", Unit: "messages", Max: status.Quantity{Units: 1000},
				ConfiguredMax: status.Quantity{Units: 1000},
			}},
			Routes: []string{"default", "transactional"},
		}
	}
	sick := detail("b")
	sick.Breaker, sick.BreakerSince = "open", &since
	sick.Codes = []status.CodeCount{
		{Code: "0x00000058", Outcome: "throttled", Count: 120}, {Code: "0x00000008", Count: 7},
	}
	quiet := detail("c")
	quiet.P50, quiet.P99 = nil, nil
	table := channelSheet(7, []status.Detail{detail("a"), sick, quiet}, formatTable).render(0, false)
	for _, want := range []string{
		"0x00000058: ", "0x00000008: 7", "p50 12 ", "p99 1844", " 987.6 ", " of 1000 ", "breaker open", "03:04:05 UTC", "sandbox",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is missing:\n%s", want, table)
		}
	}
	if strings.Count(table, "p50") != 2 || strings.Contains(table, "breaker closed") {
		t.Errorf("an answer time that is not known, or a breaker that is closed:\n%s", table)
	}
	for line := range strings.SplitSeq(table, "\n") {
		if width := utf8.RuneCountInString(line); width > 120 {
			t.Errorf("%d columns: %s", width, line)
		}
	}
}
