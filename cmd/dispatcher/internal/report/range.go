package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"dispatcher/config"
	"dispatcher/ledger"
)

// Unit is how long the periods of a report are.
type Unit string

// Units of a report.
const (
	Day   Unit = "day"
	Week  Unit = "week" // of ISO 8601: from Monday to Sunday
	Month Unit = "month"
)

// Period names the period of a day: 2026-11-21, 2026-W47 or 2026-11.
func (u Unit) Period(day time.Time) string {
	switch u {
	case Week:
		year, week := day.ISOWeek()
		return fmt.Sprintf("%d-W%02d", year, week)
	case Month:
		return day.Format("2006-01")
	case Day:
	}
	return day.Format(time.DateOnly)
}

// First is the first day of the period around a day.
func (u Unit) First(day time.Time) time.Time {
	switch u {
	case Week:
		return day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
	case Month:
		return day.AddDate(0, 0, 1-day.Day())
	case Day:
	}
	return day
}

// last is the last day of the period around a day.
func (u Unit) last(day time.Time) time.Time {
	switch u {
	case Week:
		return u.First(day).AddDate(0, 0, 6)
	case Month:
		return u.First(day).AddDate(0, 1, -1)
	case Day:
	}
	return day
}

// ClosedPeriod is a period all of whose days are closed.
type ClosedPeriod struct {
	Period  string
	Dates   []string
	Changed time.Time // when the figures of one of its days changed last
}

// ClosedPeriods are those of some closed days. The first one begins with the first day that was
// ever closed, whatever its date.
func ClosedPeriods(unit Unit, days []ledger.ClosedDay) (out []ClosedPeriod, err error) {
	var whole bool
	var next time.Time // the day that has to follow within the period
	for i, d := range days {
		day, err := time.Parse(time.DateOnly, d.Date)
		if err != nil {
			return nil, fmt.Errorf("closed day %q: %w", d.Date, err)
		}
		if name := unit.Period(day); len(out) == 0 || out[len(out)-1].Period != name {
			if !whole && len(out) > 0 {
				out = out[:len(out)-1]
			}
			out = append(out, ClosedPeriod{Period: name})
			if next = unit.First(day); i == 0 {
				next = day
			}
		}
		p := &out[len(out)-1]
		p.Dates = append(p.Dates, d.Date)
		if d.Changed.After(p.Changed) {
			p.Changed = d.Changed
		}
		whole = day.Equal(next) && day.Equal(unit.last(day))
		if day.Equal(next) {
			next = day.AddDate(0, 0, 1)
		}
	}
	if !whole && len(out) > 0 {
		out = out[:len(out)-1]
	}
	return out, nil
}

// Dimension is what the rows of a range are told apart by.
type Dimension string

// Dimensions of a range.
const (
	ByHour     Dimension = "hour"
	ByRoute    Dimension = "route"
	ByChannel  Dimension = "channel"
	ByTenant   Dimension = "tenant"
	ByCountry  Dimension = "country"
	BySender   Dimension = "sender"
	ByCurrency Dimension = "currency"
	ByReason   Dimension = "reason"
)

// Dimensions are all of them.
var Dimensions = []Dimension{
	ByHour, ByRoute, ByChannel, ByTenant, ByCountry, BySender, ByCurrency, ByReason,
}

// ParseDimensions reads the names of dimensions; none are route and channel.
func ParseDimensions(names []string) ([]Dimension, error) {
	if len(names) == 0 {
		return []Dimension{ByRoute, ByChannel}, nil
	}
	var out []Dimension
	for _, name := range names {
		d := Dimension(strings.TrimSpace(name))
		switch {
		case !slices.Contains(Dimensions, d):
			return nil, fmt.Errorf("%q is no dimension: there are %s", name, dimensionNames())
		case slices.Contains(out, d):
			return nil, fmt.Errorf("%s is named twice", d)
		}
		out = append(out, d)
	}
	return out, nil
}

func dimensionNames() string {
	names := make([]string, len(Dimensions))
	for i, d := range Dimensions {
		names[i] = string(d)
	}
	return enumerate(names)
}

// SplitOf is what the ledger has to tell apart for some dimensions.
func SplitOf(by []Dimension) ledger.Split {
	return ledger.Split{
		Hour: slices.Contains(by, ByHour), Tenant: slices.Contains(by, ByTenant),
		CallingCode: slices.Contains(by, ByCountry), Sender: slices.Contains(by, BySender),
		Reason: slices.Contains(by, ByReason),
	}
}

