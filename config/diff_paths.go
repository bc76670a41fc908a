package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"dispatcher/admission"
)

// pathsOf lists every value of a routing in the order of its document. Every new field of Routing
// or below must be added here; TestDiffSeesEveryField checks that.
func pathsOf(r *Routing) []pathValue {
	var all []pathValue
	root := paths{all: &all}
	root.below("timezone").setDefault(r.Timezone.String(), "UTC")
	channels := root.below("channels")
	channels.setOrder(r.ChannelNames())
	for i := range r.Channels {
		pathsOfChannel(channels.below(r.Channels[i].Name), &r.Channels[i])
	}
	routes := root.below("routes")
	routes.setOrder(r.RouteNames())
	for i := range r.Routes {
		pathsOfRoute(routes.below(r.Routes[i].Name), &r.Routes[i])
	}
	pathsOfLimits(root.below("limits"), r.Limits)
	pathsOfCountryGroups(root.below("country_groups"), r.CountryGroups)
	pathsOfRates(root.below("rates"), &r.Rates)
	pathsOfBlocked(root.below("blocked"), &r.Blocked)
	pathsOfAllowed(root.below("allowed"), &r.Allowed)
	pathsOfPaused(root.below("paused"), &r.Paused)
	pathsOfGuards(root.below("guards"), r.Guards)
	lanes := root.below("lanes")
	lanes.setOrder(r.LaneNames())
	for i := range r.Lanes {
		pathsOfLane(lanes.below(r.Lanes[i].Name), &r.Lanes[i])
	}
	pathsOfInbound(root.below("inbound"), &r.Inbound)
	return all
}

func pathsOfChannel(p paths, c *Channel) {
	p.below("provider").set(c.Provider)
	for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
		p.below("settings", name).setAny(c.Settings[name], secretKey.MatchString(name))
	}
	p.below("capacity").setDefault(number(c.Capacity), number(int64(defaultCapacity)))
	pathsOfLimits(p.below("limits"), c.Limits)
	pathsOfPolicy(p.below("admission"), c.Policy)
	if c.Active.Max != 0 {
		p.below("active", "max").set(number(c.Active.Max))
	}
	p.below("active", "until").setDefault(c.Active.Until, untilSubmit)
	p.below("active", "hold").setDefault(period(c.Active.Hold), period(holdOf(c.Active.Until)))
	pathsOfReceipts(p.below("receipts"), c.Receipts)
	p.below("state").setDefault(string(c.State), string(Enabled))
	p.below("labels").setLabels(c.Labels)
	pathsOfPrice(p.below("price"), &c.Price)
	pathsOfContract(p.below("contract"), &c.Contract)
	pathsOfSenders(p.below("senders"), &c.Senders)
	p.below("test").setDefault(strconv.FormatBool(c.Test), "false")
}

// pathsOfLimits lists the max of each limit under its key, and its other values below that.
func pathsOfLimits(p paths, limits []admission.Limit) {
	for i := range limits {
		limit := &limits[i]
		at := p.limit(limit.Key())
		at.set(limitMax(limit))
		at.below("sliding").setDefault(strconv.FormatBool(limit.Sliding), "false")
		if limit.Burst != 0 {
			at.below("burst").add(pathValue{text: number(limit.Burst), shown: burstText(limit)})
		}
		for _, r := range limit.Reserve {
			at.below("reserve", r.Lane).set(number(r.Percent) + "%")
		}
	}
}

// limit is the path of one limit, below the path of a list of limits.
func (p paths) limit(k admission.Key) paths {
	if k.Scope.Tenant != "" {
		p = p.below("tenant", k.Scope.Tenant)
	}
	if k.Scope.Prefix != "" {
		p = p.below("prefix", k.Scope.Prefix)
	}
	return p.below(k.Window.String(), k.Unit.String())
}

// limitMax writes the max of a limit as the document does; for money with its currency.
func limitMax(l *admission.Limit) string {
	text := number(l.Max)
	switch {
	case l.Window == admission.Prepaid:
		text = "as topped up in"
	case l.Unit == admission.Money:
		text = amount(l.Max)
	}
	if l.Currency != "" {
		text += " " + l.Currency
	}
	return text
}

func pathsOfPolicy(l paths, p admission.Policy) {
	word := exactPolicy
	if p != nil {
		word = p.String()
	}
	l.setDefault(word, exactPolicy)
	if c, ok := p.(admission.Curve); ok {
		l.below("curve_factor").setDefault(strconv.FormatFloat(c.Factor, 'g', -1, 64),
			number(defaultCurveFactor))
	}
}

