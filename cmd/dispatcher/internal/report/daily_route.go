package report

import (
	"cmp"
	"maps"
	"slices"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/ledger"
)

// routeDay collects what was agreed for one route on one day, and what happened.
type routeDay struct {
	name     string
	route    *config.Route // of the current routing; nil when it has no route of that name
	channels []string      // in the order of the newest version
	inForce  []ledger.InForce
	byTime   map[string]float64 // agreed shares by time; nil if the route did not draw
	// latest is the newest version with figures, and latestDoc its document.
	latest    int64
	latestDoc *config.Routing

	counts   map[string]int64 // first choices by channel, of every mode
	total    int64            // of counts
	segments map[string]int64 // of counts
	// billed is what any channel billed for carried messages, by first choice and currency.
	billed  map[string]map[string]int64
	drawn   versionSums      // first choices by a draw, of messages received on the day
	carried map[string]int64 // messages by the channel that carried them, of every mode
	carries int64            // of carried
	// traffic counts the messages of carried whose first choice was drawn: only these have an agreed
	// share. firsts counts the same messages by their first choice.
	traffic, firsts versionSums
	// For the waterfall: drawnSegments are the segments of drawn; paid is what was billed for the
	// messages of firsts, by currency; flows are all carried messages; texts are the segments of
	// their texts by first choice; ends are the messages that ended without a channel, by first
	// choice and cause.
	drawnSegments versionSums
	paid          map[string]*versionSums
	flows         map[flow]*quantity
	texts         map[string]int64
	ends          map[string]map[string]*quantity

	moves map[string][]Move         // by first choice
	docs  map[cause]*config.Routing // the newest document with a move of that cause
	// folded are the causes whose limit is not named; see fold.
	folded map[cause]bool
	// tried has the attempts by channel: a row for each currency and, if the figures have reasons,
	// for each reason.
	tried map[string][]*ledger.DailyRow
}

// cause is a channel, and why it did not carry messages that were drawn for it: a word, and the
// limit without a free slot as admission.Key.On, if that is the reason and was recorded.
type cause struct{ channel, word, limit string }

// flow identifies messages by their first choice and why it did not carry them, and by the channel
// that carried them, which may be the first choice.
type flow struct {
	cause
	to string
}

// newRouteDay collects the figures of one route.
func newRouteDay(f *Figures, name string) *routeDay {
	d := &routeDay{
		name: name, route: f.Current.Route(name),
		inForce: f.InForce, byTime: f.agreedByTime(name), counts: map[string]int64{},
		segments: map[string]int64{}, billed: map[string]map[string]int64{},
		paid: map[string]*versionSums{}, flows: map[flow]*quantity{},
		texts: map[string]int64{}, ends: map[string]map[string]*quantity{},
		carried: map[string]int64{}, moves: map[string][]Move{},
		docs: map[cause]*config.Routing{}, tried: map[string][]*ledger.DailyRow{},
	}
	for i := range f.Rows {
		if r := &f.Rows[i]; r.Route == name {
			d.try(r)
			d.channels = append(d.channels, r.Channel)
		}
	}
	for i := range f.Choices {
		if c := &f.Choices[i]; c.Route == name {
			d.choose(c, f.Versions[c.Version])
		}
	}
	d.fold(f.Carried)
	for i := range f.Carried {
		if c := &f.Carried[i]; c.Route == name {
			d.carry(c, f.Versions[c.Version])
		}
	}
	d.lower()
	var order []string
	if d.route != nil {
		order = d.route.Channels
		d.channels = append(d.channels, order...)
	}
	d.channels = slices.AppendSeq(d.channels, maps.Keys(d.drawn.agreed))
	d.channels = inOrder(slices.AppendSeq(d.channels, maps.Keys(d.traffic.agreed)), order)
	for _, tried := range d.tried {
		slices.SortFunc(tried, func(a, b *ledger.DailyRow) int {
			return cmp.Or(cmp.Compare(a.Currency, b.Currency), byReason(a.Reason, b.Reason))
		})
	}
	for _, moves := range d.moves {
		slices.SortFunc(moves, func(a, b Move) int {
			return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.Cause, b.Cause),
				cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Channel, b.Channel))
		})
	}
	return d
}

// try adds the figures of attempts on a channel.
func (d *routeDay) try(r *ledger.DailyRow) {
	for _, known := range d.tried[r.Channel] {
		if known.Currency == r.Currency && known.Reason == r.Reason {
			known.Add(r)
			return
		}
	}
	sum := *r // a copy: other reports use the same figures
	d.tried[r.Channel] = append(d.tried[r.Channel], &sum)
}

// reasons of an attempt, in the order in which reports list them.
var reasons = []string{"first_choice", "fallback", "retry", "resend", "no_receipt"}