// RangeFigures are what the ledger knows of some days.
type RangeFigures struct {
	Unit Unit
	By   []Dimension
	// Days are noons of consecutive days, each in its time zone.
	Days []time.Time
	// Complete is false when the last day is not over.
	Complete bool
	Ledger   ledger.RangeFigures
	Versions map[int64]*config.Routing
	Current  *config.Routing
	// Checkpoint is that of Figures.
	Checkpoint string
}

// Range is a report of several periods.
type Range struct {
	Unit     Unit        `json:"unit"`
	Day      string      `json:"day"` // the first one
	LastDay  string      `json:"last_day"`
	Timezone string      `json:"timezone"` // of the last day
	By       []Dimension `json:"by"`
	Complete bool        `json:"complete"`
	// OpenDays are those that are not closed: their figures may still change.
	OpenDays []string `json:"open_days"`
	// WithoutSteps are days that an earlier release closed. The waterfall of a period that has one
	// has messages alone.
	WithoutSteps []string `json:"without_steps"`
	// Checkpoint is the signed head of the log of hashes; empty where nothing is sealed.
	Checkpoint string          `json:"checkpoint"`
	Rows       []RangeRow      `json:"rows"`
	Totals     []RangeTotal    `json:"totals"`
	Routes     []PeriodVerdict `json:"routes"`
}

// Found reports whether a period has anything that somebody should look at.
func (r *Range) Found() bool {
	return slices.ContainsFunc(r.Routes, func(v PeriodVerdict) bool { return v.Found() })
}

// RangePeriod is one period of a range, or the part of one that the range has.
type RangePeriod struct {
	Period   string `json:"period"`
	Unit     Unit   `json:"unit"`
	Day      string `json:"day"` // the first day
	LastDay  string `json:"last_day"`
	Timezone string `json:"timezone"` // of the last day
}

// RangeRow is what one period came to for one value of each dimension, in one currency. What it
// was not asked to tell apart is empty. Messages have neither currency nor reason: where rows
// differ in these alone, first choices, carried messages, shares and moves stand in the first one.
//
// With the dimensions route and channel a row is that of the daily report. In general a share is a
// row's part among the rows that differ from it in the last dimension only.
type RangeRow struct {
	RangePeriod
	Hour    *int   `json:"hour"`
	Tenant  string `json:"tenant"`
	Country string `json:"country"` // calling code, as +44
	Sender  string `json:"sender"`  // a name, a short code, or long_code for a number
	Reason  string `json:"reason"`
	DailyRow
}

// RangeTotal sums the rows of a period, or of the range where the period is empty, in one currency.
type RangeTotal struct {
	Period string `json:"period"`
	DailyTotal
}

// PeriodVerdict is a route's verdict in one period.
type PeriodVerdict struct {
	RangePeriod
	RouteVerdict
}

// NewRange adds up periods and assesses each route in each of them.
func NewRange(f *RangeFigures) Range {
	first, last := f.Days[0], f.Days[len(f.Days)-1]
	r := Range{
		Unit: f.Unit, Day: first.Format(time.DateOnly), LastDay: last.Format(time.DateOnly),
		Timezone: last.Location().String(), By: f.By, Complete: f.Complete, Checkpoint: f.Checkpoint,
		OpenDays:     append([]string{}, f.Ledger.Open...),
		WithoutSteps: append([]string{}, f.Ledger.WithoutSteps...), Rows: []RangeRow{},
		Totals: []RangeTotal{}, Routes: []PeriodVerdict{},
	}
	parts := map[string][]*ledger.PartFigures{}
	for i := range f.Ledger.Parts {
		p := &f.Ledger.Parts[i]
		parts[p.Period] = append(parts[p.Period], p)
	}
	var all []DailyRow
	for _, period := range f.periods() {
		rows := f.rows(period, parts[period.Period])
		r.Rows = append(r.Rows, rows...)
		daily := make([]DailyRow, len(rows))
		for i := range rows {
			daily[i] = rows[i].DailyRow
		}
		all = append(all, daily...)
		r.Totals = append(r.Totals, rangeTotals(period.Period, daily)...)
		whole := f.figures(period, parts[period.Period]...)
		for _, name := range whole.routes() {
			r.Routes = append(r.Routes, PeriodVerdict{period, newRouteDay(whole, name).verdict()})
		}
	}
	r.Totals = append(r.Totals, rangeTotals("", all)...)
	return r
}

