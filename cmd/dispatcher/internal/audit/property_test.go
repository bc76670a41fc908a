package audit

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/provider"
	"dispatcher/provider/sms"
	"dispatcher/selector"
	"dispatcher/selector/score"
)

// drawnRouting draws a routing of one route: any mode, fallback, scoring, weights, channels and
// lanes.
func drawnRouting(t *rapid.T) *decide.Routing {
	n := rapid.IntRange(1, 6).Draw(t, "channels")
	if rapid.IntRange(0, 15).Draw(t, "many") == 0 {
		n = 40
	}
	r := &decide.Routing{Version: 7, Zone: time.UTC, Lanes: drawnLanes(t)}
	entries := make([]selector.Entry, n)
	for i, name := range drawnNames(t, n) {
		weight := rapid.IntRange(0, 3).Draw(t, "weight")
		if i == 0 {
			weight++
		}
		entries[i] = selector.Entry{Name: name, Weight: selector.MustWeight(fmt.Sprint(weight))}
		r.Channels = append(r.Channels, decide.Channel{Channel: config.Channel{
			Name: name, Capacity: rapid.Int64Range(1, 3).Draw(t, "capacity"),
			State: rapid.SampledFrom([]decide.ChannelState{
				decide.Enabled, decide.Enabled,
				decide.Enabled, decide.Enabled, decide.Draining, decide.Disabled,
			}).Draw(t, "state"),
			Labels: map[string]selector.Value{"quality": selector.NumberValue(
				float64(rapid.IntRange(0, 3).Draw(t, "quality")))},
			Senders: drawnSenders(t),
		}, Price: drawnPrice(t), AwaitReceipts: rapid.SampledFrom([]time.Duration{
			0, time.Hour, time.Hour,
		}).Draw(t, "receipts")})
		if rapid.IntRange(0, 4).Draw(t, "cuts") == 0 {
			r.Channels[i].Segments = func(text string) int { return 1 + len(text)/100 }
		}
		if cut := rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "cut"); cut != "" {
			r.Channels[i].Cut = func(text string) string { return fmt.Sprint(cut, len(text)) }
		}
		drawnLimitsOf(t, &r.Channels[i])
	}
	if rapid.Bool().Draw(t, "over all") {
		r.Limits = drawnLimits(t)
	}
	r.Routes = []decide.Route{drawnRoute(t, entries)}
	r.Country = func(string) string { return "gb" }
	r.CallingCode = func(string) int { return 44 }
	if rapid.IntRange(0, 15).Draw(t, "blocked") == 0 {
		r.Blocked.Countries = []string{"gb"}
	}
	switch rapid.IntRange(0, 15).Draw(t, "allowed") {
	case 0:
		r.Allowed.Countries = []string{"fr"}
	case 1:
		r.Routes[0].AllowedCountries = []string{"fr"}
	}
	return r
}

// drawnPrice draws one price list, or two with a change during the life of the message.
func drawnPrice(t *rapid.T) decide.Price {
	list := func() decide.PriceList {
		l := decide.PriceList{Default: rapid.Int64Range(1, 3).Draw(t, "price") * 1000}
		if rapid.IntRange(0, 3).Draw(t, "of a country") == 0 {
			l.Countries = map[string]int64{"gb": rapid.Int64Range(1, 3).Draw(t,
				"price of the country") * 1000}
		}
		if rapid.IntRange(0, 3).Draw(t, "of prefixes") == 0 {
			l.Prefixes = map[string]int64{"+4477": 4000, "+49": 5000}
		}
		return l
	}
	lists := []decide.PriceList{list()}
	for i := range rapid.IntRange(0, 2).Draw(t, "later lists") {
		later := list()
		later.From = noon.Add(time.Duration(1+2*i) * time.Second)
		lists = append(lists, later)
	}
	return decide.NewPrice("GBP", lists...)
}

// drawnSenders draws rules that allow any sender, or names only, or replace the sender by a number.
func drawnSenders(t *rapid.T) decide.Senders {
	return rapid.SampledFrom([]decide.Senders{
		{},
		{Default: "ACME"},
		{Rules: []decide.SenderRule{{
			Countries: []string{"gb"},
			Allow:     []sms.SenderKind{sms.Alphanumeric},
		}}},
		{Rules: []decide.SenderRule{{
			Allow: []sms.SenderKind{sms.LongCode},
			From:  "+447700900999",
		}}},
	}).Draw(t, "senders")
}