func byReason(a, b string) int {
	return cmp.Compare(slices.Index(reasons, a), slices.Index(reasons, b))
}

// see keeps the newest version with figures.
func (d *routeDay) see(version int64, doc *config.Routing) {
	if version >= d.latest && doc != nil {
		d.latest, d.latestDoc = version, doc
	}
}

// draws reports whether the route has agreed shares under a version: whether it draws. It is true
// for nil, a version without the route: draws recorded under it are counted, and no channel is
// expected to have any.
func draws(route *config.Route) bool { return route == nil || route.Draws() }

// choose adds the first choices of one channel under one version of the route, and those of them
// that no channel carried.
func (d *routeDay) choose(c *ledger.ChoiceRow, doc *config.Routing) {
	d.see(c.Version, doc)
	d.counts[c.Channel] += c.FirstChoice
	d.total += c.FirstChoice
	d.segments[c.Channel] += c.Segments
	d.channels = append(d.channels, c.Channel)
	ended := []Move{{Cause: c.Cause, Messages: c.FirstChoice}}
	if c.Cause == "" { // carried, or a day without steps
		ended = []Move{
			{Cause: causeRejected, Messages: c.Rejected},
			{Cause: causeFailed, Messages: c.Failed},
			{Cause: causeNoAnswer, Messages: c.Unknown},
			{Cause: causeOpen, Messages: c.Open},
		}
	}
	if d.ends[c.Channel] == nil {
		d.ends[c.Channel] = map[string]*quantity{}
	}
	for _, lost := range ended {
		d.move(c.Channel, lost, doc)
		sum := d.ends[c.Channel][lost.Cause]
		if sum == nil {
			sum = &quantity{}
			d.ends[c.Channel][lost.Cause] = sum
		}
		sum.messages += lost.Messages
		if c.Cause != "" {
			sum.segments += c.Segments
		}
	}
	if route := doc.Route(d.name); draws(route) {
		d.drawn.add(c.Version, route, c.Channel, c.FirstChoice)
		d.drawnSegments.add(c.Version, route, c.Channel, c.Segments)
	}
}

// carry adds the messages that one channel carried, of another's first choices or its own.
func (d *routeDay) carry(c *ledger.CarriedRow, doc *config.Routing) {
	d.see(c.Version, doc)
	d.carried[c.Channel] += c.Messages
	d.carries += c.Messages
	d.channels = append(d.channels, c.Channel, c.FirstChoice)
	why := d.causeOf(c)
	if c.Channel != c.FirstChoice {
		moved := Move{
			Cause: why.word, Limit: why.limit, Channel: c.Channel, Messages: c.Messages,
			Segments: c.Segments,
		}
		if c.CostMicros > 0 {
			moved.Costs = []MoveCost{{c.Currency, c.CostMicros}}
		}
		d.move(c.FirstChoice, moved, doc)
	}
	if route := doc.Route(d.name); draws(route) {
		d.traffic.add(c.Version, route, c.Channel, c.Messages)
		d.firsts.add(c.Version, route, c.FirstChoice, c.Messages)
		if d.paid[c.Currency] == nil {
			d.paid[c.Currency] = &versionSums{}
		}
		d.paid[c.Currency].add(c.Version, route, c.FirstChoice, c.CostMicros)
	}
	if d.billed[c.FirstChoice] == nil {
		d.billed[c.FirstChoice] = map[string]int64{}
	}
	d.billed[c.FirstChoice][c.Currency] += c.CostMicros
	d.texts[c.FirstChoice] += c.TextSegments
	f := flow{why, c.Channel}
	if d.flows[f] == nil {
		d.flows[f] = &quantity{}
	}
	*d.flows[f] = d.flows[f].plus(&quantity{
		c.Messages, c.Segments, map[string]int64{c.Currency: c.CostMicros},
	})
}

// mostLimits bounds the limits that are named for one channel and word. Each tenant may have one.
const mostLimits = 10

// fold finds the causes whose limits are not named. For each channel and word, the mostLimits
// limits with the most messages are named, and the others are counted together.
func (d *routeDay) fold(carried []ledger.CarriedRow) {
	sums := map[cause]int64{}
	for i := range carried {
		if c := &carried[i]; c.Route == d.name {
			if why := d.causeOf(c); why.limit != "" {
				sums[why] += c.Messages
			}
		}
	}
	named := map[cause]int{}
	for _, why := range byMessages(sums) {
		all := cause{why.channel, why.word, ""}
		if named[all]++; named[all] > mostLimits {
			if d.folded == nil {
				d.folded = map[cause]bool{}
			}
			d.folded[why] = true
		}
	}
}

// causeOf is the cause of carried messages.
func (d *routeDay) causeOf(c *ledger.CarriedRow) cause {
	word, limit, err := decide.ReadReason(c.Cause)
	why := cause{c.FirstChoice, word, limit.On(c.FirstChoice)}
	if err != nil || d.folded[why] {
		why.limit = ""
	}
	return why
}