// periods are those of the days, in their order.
func (f *RangeFigures) periods() (out []RangePeriod) {
	for _, day := range f.Days {
		name, date := f.Unit.Period(day), day.Format(time.DateOnly)
		if n := len(out); n == 0 || out[n-1].Period != name {
			out = append(out, RangePeriod{Period: name, Unit: f.Unit, Day: date})
		}
		last := &out[len(out)-1]
		last.LastDay, last.Timezone = date, day.Location().String()
	}
	return out
}

// merged puts the parts together that differ in what was not asked for: the figures may tell more
// apart than one report does.
func (f *RangeFigures) merged(parts []*ledger.PartFigures) (out [][]*ledger.PartFigures) {
	at := map[ledger.Part]int{}
	for _, p := range parts {
		part := f.asked(p.Part)
		i, known := at[part]
		if !known {
			i = len(out)
			at[part], out = i, append(out, nil)
		}
		out[i] = append(out[i], p)
	}
	return out
}

// asked is a part without what was not asked for.
func (f *RangeFigures) asked(p ledger.Part) ledger.Part {
	if !f.by(ByHour) {
		p.Hour = 0
	}
	if !f.by(ByTenant) {
		p.Tenant = ""
	}
	if !f.by(ByCountry) {
		p.CallingCode = 0
	}
	if !f.by(BySender) {
		p.Sender = ""
	}
	return p
}

// figures are those of some parts of a period together.
func (f *RangeFigures) figures(period RangePeriod, parts ...*ledger.PartFigures) *Figures {
	sum := &Figures{Versions: f.Versions, Current: f.Current}
	for _, day := range f.Ledger.WithoutSteps {
		if period.Day <= day && day <= period.LastDay {
			sum.WithoutSteps = append(sum.WithoutSteps, day)
		}
	}
	for _, p := range parts {
		sum.Rows = append(sum.Rows, p.Rows...)
		sum.Choices = append(sum.Choices, p.Choices...)
		sum.Carried = append(sum.Carried, p.Carried...)
	}
	for i := range sum.Rows {
		if !f.by(ByReason) {
			sum.Rows[i].Reason = ""
		}
	}
	return sum
}

// rangeTotals are totals over all routes.
func rangeTotals(period string, rows []DailyRow) (out []RangeTotal) {
	for _, t := range totals(rows) {
		t.Route = ""
		out = append(out, RangeTotal{period, t})
	}
	slices.SortFunc(out, func(a, b RangeTotal) int { return cmp.Compare(a.Currency, b.Currency) })
	return out
}

// rangeKey holds the values of the dimensions that were asked for.
type rangeKey struct {
	hour                                    int
	route, channel, tenant, country, sender string
}

// rangeGroup is what is collected under a key.
type rangeGroup struct {
	key rangeKey
	// messages has what has no currency: verdicts, first choices, what was carried, shares, moves.
	messages DailyRow
	// lines are the attempts by currency, and by reason where reasons are told apart.
	lines      []*ledger.DailyRow
	waterfalls []Waterfall
	// Messages that were drawn, and those carried whose first choice was drawn, beside what the
	// shares let expect of each.
	drawn, agreed, effective, carried, agreedCarried float64
}

// rows are those of one period.
func (f *RangeFigures) rows(period RangePeriod, parts []*ledger.PartFigures) (out []RangeRow) {
	groups := map[rangeKey]*rangeGroup{}
	for _, same := range f.merged(parts) {
		figures, part := f.figures(period, same...), f.asked(same[0].Part)
		for _, name := range figures.routes() {
			route := newRouteDay(figures, name)
			verdict := route.verdict()
			for _, channel := range route.channels {
				key := f.key(&part, name, channel)
				if groups[key] == nil {
					groups[key] = &rangeGroup{key: key, messages: DailyRow{Moved: []Move{}}}
				}
				groups[key].add(f, route, channel, &verdict)
			}
		}
	}
	for _, g := range groups {
		if sums := SumWaterfalls(g.waterfalls); len(sums) == 1 {
			g.messages.Waterfall = &sums[0]
		}
	}
	order := f.sorted(slices.Collect(maps.Values(groups)))
	f.share(order)
	for _, g := range order {
		for _, row := range g.rows() {
			row.RangePeriod = period
			if f.by(ByHour) {
				row.Hour = new(g.key.hour)
			}
			out = append(out, row)
		}
	}
	f.shareAmounts(out)
	return out
}