func pathsOfPrice(l paths, p *Price) {
	if p.Currency == "" {
		return
	}
	l.below("currency").set(p.Currency)
	for i := range p.Lists {
		list, at := &p.Lists[i], l
		if !list.From.IsZero() {
			at = l.below("from", list.From.Format(time.RFC3339))
		}
		at.below("default").set(amount(list.Default))
		at.below("prefixes").setAmounts(list.Prefixes)
		at.below("countries").setAmounts(list.Countries)
		at.below("networks").setAmounts(list.Networks)
	}
}

// setAmounts adds amounts of money by name.
func (p paths) setAmounts(amounts map[string]int64) {
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		p.below(name).set(amount(amounts[name]))
	}
}

// pathsOfSenders lists rules by position, because the first that fits applies.
func pathsOfSenders(p paths, s *Senders) {
	if s.Default != "" {
		p.below("default").set(plain(s.Default))
	}
	for i := range s.Rules {
		r, at := &s.Rules[i], p.below("rules", number(i+1))
		kinds := make([]string, len(r.Allow))
		for k := range r.Allow {
			kinds[k] = r.Allow[k].String()
		}
		at.below("countries").setWords(r.Countries)
		at.below("allow").setWords(kinds)
		at.below("ids").setWords(r.IDs)
		if r.From != "" {
			at.below("from").set(plain(r.From))
		}
	}
}

func pathsOfBlocked(p paths, b *Blocked) {
	p.below("prefixes").setWords(b.Prefixes)
	p.below("countries").setWords(b.Countries)
	p.below("premium").setDefault(strconv.FormatBool(b.Premium), "false")
}

func pathsOfRoute(p paths, r *Route) {
	match := p.below("match")
	match.below("prefixes").setWords(r.Match.Prefixes)
	match.below("countries").setWords(r.Match.Countries)
	match.below("tenants").setWords(r.Match.Tenants)
	match.below("lanes").setWords(r.Match.Lanes)
	match.below("senders").setWords(r.Match.Senders)
	match.below("hours").setWords(r.Match.Hours.words())
	match.below("labels").setLabels(r.Match.Labels)
	p.below("mode").set(string(r.Mode))
	pathsOfMembers(p, r)
	p.below("fallback").setDefault(string(r.Fallback), string(fallbacks[0]))
	p.below("sticky").setDefault(strconv.FormatBool(r.Sticky), "false")
	pathsOfScoring(p.below("scoring"), &r.Scoring)
	if r.Health != nil {
		pathsOfHealth(p.below("health"), r.Health)
	}
	if r.NoReceipt != nil {
		p.below("no_receipt").below("after").set(period(r.NoReceipt.After))
	}
	if r.Quiet != nil {
		pathsOfQuiet(p.below("quiet"), r.Quiet)
	}
	p.below("wait").setDefault(period(r.Wait), "0s")
	p.below("allowed_countries").setWords(r.AllowedCountries)
	p.below("bypass_selectors").setDefault(strconv.FormatBool(r.BypassSelectors), "false")
	p.below("max_segments").setDefault(number(r.MaxSegments), number(defaultMaxSegments))
	for _, currency := range slices.Sorted(maps.Keys(r.PriceCap)) {
		p.below("price_cap", currency).set(amount(r.PriceCap[currency]))
	}
	p.below("substitute").setDefault(strconv.FormatBool(r.Substitute), "false")
	p.below("throttled").setDefault(throttledWord(r), throttleds[0])
	p.below("tolerance").setDefault(amount(int64(r.Tolerance)), amount(int64(DefaultTolerance)))
}

func throttledWord(r *Route) string {
	if r.HoldThrottled {
		return holdThrottled
	}
	return throttleds[0]
}

// pathsOfMembers lists the weights one by one. Effective weights are listed separately, and only
// where they differ.
func pathsOfMembers(p paths, r *Route) {
	if r.Weights == nil {
		p.below("channels").set("[" + strings.Join(r.Channels, ", ") + "]")
		return
	}
	weights := make([]string, len(r.Weights))
	for i, w := range r.Weights {
		weights[i] = w.Channel
		p.below("weights", w.Channel).set(w.Configured.String())
		if w.Weight != w.Configured {
			p.below("effective_weights", w.Channel).set(w.Weight.String())
		}
	}
	p.below("weights").setOrder(weights)
	if !slices.Equal(weights, r.Channels) { // no document can cause this
		p.below("channels").set("[" + strings.Join(r.Channels, ", ") + "]")
	}
}

