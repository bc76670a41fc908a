package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/ledger"
)

var tenantShop = admission.Scope{Tenant: "shop"}

func budget(scope admission.Scope, micros int64) admission.Limit {
	return admission.Limit{
		Scope: scope, Window: admission.Day, Unit: admission.Money,
		Currency: "GBP", Max: micros,
	}
}

// minutely is a limit of messages per minute.
func minutely(scope admission.Scope, most int64) admission.Limit {
	return admission.Limit{Scope: scope, Window: admission.Minute, Max: most}
}

// limitedCase is a wait for a limit, and its explanation.
type limitedCase struct {
	on, reason string
	next       time.Duration    // from ten o'clock, as the others
	over       *admission.Limit // over all channels
	own        *admission.Limit // on a
	policy     admission.Policy // of a
	seen       []byte
	want       string
	until      time.Duration // 0 for nil
}

// limitedCases were planned at 11.7 s after ten and expire ten minutes after it, unless seen says
// otherwise.
func limitedCases() map[string]limitedCase {
	all := func(reason string) []byte {
		return encode("load_ratio", ranked("a", 0, reason), ranked("c", 0, reason),
			ranked("b", 0, "draining"))
	}
	sliding := minutely(admission.Scope{}, 100)
	sliding.Sliding, sliding.Burst = true, 1
	reserved := budget(tenantShop, 500_000)
	reserved.Reserve = []admission.Reserve{{Lane: "bulk", Percent: 20}}
	const midnight, deadline = 14 * time.Hour, 10 * time.Minute
	return map[string]limitedCase{
		"spent for longer than it lives": {
			on: "tenant:shop 1d money", reason: "no_budget", next: deadline,
			over: new(budget(tenantShop, 500_000)), seen: all("no_budget"), until: midnight,
			want: "It waits for the limit of tenant shop over all channels: its 0.50 GBP of the " +
				"day are spent. Besides, b could not take it (being drained). " +
				"Its deadline is 10:10:00 GMT; the limit has no room before 22 November 2026 at " +
				"00:00:00 GMT, so it will fail unless the limit is raised or money comes back.",
		},
		"used up until the window ends": {
			on: "a 1m messages", reason: "no_slot", next: time.Minute,
			own: new(minutely(admission.Scope{}, 100)), seen: all("no_slot"), until: time.Minute,
			want: "It waits for the limit of a: its 100 messages of the minute are used up. " +
				"Besides, c could not take it (sending limit of the running window used up) " +
				"and b could not take it (being drained). The limit has room again at 10:01:00 " +
				"GMT, and the message is considered again then.",
		},
		"used up, and others come first": {
			on: "a tenant:shop 1m messages", reason: "tenant_limit", next: 3 * time.Minute,
			own:  new(minutely(tenantShop, 1)),
			seen: encode("load_ratio", ranked("a", 0, "tenant_limit")), until: time.Minute,
			want: "It waits for the limit of tenant shop on a: its 1 message of the minute is " +
				"used up. The limit has room again at 10:01:00 GMT. It is considered again at " +
				"10:03:00 GMT.",
		},
		"used up, and so many come first that it expires": {
			on: "a 1m messages", reason: "no_slot", next: deadline,
			own:  new(minutely(admission.Scope{}, 100)),
			seen: encode("load_ratio", ranked("a", 0, "no_slot")), until: time.Minute,
			want: "It waits for the limit of a: its 100 messages of the minute are used up. The " +
				"limit has room again at 10:01:00 GMT. " +
				"It is considered again at 10:10:00 GMT, its deadline.",
		},
		"closed": {
			on: "tenant:shop 1d money", reason: "no_budget", next: 41 * time.Second,
			over: new(budget(tenantShop, 0)), seen: all("no_budget"),
			want: "It waits, because all channels are closed to tenant shop (the limit of money " +
				"per day is 0). Besides, b could not take it (being drained). " +
				"It is considered again at 10:00:41 GMT. Unless the limit is raised, it fails at " +
				"its deadline, 10:10:00 GMT.",
		},
		"closed, and not considered again before it is given up": {
			on: "a 1m messages", reason: "no_slot", next: deadline,
			own: new(minutely(admission.Scope{}, 0)), seen: encode("load_ratio",
				ranked("a", 0, "no_slot")),
			want: "It waits, because a is closed (its limit of messages per minute is 0). " +
				"Unless the limit is raised or another channel can take it, it fails at its " +
				"deadline, 10:10:00 GMT.",
		},
		"a channel closed": {
			on: "a 1m messages", reason: "no_slot", next: 41 * time.Second,
			own: new(minutely(admission.Scope{}, 0)), seen: encode("load_ratio",
				ranked("a", 0, "no_slot")),
			want: "It waits, because a is closed (its limit of messages per minute is 0). It is " +
				"considered again at 10:00:41 GMT. " +
				"Unless the limit is raised or another channel can take it, it fails at its " +
				"deadline, 10:10:00 GMT.",
		},
		"less than the message costs": {
			on: "a 1d money", reason: "no_budget", next: 41 * time.Second,
			own: new(budget(admission.Scope{}, 20_000)), seen: encode("load_ratio",
				ranked("a", 0, "no_budget")),
			want: "It waits for the limit of a: the message takes more than its 0.02 GBP of the " +
				"day. It is considered again at 10:00:41 GMT. " +
				"Unless the limit is raised or another channel can take it, it fails at its " +
				"deadline, 10:10:00 GMT.",
		},
		"no release time yet in the second": {
			on: "a 1s messages", reason: "no_slot", next: 43 * time.Second,
			own:  new(admission.Limit{Window: admission.Second, Max: 5}),
			seen: encode("load_ratio", ranked("a", 0, "no_slot")), until: 43 * time.Second,
			want: "It waits for the limit of 5 messages per second on a: it has no free slot " +
				"before 10:00:43 GMT.",
		},
		"no release time yet under a sliding limit": {
			on: "a 1m messages", reason: "no_slot", next: 43 * time.Second, own: &sliding,
			seen: encode("load_ratio", ranked("a", 0, "no_slot")), until: 43 * time.Second,
			want: "It waits for the limit of 100 messages per minute on a: it has no free slot " +
				"before 10:00:43 GMT.",
		},
		"no release time before its deadline": {
			on: "a 1m messages", reason: "no_slot", next: deadline, own: &sliding,
			seen: encode("load_ratio", ranked("a", 0, "no_slot")),
			want: "It waits for the limit of 100 messages per minute on a: it has no free slot " +
				"before the deadline of the message. " +
				"Its deadline is 10:10:00 GMT, so it will fail unless the limit is raised or " +
				"another channel can take it.",
		},
		"kept for other lanes": {
			on: "a 1m messages", reason: "reserved", next: 54 * time.Second,
			own:  new(minutely(admission.Scope{}, 100)),
			seen: encode("load_ratio", ranked("a", 0, "reserved")), until: 54 * time.Second,
			want: "It waits for the limit of a: what is left of its 100 messages of the minute " +
				"is " +
				"kept for other lanes. It is considered again at 10:00:54 GMT.",
		},
		"not this process's share": {
			on: "a 1m messages", reason: "no_share", next: 44 * time.Second,
			own:  new(minutely(admission.Scope{}, 100)),
			seen: encode("load_ratio", ranked("a", 0, "no_share")), until: 44 * time.Second,
			want: "It waits for the limit of 100 messages per minute on a: the channel's policy " +
				"left no slots to the process that looked. It is considered again at 10:00:44 GMT.",
		},
		"money with a reserve, spent": {
			on: "tenant:shop 1d money", reason: "no_budget", next: time.Minute, over: &reserved,
			seen: encode("load_ratio", ranked("a", 0, "no_budget")), until: midnight,
			want: "It waits for the limit of tenant shop over all channels: its 0.50 GBP of the " +
				"day are spent. " +
				"Its deadline is 10:10:00 GMT; the limit has no room before 22 November 2026 at " +
				"00:00:00 GMT, so it will fail unless the limit is raised or money comes back.",
		},
		"money kept for other lanes": {
			on: "tenant:shop 1d money", reason: "reserved", next: time.Minute, over: &reserved,
			seen: encode("load_ratio", ranked("a", 0, "reserved")), until: time.Minute,
			want: "It waits for the limit of tenant shop over all channels: what is left of its " +
				"0.50 GBP of the day is kept for other lanes. It is considered again at 10:01:00 " +
				"GMT.",
		},
		"money kept for other lanes for longer than it lives": {
			on: "tenant:shop 1d money", reason: "reserved", next: deadline, over: &reserved,
			seen: encode("load_ratio", ranked("a", 0, "reserved")),
			want: "It waits for the limit of tenant shop over all channels: what is left of its " +
				"0.50 GBP of the day is kept for other lanes. It is considered again at 10:10:00 " +
				"GMT, its deadline.",
		},
		"money divided among processes, spent": {
			on: "a 1d money", reason: "no_budget", next: time.Minute,
			own: new(budget(admission.Scope{}, 500_000)), policy: admission.Even{},
			seen: encode("load_ratio", ranked("a", 0, "no_budget")), until: midnight,
			want: "It waits for the limit of a: its 0.50 GBP of the day are spent. " +
				"Its deadline is 10:10:00 GMT; the limit has no room before 22 November 2026 at " +
				"00:00:00 GMT, so it will fail unless the limit is raised or money comes back " +
				"or another channel can take it.",
		},
		"money that is left to other processes": {
			on: "a 1d money", reason: "no_share", next: 44 * time.Second,
			own: new(budget(admission.Scope{}, 500_000)), policy: admission.Even{},
			seen: encode("load_ratio", ranked("a", 0, "no_share")), until: 44 * time.Second,
			want: "It waits for the limit of 0.50 GBP per day on a: the channel's policy left no " +
				"slots to the process that looked. It is considered again at 10:00:44 GMT.",
		},
		"a prepaid budget that is spent": {
			on: "tenant:shop prepaid money", reason: "no_budget", next: time.Minute,
			over: &admission.Limit{
				Scope: tenantShop, Window: admission.Prepaid, Unit: admission.Money, Currency: "GBP",
			}, seen: all("no_budget"),
			want: "It waits for the prepaid budget of tenant shop over all channels: what it was " +
				"topped up with does not suffice. Besides, b could not take it (being drained). It " +
				"is considered again at 10:01:00 GMT. Unless the budget is topped up or money comes " +
				"back, it fails at its deadline, 10:10:00 GMT.",
		},
		"held for its first choice": {
			on: "a 1m messages", reason: "no_slot", next: 50 * time.Second,
			own: new(minutely(admission.Scope{}, 100)), seen: encode("wait",
				ranked("a", 0, "no_slot")), until: time.Minute,
			want: "It waits for its first choice, as route default lets messages do, and so for " +
				"the limit of a: its 100 messages of the minute are used up. " +
				"The limit has room again at 10:01:00 GMT. It is considered again at 10:00:50 GMT.",
		},
		"held for its first choice, whose limit has no room while the message lives": {
			on: "a 1d messages", reason: "no_slot", next: 50 * time.Second,
			own: &admission.Limit{Window: admission.Day, Max: 9}, seen: encode("wait",
				ranked("a", 0, "no_slot")), until: midnight,
			want: "It waits for its first choice, as route default lets messages do, and so for " +
				"the limit of a: its 9 messages of the day are used up. " +
				"The limit has room again on 22 November 2026 at 00:00:00 GMT. It is considered " +
				"again on 21 November 2026 at 10:00:50 GMT.",
		},
		"less than it costs on one channel alone": {
			on: "tenant:shop 1d money", reason: "no_budget", next: deadline,
			over: new(budget(tenantShop, 20_000)), seen: encode("load_ratio",
				ranked("a", 0, "no_budget"), ranked("c", 0, "no_budget")), until: midnight,
			want: "It waits for the limit of tenant shop over all channels: its 0.02 GBP of the " +
				"day are spent. " +
				"Its deadline is 10:10:00 GMT; the limit has no room before 22 November 2026 at " +
				"00:00:00 GMT, so it will fail unless the limit is raised or money comes back.",
		},
		"a limit that the document does not have": {
			on: "a prefix:+44 1h segments", reason: "prefix_limit", next: time.Hour,
			seen: encode("load_ratio", ranked("a", 0, "prefix_limit")), until: time.Hour,
			want: "It waits for the limit of segments per hour of numbers that begin with +44 on " +
				"a: it is used up. " +
				"Its deadline is 10:10:00 GMT; the limit has no room before 11:00:00 GMT, so it " +
				"will fail unless the limit is raised or another channel can take it.",
		},
	}
}

