package report

import (
	"fmt"
	"testing"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// TestALimitIsNamedInWords: with its maximum where the document has it.
func TestALimitIsNamedInWords(t *testing.T) {
	t.Parallel()
	shop := admission.Scope{Tenant: "shop"}
	doc := limitedTo(document("default", "a", "70", "b", "30"), "b",
		admission.Limit{Window: admission.Hour, Max: 20},
		admission.Limit{Scope: shop, Window: admission.Day, Max: 9, Unit: admission.Segments},
		admission.Limit{Window: admission.Day, Max: 500_000, Unit: admission.Money, Currency: "GBP"})
	doc.Limits = []admission.Limit{{Scope: shop, Window: admission.Minute, Max: 1}}
	for stored, want := range map[[2]string]string{
		{"no_slot", "b 1h messages"}: "its limit of 20 messages an hour used up",
		{"reserved", "b 1h messages"}: "the rest of its limit of 20 messages an hour kept for " +
			"other lanes",
		{"no_share", "b 1h messages"}: "its limit of 20 messages an hour: no slots left to the " +
			"process by the admission policy",
		{"no_budget", "b 1d money"}: "its limit of 0.50 GBP a day spent",
		{"tenant_limit", "b tenant:shop 1d segments"}: "the limit of 9 segments a day of tenant " +
			"shop on b used up",
		{"tenant_limit", "tenant:shop 1m messages"}: "the limit of 1 message a minute of tenant " +
			"shop over all channels used up",
		{"prefix_limit", "b prefix:+44 1d messages"}: "the limit of messages per day of numbers " +
			"that begin with +44 on b used up",
		{"no_budget", "b prepaid money"}: "its prepaid budget spent",
		{"no_slot", ""}:                  "sending limit of the running window used up",
	} {
		if got := limitExclusion(doc, stored[0], stored[1]); got != want {
			t.Errorf("%v: got %s", stored, got)
		}
	}
}

// TestReportsNameTheMostFrequentLimits: each tenant may have a limit of its own.
func TestReportsNameTheMostFrequentLimits(t *testing.T) {
	t.Parallel()
	var carried []ledger.CarriedRow
	for i := range 25 {
		cause := fmt.Sprintf("tenant_limit:1d:messages:tenant:t%02d", i)
		carried = append(carried, carriedRow(1, "b", "a", cause, int64(100+i)))
	}
	carried = append(carried, carriedRow(1, "b", "a", "no_slot:1d:messages", 1))
	day := dayOf(drawnFor(1, "a", 10, "b", 10), carried, document("default", "a", "70", "b", "30"))
	moved := day.Rows[1].Moved
	if len(moved) != mostLimits+2 {
		t.Fatalf("got %d moves: %+v", len(moved), moved)
	}
	// The other 15 had 100 to 114.
	if m := moved[0]; m.Messages != 15*107 || m.Limit != "" || m.Stored() != "tenant_limit" {
		t.Errorf("the others are %+v", m)
	}
	if m := moved[1]; m.Messages != 124 || m.Limit != "b tenant:t24 1d messages" ||
		m.Stored() != "tenant_limit:1d:messages:tenant:t24" {
		t.Errorf("the first is %+v", m)
	}
	if m := moved[len(moved)-1]; m.Cause != "no_slot" || m.Limit != "b 1d messages" {
		t.Errorf("the last is %+v", m)
	}
	steps := waterfallOf(day.Routes[0].Waterfall, "b").Steps
	if at := len(steps) - 1; steps[at].Words() != "no slot (1d messages)" {
		t.Errorf("got %+v", steps[at])
	}
}
