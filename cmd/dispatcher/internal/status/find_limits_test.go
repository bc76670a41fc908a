package status

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/ledger"
)

const limitedRouting = `
timezone: Europe/London
lanes:
  otp: {topics: [sms.otp]}
channels:
  a: {provider: sandbox, limits: [{window: 1s, max: 100}, {window: 1h, max: 1000}]}
  b: {provider: sandbox}
  c: {provider: sandbox}
limits: [{window: 1d, max: "250.00", unit: money, currency: GBP, tenant: shop}]
routes:
  - {name: default, match: {}, weights: {a: 50, b: 30, c: 20}}
`

func parsed(t *testing.T, yaml string) *config.Routing {
	t.Helper()
	doc, err := config.ParseRouting("r.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// statusOf is the status under a routing document, with the counters and waiting messages of the
// ledger.
func statusOf(doc *config.Routing, present *ledger.Present) *Now {
	return newNow(&facts{
		doc: doc, present: *present, instances: []ledger.Instance{{ID: 1}},
		recent: ledger.Recent{Now: present.Now}, within: Within, awaits: noReceipts,
	})
}

func noReceipts(*config.Channel) time.Duration { return 0 }

// TestTheOldestOfWhatWaitsIsShown: of each channel with its limits, and of each reason.
func TestTheOldestOfWhatWaitsIsShown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 21, 10, 30, 0, 0, time.UTC)
	ago := func(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
	n := newNow(&facts{
		doc: parsed(t, limitedRouting), awaits: noReceipts, within: Within,
		present: ledger.Present{Now: now, Waiting: []ledger.Waiters{
			{On: "a", Reason: "not_ready", Messages: 1},
			{On: "a 1s messages", Reason: "no_slot", Messages: 3},
			{On: "tenant:shop 1d money", Reason: "no_budget", Messages: 2},
			{Reason: "paused", Messages: 4},
		}},
		recent: ledger.Recent{Now: now, Oldest: []ledger.Oldest{
			{On: "a", Reason: "not_ready", Since: ago(20)},
			{On: "a 1s messages", Reason: "no_slot", Since: ago(90)},
			{On: "ab", Reason: "no_slot", Since: ago(900)},
			{On: "tenant:shop 1d money", Reason: "no_budget", Since: ago(-1)},
		}},
	})
	if a := n.Channels[0]; a.Waiting != 4 || a.OldestSeconds == nil || *a.OldestSeconds != 90 {
		t.Errorf("a: %d wait, the oldest for %v, want 4 and 90", a.Waiting, a.OldestSeconds)
	}
	if b := n.Channels[1]; b.OldestSeconds != nil {
		t.Errorf("b: the oldest waits for %v, want none", *b.OldestSeconds)
	}
	var got []float64
	for _, g := range n.Waiting {
		if g.OldestSeconds == nil {
			got = append(got, -1) // it appeared after the ages were read
			continue
		}
		got = append(got, *g.OldestSeconds)
	}
	if want := []float64{-1, 90, 0, 20}; !slices.Equal(got, want) {
		t.Errorf("the reasons, largest first, have waited for %v, want %v", got, want)
	}
}

// TestClosedChannelsAreFindings: by a limit of 0, and routes that have no other channel.
func TestClosedChannelsAreFindings(t *testing.T) {
	t.Parallel()
	doc := parsed(t, strings.NewReplacer(
		"{window: 1h, max: 1000}", "{window: 1h, max: 0}",
		"b: {provider: sandbox}", "b: {provider: sandbox, state: draining}",
		"c: {provider: sandbox}", "c: {provider: sandbox, limits: [{window: 1d, max: 0}]}",
	).Replace(limitedRouting))
	found := map[string]Finding{}
	for _, f := range statusOf(doc, &ledger.Present{Now: noon}).Findings {
		found[f.Check] = f
	}
	for check, want := range map[string]string{
		"limit a 1h messages": "channel a takes nothing",
		"limit c 1d messages": "channel c takes nothing",
		"route default":       "none of its channels takes messages",
	} {
		f := found[check]
		if f.Status != Warn || !strings.Contains(f.Detail, want) || f.Fix == "" {
			t.Errorf("%s: got %+v", check, f)
		}
		delete(found, check)
	}
	for check := range found {
		if !strings.HasPrefix(check, "lane ") { // no instance reads them
			t.Errorf("got %+v", found[check])
		}
	}
}

// TestSpentLimitsAreFindingsWhileMessagesWait: limits of a second are not, because they recover at
// once.
func TestSpentLimitsAreFindingsWhileMessagesWait(t *testing.T) {
	t.Parallel()
	doc := parsed(t, limitedRouting)
	now := time.Date(2026, 7, 21, 10, 30, 0, 0, time.UTC)
	full := func(l admission.Limit) admission.Counter {
		return admission.Counter{
			Limit: l, Max: l.Max, Start: l.Window.Start(now, doc.Timezone), Granted: l.Max,
		}
	}
	budget := doc.Limits[0]
	present := &ledger.Present{
		Now: now,
		Channels: []ledger.ChannelState{{Name: "a", Gate: admission.Gate{
			Counters: []admission.Counter{full(doc.Channels[0].Limits[0]), full(doc.Channels[0].Limits[1])},
		}}},
		Scoped: []ledger.ScopeState{{
			ScopeRef: ledger.ScopeRef{Scope: budget.Scope}, Counters: []admission.Counter{full(budget)},
		}},
		Waiting: []ledger.Waiters{
			{On: budget.Key().On(""), Reason: "no_budget", Messages: 3},
			{On: "a 1s messages", Reason: "no_slot", Messages: 9},
		},
	}
	limits := func() (found []Finding) {
		for _, f := range statusOf(doc, present).Findings {
			if strings.HasPrefix(f.Check, "limit ") {
				found = append(found, f)
			}
		}
		return found
	}
	spent := limits()
	if len(spent) != 1 || spent[0].Check != "limit tenant:shop 1d money" ||
		spent[0].Detail != "250.00 of 250.00 GBP are granted, and 3 messages wait for it" ||
		!strings.Contains(spent[0].Fix, "22 Jul 00:00 (Europe/London)") {
		t.Errorf("got %+v", spent)
	}
	present.Waiting = nil
	if spent = limits(); len(spent) != 0 {
		t.Errorf("got %+v, want %d of them", spent, 0)
	}

	// Messages went to other channels. The channel's share is missed, and the limit is why.
	n := statusOf(doc, present)
	n.Channels[0].share.Agreed, n.Channels[0].share.Messages = 0.5, 1000
	const cause = "carries 0.00 %, agreed is 50.00 % of 1000 messages; limit a 1h messages is used " +
		"up until 12:00:00 (Europe/London)"
	if found := n.findChannels(); len(found) != 1 || found[0].Detail != cause {
		t.Errorf("got %+v, want %q", found, cause)
	}
}

// TestLongWaitsAndManyAmbiguitiesAreFindings says from which figure on.
func TestLongWaitsAndManyAmbiguitiesAreFindings(t *testing.T) {
	t.Parallel()
	for want, n := range map[string]*Now{
		"":                                      {Instances: 1, Ambiguous: 99, Lanes: []Lane{{Readers: 1, OldestSeconds: new(599.0)}}},
		"7 messages wait, the oldest for 10m0s": {Instances: 1, Lanes: []Lane{{Readers: 1, Waiting: 7, OldestSeconds: new(600.4)}}},
		"it is not known of 100 submissions whether the provider took them": {Instances: 1, Ambiguous: 100},
	} {
		var got []string
		for _, f := range n.find() {
			got = append(got, f.Detail)
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestTheListOfChannelsHasAllFactsOfTheStatus under the same names, with the same values.
func TestTheListOfChannelsHasAllFactsOfTheStatus(t *testing.T) {
	t.Parallel()
	doc, one := parsed(t, limitedRouting), 1.0
	since := time.Date(2026, 7, 21, 10, 30, 0, 0, time.UTC)
	now := &Now{Channels: make([]Channel, len(doc.Channels))}
	now.Channels[0] = Channel{
		Name: "a", State: "enabled", Breaker: "open", BreakerSince: &since,
		NotReady: []ReasonCount{{"breaker_open", 2}}, Silent: true, AgreedShare: &one,
		EffectiveShare: &one, CarriedShare: &one, Rate: 2, Limit: &one, Throttled: 0.5,
		PausedUntil: &since, Accepted: 3, Codes: []CodeCount{{"0x08", "refused", 4}},
		Unsent: []CodeCount{{"late", "refused", 5}}, P50: &one, P99: &one, Unanswered: 6, Waiting: 7,
		OldestSeconds: &one,
	}
	members := func(of any) (out map[string]any) {
		text, err := json.Marshal(of)
		if err == nil {
			err = json.Unmarshal(text, &out)
		}
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	listed := members(now.Details(doc, &ledger.Present{Now: since})[0])
	for name, want := range members(now.Channels[0]) {
		if !reflect.DeepEqual(listed[name], want) {
			t.Errorf("%s is %v, want %v", name, listed[name], want)
		}
	}
}