// explanation explains the wait of a case.
func (tc *limitedCase) explanation(t *testing.T) Explanation {
	t.Helper()
	doc := london(t)
	doc.Channels[0].Policy = tc.policy
	doc.Channels[0].Price = config.Price{
		Currency: "GBP",
		Lists:    []config.PriceList{{Default: 28_000}},
	}
	if tc.over != nil {
		doc.Limits = []admission.Limit{*tc.over}
	}
	if tc.own != nil {
		doc.Channels[0].Limits = []admission.Limit{*tc.own}
	}
	r := newRecord(ledger.Waiting)
	m := &r.Message
	m.Reason, m.WaitsFor, m.NextAt, m.WaitingSince = tc.reason, tc.on, ten.Add(tc.next),
		ten.Add(11700*time.Millisecond)
	r.Seen = tc.seen
	return explain(t, r, doc)
}

func TestExplanationNamesTheLimitThatIsWaitedForAndWhatEndsTheWait(t *testing.T) {
	t.Parallel()
	for name, tc := range limitedCases() {
		explanation := tc.explanation(t)
		_, got, _ := strings.Cut(explanation.Text, "so its first choice was a. ")
		if diff := cmp.Diff("So far it has waited for 28.3 s. "+tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if explanation.Limit != tc.on || (explanation.Until == nil) != (tc.until == 0) || explanation.Until != nil &&
			!explanation.Until.Equal(ten.Add(tc.until)) {
			t.Errorf("%s: limit %q until %v", name, explanation.Limit, explanation.Until)
		}
		if explanation.Deadline == nil || !explanation.Deadline.Equal(ten.Add(10*time.Minute)) {
			t.Errorf("%s: deadline %v", name, explanation.Deadline)
		}
	}
}

func TestExplanationAddsTheWaitUnderWay(t *testing.T) {
	t.Parallel()
	r := newRecord(ledger.Waiting)
	m := &r.Message
	m.Reason = "no_slot"
	m.WaitsFor = "a 1s messages"
	m.NextAt = ten.Add(41 * time.Second)
	m.WaitingSince = ten.Add(38 * time.Second)
	m.Waits = []ledger.Wait{
		{Reason: "no_slot", On: "a 1s messages", For: 1500 * time.Millisecond},
		{Reason: "connecting", On: "b", For: time.Second},
	}
	r.Seen = encode("load_ratio", ranked("a", 0, "no_slot"))
	explanation := explain(t, r, london(t))
	want := []Wait{{"no_slot", "a 1s messages", 3.5}, {"connecting", "b", 1}}
	if diff := cmp.Diff(want, explanation.Waits); diff != "" {
		t.Error(diff)
	}
	const got = "So far it has waited for 4.5 s: 3.5 s for the limit of messages per second on " +
		"a " +
		"(no room) and 1.0 s for b (no connection). It waits for"
	if !strings.Contains(explanation.Text, got) {
		t.Error(explanation.Text)
	}

	m.Reason, m.WaitsFor = "connecting", "c"
	if got := explain(t, r, london(t)); len(got.Waits) != 3 || got.Waits[2] != (Wait{
		"connecting",
		"c", 2,
	}) || got.Limit != "" || got.Until != nil {
		t.Errorf("got %+v", got)
	}
	m.WaitingSince = lookedBack.Add(time.Second) // the clock was set back
	if got := explain(t, r, london(t)); got.Waits[2].Seconds != 0 {
		t.Errorf("got %+v", got.Waits)
	}
	m.State = ledger.Sending // the wait has ended and is listed with the others
	if got := explain(t, r, london(t)); len(got.Waits) != 2 {
		t.Errorf("got %+v, want %d of them", got.Waits, 2)
	}
}

// TestExplanationCutsDaysInTheBusinessZone: nine hours before London.
func TestExplanationCutsDaysInTheBusinessZone(t *testing.T) {
	t.Parallel()
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	r := newRecord(ledger.Waiting)
	m := &r.Message
	m.Reason, m.WaitsFor, m.NextAt, m.WaitingSince = "no_slot", "a 1d messages", m.ExpiresAt, ten
	doc := london(t)
	doc.Timezone = tokyo
	explanation := explain(t, r, doc)
	if explanation.Until == nil || !explanation.Until.Equal(ten.Add(5*time.Hour)) ||
		!strings.Contains(explanation.Text, "the limit has no room before 22 November 2026 at 00:00:00 "+
			"JST") {
		t.Errorf("%v: got %s", explanation.Until, explanation.Text)
	}
}

// TestExplanationSaysThatPlanningIsOverdue: the window has ended, and the message was not planned
// again.
func TestExplanationSaysThatPlanningIsOverdue(t *testing.T) {
	t.Parallel()
	for _, on := range []string{"a 1m messages", "a 1s messages", "b"} {
		r := newRecord(ledger.Waiting)
		m := &r.Message
		m.Reason, m.WaitsFor, m.NextAt, m.WaitingSince = "no_slot", on,
			lookedBack.Add(-overdue-time.Second), ten.Add(-time.Minute)
		r.Seen = encode("load_ratio", ranked("a", 0, "no_slot"))
		const want = "It has been due for 6.0 s: either others come first, or no process runs."
		if explanation := explain(t, r, london(t)); !strings.HasSuffix(explanation.Text, want) {
			t.Errorf("%s: got %s", on, explanation.Text)
		}
		m.NextAt = m.NextAt.Add(time.Second)
		if explanation := explain(t, r, london(t)); strings.Contains(explanation.Text, "due") {
			t.Errorf("%s: got %s, want no %q in it", on, explanation.Text, "due")
		}
	}
}

func TestExplanationWithoutALimitNamesItsDeadline(t *testing.T) {
	t.Parallel()
	r := newRecord(ledger.Waiting)
	r.Message.Reason, r.Message.NextAt = "no_route", r.Message.ExpiresAt
	explanation := explain(t, r, london(t))
	const want = "It waits, because its route is no longer part of the routing. It is considered " +
		"again at 10:10:00 GMT, its deadline."
	if !strings.HasSuffix(explanation.Text, want) {
		t.Error(explanation.Text)
	}
}

// TestExplanationOfAClosedChannelSaysSo: a limit of 0 was not used up.
func TestExplanationOfAClosedChannelSaysSo(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		on, over *admission.Limit
		words    string
		limit    string
		never    string
	}{
		"no_slot": {
			on:    &admission.Limit{Window: admission.Minute},
			words: "closed: its limit is 0", limit: "a 1m messages", never: "closed",
		},
		"tenant_limit": {
			over:  new(minutely(tenantShop, 0)),
			words: "closed to the tenant: the limit is 0", limit: "tenant:shop 1m messages",
			never: "closed",
		},
		"prefix_limit": {
			on:    new(minutely(admission.Scope{Prefix: "+44"}, 0)),
			words: "closed to numbers with this prefix: the limit is 0",
			limit: "a prefix:+44 1m messages", never: "closed",
		},
		"no_budget": {
			on:    new(budget(admission.Scope{}, 27_999)),
			words: "the message costs more than the budget of a window", limit: "a 1d money",
			never: "too_small",
		},
	} {
		doc := london(t)
		doc.Channels[0].Price = config.Price{
			Currency: "GBP",
			Lists:    []config.PriceList{{Default: 28_000}},
		}
		if tc.on != nil {
			doc.Channels[0].Limits = []admission.Limit{minutely(admission.Scope{Tenant: "other"},
				0), minutely(admission.Scope{Prefix: "+1"}, 0), *tc.on}
		}
		if tc.over != nil {
			doc.Limits = []admission.Limit{*tc.over}
		}
		r := newRecord(ledger.Accepted, attempt("c", ledger.ByFallback, outcomeAccepted, "",
			ranked("a", 0, reason), ranked("c", 40, "")))
		explanation := explain(t, r, doc)
		if c := explanation.Candidates[0]; c.Limit != tc.limit || c.Never != tc.never ||
			!strings.Contains(explanation.Text, "because a could not take it ("+tc.words+").") {
			t.Errorf("%s: %+v %s", reason, c, explanation.Text)
		}
		r.Message.Plan.Version++ // the choice was made by another version than the document
		if c := explain(t, r, doc).Candidates[0]; c.Limit != "" || c.Never != "" {
			t.Errorf("%s under another version: %+v", reason, c)
		}
	}
}