func pathsOfScoring(p paths, s *Scoring) {
	p.setDefault(s.Kind(), defaultScoring)
	if s.Expression != nil {
		text := s.Expression.String()
		p.below("expression").add(pathValue{text: text, shown: strings.Join(strings.Fields(text),
			" ")})
	}
	if f := s.Function; f != nil {
		p.below("function").set(f.URL)
		if f.TokenFile != "" {
			p.below("token_file").set(plain(f.TokenFile))
		}
		p.below("allow_private").setDefault(strconv.FormatBool(f.AllowPrivate), "false")
		p.below("batch").setDefault(strconv.FormatBool(f.Batch), "false")
		p.below("batch_size").setDefault(number(f.BatchSize), number(defaultBatchSize))
		p.below("parameters").setLabels(f.Parameters)
		p.below("deadline").setDefault(period(f.Deadline), period(defaultDeadline))
		p.below("cache").setDefault(period(f.Cache), period(defaultCache))
	}
	p.below("descending").setDefault(strconv.FormatBool(!s.Ascending), "true")
}

func pathsOfHealth(p paths, h *Health) {
	p.below("errors").set(number(h.Errors))
	p.below("window").setDefault(period(h.Window), period(defaultHealthWindow))
	p.below("step").setDefault(number(h.Step), number(defaultHealthStep))
	p.below("floor").setDefault(number(h.Floor), number(defaultHealthFloor))
	p.below("interval").setDefault(period(h.Interval), period(defaultHealthInterval))
	p.below("quiet").setDefault(period(h.Quiet), period(defaultHealthQuiet))
	if r := h.Receipts; r != nil {
		receipts := p.below("receipts")
		receipts.below("delivered").set(number(r.Delivered))
		receipts.below("within").setDefault(period(r.Within), period(defaultReceiptsIn))
		receipts.below("window").setDefault(period(r.Window), period(defaultReceiptsWindow))
		receipts.below("least").setDefault(number(r.Least), number(defaultReceiptsLeast))
	}
}

func pathsOfLane(p paths, lane *Lane) {
	standard := newLane(lane.Name)
	p.below("topics").setWords(lane.Topics)
	p.below("ttl").setDefault(period(lane.TTL), period(standard.TTL))
	p.below("max_waiting").setDefault(number(lane.MaxWaiting), number(standard.MaxWaiting))
	p.below("ambiguous").setDefault(lane.Ambiguous, standard.Ambiguous)
	p.below("clarify").setDefault("["+strings.Join(lane.Clarify, ", ")+"]",
		"["+strings.Join(standard.Clarify, ", ")+"]")
	p.below("clarify_for").setDefault(period(lane.ClarifyFor), period(standard.ClarifyFor))
	p.below("ignore_opt_out").setDefault(strconv.FormatBool(lane.IgnoreOptOut), "false")
}

func pathsOfRates(p paths, r *Rates) {
	if r.Base == "" {
		return
	}
	p.below("base").set(r.Base)
	for _, currency := range slices.Sorted(maps.Keys(r.Per)) {
		p.below(currency).set(decimal(r.Per[currency], 9))
	}
}

// pathsOfReceipts adds nothing for a document that does not mention receipts.
func pathsOfReceipts(p paths, r Receipts) {
	switch {
	case r.None:
		p.set(noReceipts)
	case r.Within > 0:
		p.below("within").set(period(r.Within))
	}
}

// pathsOfInbound lists the values of the part about messages of subscribers.
func pathsOfInbound(p paths, in *Inbound) {
	keywords := in.Keywords
	if keywords.Stop == nil && keywords.Start == nil { // not read from a document
		keywords = standardKeywords
	}
	p.below("keywords", "stop").setDefault(words(keywords.Stop), words(standardKeywords.Stop))
	p.below("keywords", "start").setDefault(words(keywords.Start), words(standardKeywords.Start))
	for _, list := range []struct {
		name string
		of   []InboundSource
	}{{"numbers", in.Numbers}, {"channels", in.Channels}} {
		for i := range list.of {
			s, at := &list.of[i], p.below(list.name, list.of[i].Name)
			at.below("tenant").set(plain(s.Tenant))
			at.below("channels").setWords(s.Channels)
			at.below("keywords", "stop").setWords(s.Keywords.Stop)
			at.below("keywords", "start").setWords(s.Keywords.Start)
		}
	}
}

// words is a list whose order has no meaning, as text.
func words(list []string) string {
	shown := make([]string, len(list))
	for i, w := range list {
		shown[i] = plain(w)
	}
	slices.Sort(shown)
	return strings.Join(shown, ", ")
}