// drawnLimitsOf draws limits of a channel, of tenants and of prefixes, a policy and a hold, or
// none.
func drawnLimitsOf(t *rapid.T, c *decide.Channel) {
	c.Active.Hold = rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "held")
	if rapid.Bool().Draw(t, "narrower") {
		c.Limits = drawnLimits(t)
	}
	if rapid.Bool().Draw(t, "unlimited") {
		return
	}
	own := admission.Limit{
		Window: admission.Day, Max: rapid.SampledFrom([]int64{0, 2, 10, 10, 10}).Draw(t, "own max"),
		Unit: rapid.SampledFrom([]admission.Unit{
			admission.Messages, admission.Segments,
			admission.Money,
		}).Draw(t, "own unit"),
	}
	if own.Unit == admission.Money {
		own.Max *= 1000
	}
	if rapid.Bool().Draw(t, "own reserve") {
		own.Reserve = []admission.Reserve{{Lane: "otp", Percent: 50}}
	}
	c.Limits = append(c.Limits, own)
	c.Policy = rapid.SampledFrom([]admission.Policy{
		nil,
		admission.Even{},
		admission.CounterPolicy{},
	}).Draw(t, "policy")
}

// drawnNames draws names that other versions may have, too.
func drawnNames(t *rapid.T, n int) []string {
	names := make([]string, n)
	from := rapid.IntRange(0, 3).Draw(t, "from")
	for i := range names {
		names[i] = fmt.Sprintf("c%02d", from+i)
	}
	return names
}

func drawnLanes(t *rapid.T) map[string]decide.Lane {
	lanes := map[string]decide.Lane{"otp": {Lane: config.Lane{Name: "otp", TTL: time.Hour}}}
	if rapid.IntRange(0, 3).Draw(t, "lane gone") > 0 {
		bulk := config.Lane{Name: "bulk", TTL: time.Hour}
		if rapid.Bool().Draw(t, "resend") {
			bulk.Ambiguous = "resend_once"
		}
		lanes["bulk"] = decide.Lane{Lane: bulk, Order: 1}
		lanes["last"] = decide.Lane{Lane: config.Lane{Name: "last", TTL: time.Hour}, Order: 2}
	}
	return lanes
}

func drawnRoute(t *rapid.T, entries []selector.Entry) decide.Route {
	route := decide.Route{Route: config.Route{
		Name:        rapid.SampledFrom([]string{"default", "default", "other"}).Draw(t, "route"),
		MaxSegments: 10,
		Mode: rapid.SampledFrom([]decide.Mode{
			decide.Weighted, decide.RoundRobinMode,
			decide.LongestIdle, decide.BestWorkerMode, decide.InOrderMode,
		}).Draw(t, "mode"),
		Fallback: rapid.SampledFrom([]decide.Ranker{
			decide.LoadRatio, decide.BestWorker,
			decide.RoundRobin, decide.Redraw, decide.InOrder,
		}).Draw(t, "fallback"),
		BypassSelectors: rapid.Bool().Draw(t, "bypass"),
		HoldThrottled:   rapid.Bool().Draw(t, "hold"),
		Wait:            rapid.SampledFrom([]time.Duration{0, 0, time.Minute}).Draw(t, "wait"),
		Scoring:         drawnScoring(t),
		PriceCap: rapid.SampledFrom([]map[string]int64{nil, nil, {"GBP": 4000}}).Draw(t,
			"price cap"),
		NoReceipt: rapid.SampledFrom([]*config.NoReceipt{nil, {After: time.Minute}, {
			After: 2 * time.Minute,
		}}).Draw(t, "without receipt"),
	}}
	route.Sticky = route.Draws() && rapid.Bool().Draw(t, "sticky")
	route.Members = rapid.Permutation(places(len(entries))).Draw(t, "listing")
	// entries of the table are the members in their order
	ordered := make([]selector.Entry, len(entries))
	for i, c := range route.Members {
		ordered[i] = entries[c]
	}
	var err error
	if route.Table, err = selector.NewTable(ordered); err != nil {
		t.Fatal(err)
	}
	return route
}

func drawnScoring(t *rapid.T) decide.Scoring {
	s := decide.Scoring{Ascending: rapid.Bool().Draw(t, "ascending")}
	switch rapid.IntRange(0, 3).Draw(t, "scoring") {
	case 1, 2: // the second fails if a channel of quality 0 is among them
		source := rapid.SampledFrom([]string{
			"channel.labels.quality + load_ratio + priority",
			"1 / channel.labels.quality - price",
		}).Draw(t, "expression")
		var err error
		if s.Expression, err = score.Compile(source); err != nil {
			t.Fatal(err)
		}
	case 3:
		s.Function = &decide.Function{Deadline: time.Second}
	}
	return s
}