func (f *RangeFigures) by(d Dimension) bool { return slices.Contains(f.By, d) }

// key is where a channel of a route belongs.
func (f *RangeFigures) key(p *ledger.Part, route, channel string) (k rangeKey) {
	for _, d := range f.By {
		switch d {
		case ByHour:
			k.hour = int(p.Hour)
		case ByRoute:
			k.route = route
		case ByChannel:
			k.channel = channel
		case ByTenant:
			k.tenant = p.Tenant
		case ByCountry:
			if p.CallingCode > 0 {
				k.country = fmt.Sprintf("+%d", p.CallingCode)
			}
		case BySender:
			k.sender = p.Sender
		case ByCurrency, ByReason: // these tell lines of a group apart
		}
	}
	return k
}

// last is the last dimension that messages have.
func (f *RangeFigures) last() Dimension {
	for _, d := range slices.Backward(f.By) {
		if d != ByCurrency && d != ByReason {
			return d
		}
	}
	return ""
}

// asDaily reports whether shares are those of channels among a route, as the daily report has them.
func (f *RangeFigures) asDaily() bool { return f.by(ByRoute) && f.last() == ByChannel }

// add adds a channel of a route.
func (g *rangeGroup) add(f *RangeFigures, route *routeDay, channel string, v *RouteVerdict) {
	for _, tried := range route.tried[channel] {
		at := slices.IndexFunc(g.lines, func(l *ledger.DailyRow) bool {
			return l.Currency == tried.Currency && l.Reason == tried.Reason
		})
		if at < 0 {
			g.lines = append(g.lines, tried)
		} else {
			g.lines[at].Add(tried)
		}
	}
	m, row := &g.messages, route.row(channel)
	m.FirstChoice += row.FirstChoice
	m.Carried += row.Carried
	m.FirstChoiceSegments += row.FirstChoiceSegments
	if f.by(ByRoute) {
		m.assess(v)
	}
	if f.by(ByChannel) {
		for _, moved := range row.Moved {
			m.Moved = addMove(m.Moved, moved)
		}
		if w := waterfallOf(v.Waterfall, channel); w != nil {
			g.waterfalls = append(g.waterfalls, *w)
		}
	}
	if f.asDaily() {
		m.ConfiguredShare, m.EffectiveShare = row.ConfiguredShare, row.EffectiveShare
		m.AgreedShare, m.Deviation = row.AgreedShare, row.Deviation
	}
	g.drawn += float64(route.drawn.counts[channel])
	g.agreed += route.drawn.agreed[channel]
	g.effective += route.drawn.effective[channel]
	g.carried += float64(route.traffic.counts[channel])
	g.agreedCarried += route.traffic.agreed[channel]
}

// rows are a row for each line; the first has what has no currency.
func (g *rangeGroup) rows() (out []RangeRow) {
	slices.SortStableFunc(g.lines, func(a, b *ledger.DailyRow) int {
		return cmp.Or(cmp.Compare(a.Currency, b.Currency), byReason(a.Reason, b.Reason))
	})
	for i := range max(1, len(g.lines)) {
		daily := DailyRow{Moved: []Move{}}
		if i == 0 {
			daily = g.messages
		} else {
			m := &g.messages
			daily.PValue, daily.Verdict = m.PValue, m.Verdict
			daily.DrawsVerdict, daily.TrafficVerdict = m.DrawsVerdict, m.TrafficVerdict
		}
		if len(g.lines) > 0 {
			daily.fill(g.lines[i])
		}
		daily.Route, daily.Channel = g.key.route, g.key.channel
		out = append(out, RangeRow{
			Tenant: g.key.tenant, Country: g.key.country, Sender: g.key.sender,
			Reason: daily.Reason, DailyRow: daily,
		})
	}
	return out
}