// move adds messages that were drawn for a channel and that it did not carry.
func (d *routeDay) move(channel string, m Move, doc *config.Routing) {
	if m.Messages == 0 {
		return
	}
	d.docs[m.of(channel)] = doc
	d.moves[channel] = addMove(d.moves[channel], m)
}

// addMove adds a move to the one with the same cause and channel, or appends it.
func addMove(moves []Move, m Move) []Move {
	at := slices.IndexFunc(moves, func(o Move) bool {
		return o.Cause == m.Cause && o.Limit == m.Limit && o.Channel == m.Channel
	})
	if at < 0 {
		return append(moves, m)
	}
	moves[at].Messages += m.Messages
	moves[at].Segments += m.Segments
	costs := slices.Clone(moves[at].Costs) // another report may share the slice
	for _, c := range m.Costs {
		same := slices.IndexFunc(costs, func(o MoveCost) bool { return o.Currency == c.Currency })
		if same < 0 {
			costs = append(costs, c)
		} else {
			costs[same].CostMicros += c.CostMicros
		}
	}
	moves[at].Costs = costs
	return moves
}

// lower adds, as moved, the messages that channels did not get because health weighting had lowered
// their weights.
func (d *routeDay) lower() {
	for channel, agreed := range d.traffic.agreed {
		if less := agreed - d.traffic.effective[channel]; less >= 0.5 {
			d.move(channel, Move{Cause: causeHealth, Messages: int64(less + 0.5)}, d.latestDoc)
		}
	}
}

// versionSums counts messages by channel and version, and computes the messages expected by the
// shares of the versions.
type versionSums struct {
	counts map[string]int64
	total  int64
	// agreed and effective are the expected messages by channel: by the weights of the document, and
	// by the effective weights. They are nil when nothing was counted.
	agreed, effective map[string]float64
	tolerance         float64 // of the routes of the versions, times the messages
	versions          map[int64]*versionSum
}

// versionSum has the counts and shares of one version.
type versionSum struct {
	counts            map[string]int64
	total             int64
	sticky            bool               // see Sticky
	agreed, effective map[string]float64 // shares
}

// someSticky reports whether messages were counted under a version that draws by recipient.
func (s *versionSums) someSticky() bool {
	for _, v := range s.versions {
		if v.sticky {
			return true
		}
	}
	return false
}

// add counts messages of a channel under a version of the route.
func (s *versionSums) add(version int64, route *config.Route, channel string, messages int64) {
	if s.versions == nil {
		*s = versionSums{
			counts: map[string]int64{}, agreed: map[string]float64{},
			effective: map[string]float64{}, versions: map[int64]*versionSum{},
		}
	}
	v := s.versions[version]
	if v == nil {
		v = &versionSum{
			counts: map[string]int64{}, agreed: agreedShares(route),
			effective: effectiveShares(route), sticky: route != nil && route.Sticky,
		}
		s.versions[version] = v
	}
	v.counts[channel] += messages
	v.total += messages
	s.counts[channel] += messages
	s.total += messages
	s.tolerance += toleranceOf(route) * float64(messages)
	for name, share := range v.agreed {
		s.agreed[name] += share * float64(messages)
	}
	for name, share := range v.effective {
		s.effective[name] += share * float64(messages)
	}
}

// sticky reports whether all messages were counted under versions that draw by recipient.
func (s *versionSums) sticky() bool {
	for _, v := range s.versions {
		if !v.sticky {
			return false
		}
	}
	return len(s.versions) > 0
}

// samples returns the counts and expected counts of each version, in the order of channels.
// Versions that draw by recipient are left out, because the tests assume independent draws.
func (s *versionSums) samples(
	channels []string, shares func(*versionSum) map[string]float64,
) []Sample {
	out := make([]Sample, 0, len(s.versions))
	for _, version := range slices.Sorted(maps.Keys(s.versions)) {
		v := s.versions[version]
		if v.sticky {
			continue
		}
		one := Sample{Counts: make([]int64, len(channels)), Expected: make([]float64,
			len(channels))}
		for i, channel := range channels {
			one.Counts[i], one.Expected[i] = v.counts[channel], shares(v)[channel]*float64(v.total)
		}
		out = append(out, one)
	}
	return out
}

// expected returns the messages expected by channel, by shares of the versions.
func (s *versionSums) expected(shares func(*versionSum) map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for _, v := range s.versions {
		for channel, share := range shares(v) {
			out[channel] += share * float64(v.total)
		}
	}
	return out
}

func agreedOf(v *versionSum) map[string]float64    { return v.agreed }
func effectiveOf(v *versionSum) map[string]float64 { return v.effective }