func places(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// drawnBounds draws which channels bound their attempts in flight.
func drawnBounds(t *rapid.T, r *decide.Routing) map[string]bool {
	bounds := map[string]bool{}
	for i := range r.Channels { // a fixed order, so that a draw can be repeated
		bounds[r.Channels[i].Name] = rapid.Bool().Draw(t, "bounded")
	}
	return bounds
}

// drawnCounter draws the state of a limit: unused, nearly used up or used up.
func drawnCounter(t *rapid.T, l admission.Limit, now time.Time) admission.Counter {
	c := admission.Counter{Limit: l, Max: l.Max, Start: l.Window.Start(now, time.UTC)}
	c.Granted = rapid.SampledFrom([]int64{0, 0, max(l.Max-1, 0), l.Max}).Draw(t, "granted")
	if rapid.IntRange(0, 3).Draw(t, "share taken") == 0 {
		c.Taken = map[string]int64{"worker:0": l.Max, "region:": l.Max, "anywhere": l.Max}
	}
	return c
}

// drawnState draws any shared state of the channels within their bounds, and what this process
// knows of its connections.
func drawnState(t *rapid.T, r *decide.Routing, bounds map[string]bool,
	now time.Time,
) (*ledger.Seen, []string) {
	seen, unready := idle(r)
	bad := rapid.Bool().Draw(t, "bad times")
	for i := range seen.Channels {
		gate := &seen.Channels[i].Gate
		gate.Active.Count = rapid.Int64Range(0, 3).Draw(t, "active")
		if bounds[seen.Channels[i].Name] {
			gate.Active.Max = 3
		}
		for _, l := range r.Channels[i].Limits {
			if l.Scope != (admission.Scope{}) {
				continue
			}
			gate.Counters = append(gate.Counters, drawnCounter(t, l, now))
		}
		if ago := rapid.IntRange(0, 3).Draw(t, "idle"); ago > 0 {
			seen.Channels[i].LastAssigned = now.Add(-time.Duration(ago) * time.Minute)
		}
		if bad {
			unready[i] = rapid.SampledFrom([]string{
				"", "connecting", decide.Throttled,
				decide.Breaker, provider.Probing,
			}).Draw(t, "unready")
		}
	}
	scoped := func(channel string, limits []admission.Limit) {
		for _, l := range limits {
			ref := ledger.ScopeRef{Channel: channel, Scope: l.Scope}
			if l.Scope == (admission.Scope{}) {
				continue
			}
			i := slices.IndexFunc(seen.Scoped, func(s ledger.ScopeState) bool {
				return s.ScopeRef == ref
			})
			if i < 0 {
				i = len(seen.Scoped)
				seen.Scoped = append(seen.Scoped, ledger.ScopeState{ScopeRef: ref})
			}
			seen.Scoped[i].Counters = append(seen.Scoped[i].Counters, drawnCounter(t, l, now))
		}
	}
	scoped("", r.Limits)
	for i := range r.Channels {
		scoped(r.Channels[i].Name, r.Channels[i].Limits)
	}
	if at := rapid.IntRange(-1, len(r.Channels)-1).Draw(t, "cursor"); at >= 0 {
		seen.Cursors[0] = ledger.Cursor{
			Route:   r.Routes[0].Name,
			Channel: r.Channels[r.Routes[0].Members[at]].Name, Position: at,
		}
	}
	return seen, unready
}

// drawnRooms draws how much a process may have in flight on its channels.
func drawnRooms(t *rapid.T, channels int) []decide.Room {
	if rapid.Bool().Draw(t, "no bulkheads") {
		return nil
	}
	out := make([]decide.Room, channels)
	for i := range out {
		out[i] = rapid.SampledFrom([]decide.Room{
			{ShareLeft: 1},
			{ShareLeft: 0},
			{FirstLaneLeft: 1},
			{PassOver: true},
			{ShareLeft: 1, PassOver: true},
		}).Draw(t, "room")
	}
	return out
}

// drawnJob draws a message with any selectors, of one part or several.
func drawnJob(t *rapid.T) *decide.Job {
	job := jobOf(rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "id"),
		rapid.IntRange(1, 3).Draw(t, "segments"))
	m := &job.Message
	m.Tenant = rapid.SampledFrom([]string{"", "shop", "bank"}).Draw(t, "of tenant")
	m.From = rapid.SampledFrom([]string{"", "ACME", "+447700900001"}).Draw(t, "from")
	for range rapid.IntRange(0, 2).Draw(t, "selectors") {
		m.Selectors = append(m.Selectors, envelope.Selector{
			Key: "quality", Operator: rapid.SampledFrom([]selector.Operator{
				selector.GreaterThan,
				selector.Equal, selector.LessThanEqual,
			}).Draw(t, "operator"),
			Value: selector.NumberValue(float64(rapid.IntRange(0, 3).Draw(t, "value"))),
			ExpiresAfter: rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t,
				"expires after"),
		})
	}
	if rapid.IntRange(0, 3).Draw(t, "capped") == 0 {
		cap := rapid.Int64Range(1, 9).Draw(t, "cap") * 1000
		m.MaxPrice = &cap
	}
	job.Raw = m.Append(nil)
	return job
}

