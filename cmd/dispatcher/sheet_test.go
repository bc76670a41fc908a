package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/cmd/dispatcher/internal/status"
)

// TestTablesFitATerminalOf120Columns: with the names and figures of a large installation.
func TestTablesFitATerminalOf120Columns(t *testing.T) {
	t.Parallel()
	share, effective, moment := 0.3333, 0.25, time.Now()
	long := strings.Repeat("a reason that somebody took the time to write down ", 3)
	row := report.DailyRow{
		Route: "transactional", Channel: "provider-west-2", ConfiguredShare: &share,
		EffectiveShare: &effective, FirstChoice: 123456, Fallback: 12345,
		Accepted: 123456, Carried: 1234567, CarriedShare: 1, Delivered: 123456, Failed: 1234,
		Unknown: 123, Segments: 1234567, CostMicros: 12345678900, Currency: "GBP",
		NoReceipt: 12345,
	}
	var weights []control.Line
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		weights = append(weights,
			control.Line{
				Path: "routes.transactional.weights." + name, From: control.OrNil("33.333"),
				To: control.OrNil(long),
			})
	}
	ramp := control.Ramp{
		ID: 1234, Route: "transactional", To: map[string]string{
			"provider-east": "33.333", "provider-west": "66.667",
		}, State: "superseded", Step: 12, Steps: 144,
		ChangedAt: &moment, ChangedBy: "ann@operations-7.example.net",
		Author: "ann@operations-7.example.net", Reason: long, Why: long,
	}
	for name, s := range map[string]sheet{
		"daily": routeTable(&report.Daily{Totals: []report.DailyTotal{{
			Route:      row.Route,
			CostMicros: row.CostMicros, Currency: "GBP",
		}}},
			&report.RouteVerdict{
				Route: row.Route, TrafficVerdict: report.Moved, DrawsVerdict: report.Unfair,
				PValue: new(float64),
			},
			[]report.DailyRow{row, row}),
		"history": historySheet([]control.HistoryLine{{
			Version: 123456,
			Author:  "ann@operations-7.example.net", Reason: long, Changes: weights,
		}},
			formatTable),
		"ramps":   rampSheet([]control.Ramp{ramp}, formatTable),
		"changes": changeSheet(weights, formatTable),
		"channels": channelSheet(7, []status.Detail{{
			Channel:  status.Channel{Name: "provider-west-2", State: "draining", Throttled: 1},
			Provider: "sandbox", Capacity: 100000, Active: 12345, LastAssigned: &moment,
			Limits: []status.DetailLimit{
				{
					Window: "1s", Unit: "messages", Currency: "",
					Max:           status.Quantity{Units: 1000, Money: false},
					ConfiguredMax: status.Quantity{Units: 900, Money: false},
					Granted:       status.Quantity{Units: 1000, Money: false},
				},
				{
					Window: "1d", Unit: "segments", Currency: "",
					Max:           status.Quantity{Units: 1000000, Money: false},
					ConfiguredMax: status.Quantity{Units: 1000000, Money: false},
					Granted:       status.Quantity{Units: 999999, Money: false},
				},
				{
					Window: "1d", Unit: "money", Currency: "GBP",
					Max:           status.Quantity{Units: 250_000_000, Money: true},
					ConfiguredMax: status.Quantity{Units: 250_000_000, Money: true},
					Granted:       status.Quantity{Units: 12_345_678, Money: true},
				},
			}, Routes: []string{"transactional", "default"},
		}}, formatTable),
		"limits":       limitSheet(hugeLimits(), formatTable),
		"limits' side": channelLimitSheet(hugeLimits()),
		"waiters":      waiterSheet(hugeLimits()),
		"limit moves": limitMoveSheet([]limitMove{{
			Version: 123456, Author: "ann@operations-7.example.net", Reason: long,
			Channel: "provider-west-2", What: "reserve.transactional",
			key: admission.Key{
				Window: admission.Day, Unit: admission.Segments,
				Scope: admission.Scope{Tenant: "a-large-tenant"},
			}, From: control.OrNil("100%"), To: control.OrNil("1000000.123456 GBP"),
		}}, formatTable),
		"attempts": attemptSheet([]report.Attempt{{
			Number: 2, Channel: "provider-west-2", Reason: "first_choice", Outcome: "throttled",
			Code: "0x00000058", Reference: strings.Repeat("0f", 16), CostMicros: 123456,
			Currency: "GBP",
		}}),
	} {
		var out strings.Builder
		s.draw(&out)
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 120 {
				t.Errorf("%s is %d wide:\n%s", name, n, out.String())
				break
			}
		}
	}
}

// hugeLimits has a limit with long names and large amounts.
func hugeLimits() *status.Limits {
	factor, moment, most := 0.125, time.Now(), int64(100000)
	later := moment.Add(50 * time.Hour)
	money := func(units int64) status.Quantity { return status.Quantity{Units: units, Money: true} }
	return &status.Limits{
		Version: 123456, Timezone: "America/Argentina/Buenos_Aires", Zone: time.UTC,
		Waiting: []status.Waiters{
			{
				On: "provider-west-2 tenant:a-large-tenant 1d segments", Reason: "no_budget",
				Messages: 1234567, Next: later,
			},
		}, Channels: []status.ChannelLimits{{
			Channel: "provider-west-2", Policy: "curve", CurveFactor: &factor, Rate: 0.5,
			PausedUntil: &later, Active: 112345, ActiveMax: &most, ActiveUntil: "receipt",
			Waiting: 10000,
			Limits: []status.Limit{{
				Scope: "tenant:a-large-tenant", Window: "1d", Unit: "money", Currency: "GBP",
				Max: money(1_000_000_000_000), ConfiguredMax: money(900_000_000_000),
				Granted:   money(1_000_000_000_000),
				NextPlace: &later, BurstWords: "burst 123456, then 876545 per 1d",
				Waiting: 10000, Reserve: map[string]int64{
					"otp": 20, "transactional": 5,
				}, Ends: "22 Nov 00:00",
				Key: admission.Key{
					Window: admission.Day, Unit: admission.Money,
					Scope: admission.Scope{Tenant: "a-large-tenant"},
				},
			}},
		}},
	}
}

// TestATitleIsBrokenBetweenWords: if the table below it is narrower.
func TestATitleIsBrokenBetweenWords(t *testing.T) {
	t.Parallel()
	s := sheet{
		title: "version 1 at 2026-11-22 04:00:00, times in America/Sao_Paulo", header: []string{
			"channel", "policy", "rate", "paused until",
		},
		rows: [][]string{{"alpha", "exact", "100 %", ""}},
	}
	var out strings.Builder
	s.draw(&out)
	lines := strings.Split(out.String(), "\n")
	if len(lines) < 6 || !strings.Contains(lines[1], " version 1 at 2026-11-22 04:00:00, ") ||
		!strings.Contains(lines[2], " America/Sao_Paulo ") {
		t.Error(out.String())
	}
	for _, line := range lines[:len(lines)-1] {
		if utf8.RuneCountInString(line) != utf8.RuneCountInString(lines[0]) {
			t.Errorf("a line has another width in\n%s", out.String())
		}
	}
	s.title = "short"
	out.Reset()
	s.draw(&out)
	got := strings.Split(out.String(), "\n")
	if !strings.Contains(got[1], " short ") || len(got) != len(lines)-1 {
		t.Error(out.String())
	}
}
