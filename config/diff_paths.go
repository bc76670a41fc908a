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
	routes.setOrder(r.routeNames())
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

func pathsOfChannel(l paths, c *Channel) {
	l.below("provider").set(c.Provider)
	for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
		l.below("settings", name).setAny(c.Settings[name], secretKey.MatchString(name))
	}
	l.below("capacity").setDefault(number(c.Capacity), number(int64(defaultCapacity)))
	pathsOfLimits(l.below("limits"), c.Limits)
	pathsOfPolicy(l.below("admission"), c.Policy)
	if c.Active.Max != 0 {
		l.below("active", "max").set(number(c.Active.Max))
	}
	l.below("active", "until").setDefault(c.Active.Until, untilSubmit)
	l.below("active", "hold").setDefault(period(c.Active.Hold), period(holdOf(c.Active.Until)))
	pathsOfReceipts(l.below("receipts"), c.Receipts)
	l.below("state").setDefault(string(c.State), string(Enabled))
	l.below("labels").setLabels(c.Labels)
	pathsOfPrice(l.below("price"), &c.Price)
	pathsOfContract(l.below("contract"), &c.Contract)
	pathsOfSenders(l.below("senders"), &c.Senders)
	l.below("test").setDefault(strconv.FormatBool(c.Test), "false")
}