func drawnScores(t *rapid.T, n int) *decide.Scores {
	if rapid.Bool().Draw(t, "timeout") {
		return &decide.Scores{Trouble: decide.FunctionTimeout}
	}
	s := &decide.Scores{Values: make([]float64, n)}
	for i := range s.Values {
		s.Values[i] = rapid.Float64Range(-1, 1).Draw(t, "score")
	}
	return s
}

// drawnResult draws any result of an attempt.
func drawnResult(t *rapid.T, a *decide.Attempt) provider.Result {
	outcomes := []provider.Outcome{
		provider.Accepted, provider.Rejected, provider.Refused,
		provider.Refused, provider.Throttled, provider.Unknown,
	}
	code := rapid.SampledFrom([]string{
		"0x1", "0x1", decide.CodeStopping, decide.CodeStale,
		decide.CodeExpired,
	}).Draw(t, "code")
	if rapid.IntRange(0, 7).Draw(t, "late") == 0 {
		return provider.Result{Outcome: provider.Refused, Code: decide.CodeLate}
	}
	if a.Segments == 1 || rapid.Bool().Draw(t, "as a whole") {
		return provider.Result{Outcome: rapid.SampledFrom(outcomes).Draw(t, "outcome"), Code: code}
	}
	indices := a.Submission.Parts
	if indices == nil {
		indices = places(a.Segments)
	}
	r := provider.Result{Code: code, Cut: a.Submission.Cut}
	// otherwise the settings are those of no version
	if a.Submission.Parts == nil && rapid.IntRange(0, 5).Draw(t, "cut told") > 0 {
		r.Cut = fmt.Sprint(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "cut by"),
			len(a.Submission.Text))
	}
	for _, i := range indices {
		mostly := append(outcomes, provider.Accepted, provider.Accepted)
		outcome := rapid.SampledFrom(mostly).Draw(t, "part")
		r.Parts = append(r.Parts, provider.Part{Index: i, Outcome: outcome})
	}
	r.Outcome = provider.Combine(r.Parts)
	return r
}

// TestWhateverIsDecidedCanBeDerivedAgain takes a message through up to twelve claims. Versions
// (modes, weights, members, lanes, prices), keys, shared states, connections and answers change;
// some answers are lost or late. The record is verified after every step, and again without
// payload.
func TestWhateverIsDecidedCanBeDerivedAgain(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		l, job := newLife(drawnRouting(t)), drawnJob(t)
		bounds := drawnBounds(t, l.live)
		l.bound(bounds)
		for range 12 {
			if rapid.IntRange(0, 3).Draw(t, "new version") == 0 {
				next := drawnRouting(t)
				bounds = drawnBounds(t, next)
				l.apply(next, bounds)
				l.pass(time.Duration(rapid.IntRange(0, 2000).Draw(t, "pause")) * time.Millisecond)
			} else if next := l.record.Message.NextAt; next.After(l.now) {
				l.now = next
			}
			if rapid.IntRange(0, 5).Draw(t, "new key") == 0 {
				l.keys = verifyKeys[max(0, 2-len(l.keys)):]
			}
			seen, unready := drawnState(t, l.live, bounds, l.now)
			l.rooms = drawnRooms(t, len(l.live.Channels))
			d := l.decide(t, job, seen, unready, drawnScores(t, len(l.live.Routes[0].Members)))
			if d.State == ledger.Dead {
				return
			}
			l.check(t)
			if d.State == ledger.Sending {
				l.drawnEnd(t)
			}
			if row := &l.record.Message; row.State != ledger.Waiting && row.State != ledger.Retry &&
				(row.State != ledger.Accepted || row.NextAt.IsZero()) {
				return
			}
		}
	})
}

// drawnEnd ends the last attempt in any way.
func (l *life) drawnEnd(t *rapid.T) {
	l.pass(time.Duration(rapid.IntRange(0, 2000).Draw(t, "answered after")) * time.Millisecond)
	if rapid.IntRange(0, 4).Draw(t, "lost") == 0 {
		l.lose()
		l.check(t)
	}
	if !l.late || rapid.Bool().Draw(t, "late answer") {
		l.pass(time.Millisecond)
		l.answer(drawnResult(t, l.flight))
		l.check(t)
	}
}

func (l *life) check(t *rapid.T) {
	if found := l.verified(t); len(found) > 0 {
		t.Fatalf("differences: %+v\nin %s", found, l)
	}
	if found := l.verifiedWithout(t); len(found) > 0 {
		t.Fatalf("differences without payload: %+v\nin %s", found, l)
	}
}