// sorted lists groups by the dimensions as they were named: routes and channels as the routing in
// force lists them, then the others.
func (f *RangeFigures) sorted(groups []*rangeGroup) []*rangeGroup {
	var routes, channels []string
	for _, g := range groups {
		routes, channels = append(routes, g.key.route), append(channels, g.key.channel)
	}
	routes, channels = inOrder(routes, f.routeOrder()), inOrder(channels, f.channelOrder())
	slices.SortFunc(groups, func(a, b *rangeGroup) int {
		for _, d := range f.By {
			x := 0
			switch d {
			case ByHour:
				x = cmp.Compare(a.key.hour, b.key.hour)
			case ByRoute:
				x = cmp.Compare(slices.Index(routes, a.key.route), slices.Index(routes, b.key.route))
			case ByChannel:
				x = f.compareChannels(channels, &a.key, &b.key)
			case ByTenant:
				x = cmp.Compare(a.key.tenant, b.key.tenant)
			case ByCountry:
				x = cmp.Compare(a.key.country, b.key.country)
			case BySender:
				x = cmp.Compare(a.key.sender, b.key.sender)
			case ByCurrency, ByReason:
			}
			if x != 0 {
				return x
			}
		}
		return 0
	})
	return groups
}

// compareChannels follows the order of the route where routes are told apart, as the daily report
// does, else that of the document.
func (f *RangeFigures) compareChannels(channels []string, a, b *rangeKey) int {
	if route := routeNamed(f.Current, a.route); route != nil && a.route == b.route {
		channels = inOrder(channels, route.Channels)
	}
	return cmp.Compare(slices.Index(channels, a.channel), slices.Index(channels, b.channel))
}

func (f *RangeFigures) routeOrder() (names []string) {
	if f.Current != nil {
		for i := range f.Current.Routes {
			names = append(names, f.Current.Routes[i].Name)
		}
	}
	return names
}

func (f *RangeFigures) channelOrder() (names []string) {
	if f.Current != nil {
		for i := range f.Current.Channels {
			names = append(names, f.Current.Channels[i].Name)
		}
	}
	return names
}

// without is the key of the rows that a row is a part of: those that differ from it in the last
// dimension only.
func (f *RangeFigures) without(k rangeKey) rangeKey {
	switch f.last() {
	case ByHour:
		k.hour = 0
	case ByRoute:
		k.route = ""
	case ByChannel:
		k.channel = ""
	case ByTenant:
		k.tenant = ""
	case ByCountry:
		k.country = ""
	case BySender:
		k.sender = ""
	case ByCurrency, ByReason: // never the last one
	}
	return k
}

// share fills in the shares of messages.
func (f *RangeFigures) share(groups []*rangeGroup) {
	sums := map[rangeKey]*rangeGroup{}
	for _, g := range groups {
		key := f.without(g.key)
		if sums[key] == nil {
			sums[key] = &rangeGroup{}
		}
		sum := sums[key]
		sum.messages.FirstChoice += g.messages.FirstChoice
		sum.messages.Carried += g.messages.Carried
		sum.drawn += g.drawn
		sum.carried += g.carried
	}
	for _, g := range groups {
		m, sum := &g.messages, sums[f.without(g.key)]
		m.FirstChoiceShare = part(m.FirstChoice, sum.messages.FirstChoice)
		m.CarriedShare = part(m.Carried, sum.messages.Carried)
		if f.asDaily() || f.last() != ByChannel {
			continue
		}
		if sum.drawn > 0 {
			m.ConfiguredShare = new(g.agreed / sum.drawn)
			m.EffectiveShare = new(g.effective / sum.drawn)
			m.Deviation = new((g.drawn - g.agreed) / sum.drawn)
		}
		if sum.carried > 0 {
			m.AgreedShare = new(g.agreedCarried / sum.carried)
		}
	}
}

// shareAmounts fills in the shares of what was delivered, of segments and of money.
func (f *RangeFigures) shareAmounts(rows []RangeRow) {
	sums := map[rangeKey]*amounts{}
	for i := range rows {
		key := f.without(rows[i].key())
		if sums[key] == nil {
			sums[key] = &amounts{}
		}
		sums[key].add(&rows[i].DailyRow)
	}
	for i := range rows {
		sums[f.without(rows[i].key())].share(&rows[i].DailyRow)
	}
}

func (r *RangeRow) key() rangeKey {
	k := rangeKey{
		route: r.Route, channel: r.Channel, tenant: r.Tenant, country: r.Country, sender: r.Sender,
	}
	if r.Hour != nil {
		k.hour = *r.Hour
	}
	return k
}