// pathsOfLimits lists the max of each limit under its key, and its other values below that.
func pathsOfLimits(l paths, limits []admission.Limit) {
	for i := range limits {
		limit := &limits[i]
		at := l.limit(limit.Key())
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

// limit collects the values of a limit, below a list of limits.
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
func pathsOfSenders(l paths, s *Senders) {
	if s.Default != "" {
		l.below("default").set(plain(s.Default))
	}
	for i := range s.Rules {
		r, at := &s.Rules[i], l.below("rules", number(i+1))
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

func pathsOfBlocked(l paths, b *Blocked) {
	l.below("prefixes").setWords(b.Prefixes)
	l.below("countries").setWords(b.Countries)
	l.below("premium").setDefault(strconv.FormatBool(b.Premium), "false")
}

func pathsOfRoute(l paths, r *Route) {
	match := l.below("match")
	match.below("prefixes").setWords(r.Match.Prefixes)
	match.below("countries").setWords(r.Match.Countries)
	match.below("tenants").setWords(r.Match.Tenants)
	match.below("lanes").setWords(r.Match.Lanes)
	match.below("senders").setWords(r.Match.Senders)
	match.below("hours").setWords(r.Match.Hours.words())
	match.below("labels").setLabels(r.Match.Labels)
	l.below("mode").set(string(r.Mode))
	pathsOfMembers(l, r)
	l.below("fallback").setDefault(string(r.Fallback), string(fallbacks[0]))
	l.below("sticky").setDefault(strconv.FormatBool(r.Sticky), "false")
	pathsOfScoring(l.below("scoring"), &r.Scoring)
	if r.Health != nil {
		pathsOfHealth(l.below("health"), r.Health)
	}
	if r.NoReceipt != nil {
		l.below("no_receipt").below("after").set(period(r.NoReceipt.After))
	}
	if r.Quiet != nil {
		pathsOfQuiet(l.below("quiet"), r.Quiet)
	}
	l.below("wait").setDefault(period(r.Wait), "0s")
	l.below("allowed_countries").setWords(r.AllowedCountries)
	l.below("bypass_selectors").setDefault(strconv.FormatBool(r.BypassSelectors), "false")
	l.below("max_segments").setDefault(number(r.MaxSegments), number(defaultMaxSegments))
	for _, currency := range slices.Sorted(maps.Keys(r.PriceCap)) {
		l.below("price_cap", currency).set(amount(r.PriceCap[currency]))
	}
	l.below("substitute").setDefault(strconv.FormatBool(r.Substitute), "false")
	l.below("throttled").setDefault(throttledWord(r), throttleds[0])
	l.below("tolerance").setDefault(amount(int64(r.Tolerance)), amount(int64(DefaultTolerance)))
}

func throttledWord(r *Route) string {
	if r.HoldThrottled {
		return holdThrottled
	}
	return throttleds[0]
}

// pathsOfMembers lists the weights one by one. Effective weights are listed apart, and only where
// they differ.
func pathsOfMembers(l paths, r *Route) {
	if r.Weights == nil {
		l.below("channels").set("[" + strings.Join(r.Channels, ", ") + "]")
		return
	}
	weights := make([]string, len(r.Weights))
	for i, w := range r.Weights {
		weights[i] = w.Channel
		l.below("weights", w.Channel).set(w.Configured.String())
		if w.Weight != w.Configured {
			l.below("effective_weights", w.Channel).set(w.Weight.String())
		}
	}
	l.below("weights").setOrder(weights)
	if !slices.Equal(weights, r.Channels) { // no document can cause this
		l.below("channels").set("[" + strings.Join(r.Channels, ", ") + "]")
	}
}

func pathsOfScoring(l paths, s *Scoring) {
	l.setDefault(s.Kind(), defaultScoring)
	if s.Expression != nil {
		text := s.Expression.String()
		l.below("expression").add(pathValue{text: text, shown: strings.Join(strings.Fields(text),
			" ")})
	}
	if f := s.Function; f != nil {
		l.below("function").set(f.URL)
		if f.TokenFile != "" {
			l.below("token_file").set(plain(f.TokenFile))
		}
		l.below("allow_private").setDefault(strconv.FormatBool(f.AllowPrivate), "false")
		l.below("batch").setDefault(strconv.FormatBool(f.Batch), "false")
		l.below("batch_size").setDefault(number(f.BatchSize), number(defaultBatchSize))
		l.below("parameters").setLabels(f.Parameters)
		l.below("deadline").setDefault(period(f.Deadline), period(defaultDeadline))
		l.below("cache").setDefault(period(f.Cache), period(defaultCache))
	}
	l.below("descending").setDefault(strconv.FormatBool(!s.Ascending), "true")
}

func pathsOfHealth(l paths, h *Health) {
	l.below("errors").set(number(h.Errors))
	l.below("window").setDefault(period(h.Window), period(defaultHealthWindow))
	l.below("step").setDefault(number(h.Step), number(defaultHealthStep))
	l.below("floor").setDefault(number(h.Floor), number(defaultHealthFloor))
	l.below("interval").setDefault(period(h.Interval), period(defaultHealthInterval))
	l.below("quiet").setDefault(period(h.Quiet), period(defaultHealthQuiet))
	if r := h.Receipts; r != nil {
		receipts := l.below("receipts")
		receipts.below("delivered").set(number(r.Delivered))
		receipts.below("within").setDefault(period(r.Within), period(defaultReceiptsIn))
		receipts.below("window").setDefault(period(r.Window), period(defaultReceiptsWindow))
		receipts.below("least").setDefault(number(r.Least), number(defaultReceiptsLeast))
	}
}

func pathsOfLane(l paths, lane *Lane) {
	standard := newLane(lane.Name)
	l.below("topics").setWords(lane.Topics)
	l.below("ttl").setDefault(period(lane.TTL), period(standard.TTL))
	l.below("max_waiting").setDefault(number(lane.MaxWaiting), number(standard.MaxWaiting))
	l.below("ambiguous").setDefault(lane.Ambiguous, standard.Ambiguous)
	l.below("clarify").setDefault("["+strings.Join(lane.Clarify, ", ")+"]",
		"["+strings.Join(standard.Clarify, ", ")+"]")
	l.below("clarify_for").setDefault(period(lane.ClarifyFor), period(standard.ClarifyFor))
	l.below("ignore_opt_out").setDefault(strconv.FormatBool(lane.IgnoreOptOut), "false")
}

// routeNames are the names of all routes in order.
func (r *Routing) routeNames() []string {
	names := make([]string, len(r.Routes))
	for i := range r.Routes {
		names[i] = r.Routes[i].Name
	}
	return names
}

func pathsOfRates(l paths, r *Rates) {
	if r.Base == "" {
		return
	}
	l.below("base").set(r.Base)
	for _, currency := range slices.Sorted(maps.Keys(r.Per)) {
		l.below(currency).set(decimal(r.Per[currency], 9))
	}
}

// pathsOfReceipts adds nothing for a document that does not mention receipts.
func pathsOfReceipts(l paths, r Receipts) {
	switch {
	case r.None:
		l.set(noReceipts)
	case r.Within > 0:
		l.below("within").set(period(r.Within))
	}
}

// pathsOfInbound lists the values of the part about messages of subscribers.
func pathsOfInbound(l paths, in *Inbound) {
	keywords := in.Keywords
	if keywords.Stop == nil && keywords.Start == nil { // not read from a document
		keywords = standardKeywords
	}
	l.below("keywords", "stop").setDefault(words(keywords.Stop), words(standardKeywords.Stop))
	l.below("keywords", "start").setDefault(words(keywords.Start), words(standardKeywords.Start))
	for _, list := range []struct {
		name string
		of   []InboundSource
	}{{"numbers", in.Numbers}, {"channels", in.Channels}} {
		for i := range list.of {
			s, at := &list.of[i], l.below(list.name, list.of[i].Name)
			at.below("tenant").set(plain(s.Tenant))
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
