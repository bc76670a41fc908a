package report

import (
	"cmp"
	"slices"
	"time"

	"dispatcher/config"
	"dispatcher/ledger"
)

// Daily is one business day as finance reads it.
type Daily struct {
	Day      string `json:"day"` // 2026-11-21
	Timezone string `json:"timezone"`
	// Complete is false for a day that is not over: its figures are those so far.
	Complete bool `json:"complete"`
	// ClosedAt is when the day was closed, nil for a day that was not. From then on its figures are
	// those of that moment with the corrections since: late receipts, and attempts whose outcome
	// became known.
	ClosedAt    *time.Time   `json:"closed_at"`
	Corrections []Correction `json:"corrections"`
	// Checkpoint is the signed head of the log of hashes; empty where nothing is sealed.
	Checkpoint string `json:"checkpoint"`
	// WithoutSteps is the day, where an earlier release closed it: its waterfall has messages alone.
	WithoutSteps []string       `json:"without_steps"`
	Rows         []DailyRow     `json:"rows"`
	Totals       []DailyTotal   `json:"totals"`
	Routes       []RouteVerdict `json:"routes"` // in the order of Rows
}

// Correction is a change of the figures of a closed day.
type Correction struct {
	At time.Time `json:"at"`
	// Changes is how many figures it changed, counted by hour, channel, tenant and so on.
	Changes int64 `json:"changes"`
}

// Found reports whether the day has anything that somebody should look at.
func (d *Daily) Found() bool {
	return slices.ContainsFunc(d.Routes, func(v RouteVerdict) bool { return v.Found() })
}

// DailyRow is what one channel did for one route. Shares are between 0 and 1.
//
// First choices are counted by the day on which a message was received, everything
// behind them by the day on which the attempt was made.
type DailyRow struct {
	Route   string `json:"route"`
	Channel string `json:"channel"`
	// ConfiguredShare is the agreed share; when the weights were changed during the
	// day, the mean of the versions, each weighted by the messages drawn under it. It is nil
	// for a route that does not draw.
	ConfiguredShare *float64 `json:"configured_share"`
	// EffectiveShare is the same mean of the weights that the draws went by: those of the
	// document, but for the time that health weighting had lowered one.
	EffectiveShare   *float64 `json:"effective_share"`
	FirstChoice      int64    `json:"first_choice"`
	FirstChoiceShare float64  `json:"first_choice_share"`
	Fallback         int64    `json:"fallback"`
	Submitted        int64    `json:"submitted"`
	Accepted         int64    `json:"accepted"`
	Delivered        int64    `json:"delivered"`
	Failed           int64    `json:"failed"`
	Unknown          int64    `json:"unknown"`
	// Segments and CostMicros are what was accepted, hence billed; UnknownSegments and
	// UnknownMicros may be billed as well, because no answer came.
	Segments        int64  `json:"segments"`
	CostMicros      int64  `json:"cost_micros"`
	UnknownSegments int64  `json:"unknown_segments"`
	UnknownMicros   int64  `json:"unknown_cost_micros"`
	Currency        string `json:"currency"`
	// Deviation is the share of the drawn first choices less ConfiguredShare; nil without one.
	Deviation *float64 `json:"deviation"`
	// PValue is that of the route's draws as a whole, against the effective shares, and stands in
	// each of its rows, as the verdicts do. It is nil when nothing was tested. Verdict is
	// TrafficVerdict.
	PValue  *float64 `json:"p_value"`
	Verdict string   `json:"verdict"`
	// Carried are the messages that the channel carried: it accepted an attempt that was made on
	// the day. CarriedShare is their part of the route's. Both stand in the first row of a channel
	// only, as FirstChoice does.
	Carried      int64   `json:"carried"`
	CarriedShare float64 `json:"carried_share"`
	// AgreedShare is what CarriedShare is held against: as ConfiguredShare, but weighted by the
	// messages carried under each version. It is nil for a route that does not draw.
	AgreedShare *float64 `json:"agreed_share"`
	// DeliveredShare is the channel's part of the messages of the route that were delivered.
	DeliveredShare float64 `json:"delivered_share"`
	DrawsVerdict   string  `json:"draws_verdict"`
	TrafficVerdict string  `json:"traffic_verdict"`
	// Moved are the messages that were drawn for the channel and that it did not carry.
	Moved []Move `json:"moved"`
	// Undelivered and NoReceipt are the accepted ones that were not delivered, and of which nobody
	// knows.
	Undelivered int64 `json:"undelivered"`
	NoReceipt   int64 `json:"no_receipt"`
	// Attempts are all that were made on the day: Accepted, Failed and Unknown ones, Unsent ones,
	// which the dispatcher itself did not send, and Pending ones, which have no outcome yet.
	// Retries, Resends and Further are attempts, as Fallback is; the others were made for the first
	// choice. Further were made because no receipt had come.
	Attempts int64 `json:"attempts"`
	Retries  int64 `json:"retries"`
	Resends  int64 `json:"resends"`
	Further  int64 `json:"further"`
	Unsent   int64 `json:"unsent"`
	Pending  int64 `json:"pending"`
	// The same shares in segments and in money. FirstChoiceSegments are those of the messages that
	// FirstChoice counts; such a message has no price yet. Segments and CostMicros are what was
	// carried, and DeliveredSegments and DeliveredMicros their part that was delivered. Shares in
	// money are among the amounts of one currency.
	FirstChoiceSegments      int64   `json:"first_choice_segments"`
	FirstChoiceSegmentsShare float64 `json:"first_choice_segments_share"`
	SegmentsShare            float64 `json:"segments_share"`
	CostShare                float64 `json:"cost_share"`
	DeliveredSegments        int64   `json:"delivered_segments"`
	DeliveredSegmentsShare   float64 `json:"delivered_segments_share"`
	DeliveredMicros          int64   `json:"delivered_cost_micros"`
	DeliveredCostShare       float64 `json:"delivered_cost_share"`
	// Reason is that of the attempts, in reports that tell reasons apart.
	Reason string `json:"-"`
	// Waterfall is the channel's, in its first row; nil where nothing was drawn. In JSON it stands
	// with the verdict of the route.
	Waterfall *Waterfall `json:"-"`
}

// DailyTotal sums a route's rows of one currency. First choices and what was carried are summed in
// the route's first total only, since they have no currency.
type DailyTotal struct {
	Route       string `json:"route"`
	FirstChoice int64  `json:"first_choice"`
	Fallback    int64  `json:"fallback"`
	Submitted   int64  `json:"submitted"`
	Accepted    int64  `json:"accepted"`
	Carried     int64  `json:"carried"`
	Delivered   int64  `json:"delivered"`
	Failed      int64  `json:"failed"`
	Unknown     int64  `json:"unknown"`
	Segments    int64  `json:"segments"`
	CostMicros  int64  `json:"cost_micros"`
	Currency    string `json:"currency"`
	Undelivered int64  `json:"undelivered"`
	NoReceipt   int64  `json:"no_receipt"`
	Attempts    int64  `json:"attempts"`
	Retries     int64  `json:"retries"`
	Resends     int64  `json:"resends"`
	Further     int64  `json:"further"`
	Unsent      int64  `json:"unsent"`
	Pending     int64  `json:"pending"`
	// UnknownSegments and UnknownMicros may be billed as well.
	UnknownSegments     int64 `json:"unknown_segments"`
	UnknownMicros       int64 `json:"unknown_cost_micros"`
	FirstChoiceSegments int64 `json:"first_choice_segments"`
	DeliveredSegments   int64 `json:"delivered_segments"`
	DeliveredMicros     int64 `json:"delivered_cost_micros"`
}

// Figures are what the ledger knows of a day.
type Figures struct {
	Day     time.Time // any instant of it
	Zone    *time.Location
	Rows    []ledger.DailyRow
	Choices []ledger.ChoiceRow
	Carried []ledger.CarriedRow
	// Complete is false when the day is not over.
	Complete bool
	// Closings are the times at which the day was added up after its end.
	Closings []ledger.DayClosing
	// WithoutSteps are the closed days whose figures do not have ledger.DayClosing.Steps.
	WithoutSteps []string
	// Versions are the routing documents of Choices and Carried by their version.
	Versions map[int64]*config.Routing
	// Current orders the rows and supplies the shares of a route without a message that day.
	Current *config.Routing
	// Checkpoint is printed with the report, so that whoever keeps the report keeps it.
	Checkpoint string
}

// NewDaily judges the day. Every channel with a weight has a row, also one that got
// nothing: that would be the news.
func NewDaily(f *Figures) Daily {
	d := Daily{
		Day: f.Day.In(f.Zone).Format(time.DateOnly), Timezone: f.Zone.String(),
		Complete: f.Complete, Corrections: []Correction{}, Checkpoint: f.Checkpoint,
		WithoutSteps: append([]string{}, f.WithoutSteps...),
		Rows:         []DailyRow{}, Totals: []DailyTotal{}, Routes: []RouteVerdict{},
	}
	for i, c := range f.Closings {
		if at := c.At.In(f.Zone); i == 0 {
			d.ClosedAt = &at
		} else if c.Changes > 0 {
			d.Corrections = append(d.Corrections, Correction{At: at, Changes: c.Changes})
		}
	}
	for _, name := range f.routes() {
		route := newRouteDay(f, name)
		verdict := route.verdict()
		rows := route.rows(&verdict)
		d.Routes = append(d.Routes, verdict)
		d.Rows = append(d.Rows, rows...)
		d.Totals = append(d.Totals, totals(rows)...)
	}
	return d
}

// routes are those that something happened on: in the order of the current document,
// then those that it does not name any more.
func (f *Figures) routes() []string {
	var active, order []string
	for i := range f.Rows {
		active = append(active, f.Rows[i].Route)
	}
	for _, c := range f.Choices {
		active = append(active, c.Route)
	}
	for i := range f.Carried {
		active = append(active, f.Carried[i].Route)
	}
	if f.Current != nil {
		for i := range f.Current.Routes {
			order = append(order, f.Current.Routes[i].Name)
		}
	}
	return inOrder(active, order)
}

// inOrder lists the distinct names: first those of order, in that order, then the others
// by name.
func inOrder(names, order []string) []string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	place := func(name string) int {
		if at := slices.Index(order, name); at >= 0 {
			return at
		}
		return len(order)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	return names
}

// totals sums the rows of one route by currency. Rows that cost nothing count with the first.
func totals(rows []DailyRow) []DailyTotal {
	var out []DailyTotal
	for i := range rows {
		r := &rows[i]
		at := slices.IndexFunc(out, func(t DailyTotal) bool {
			return t.Currency == r.Currency || t.Currency == "" || r.Currency == ""
		})
		if at < 0 {
			at = len(out)
			out = append(out, DailyTotal{Route: r.Route})
		}
		t := &out[at]
		t.Currency = cmp.Or(t.Currency, r.Currency)
		out[0].FirstChoice += r.FirstChoice
		t.Fallback += r.Fallback
		t.Submitted += r.Submitted
		t.Accepted += r.Accepted
		out[0].Carried += r.Carried
		t.Delivered += r.Delivered
		t.Undelivered += r.Undelivered
		t.NoReceipt += r.NoReceipt
		t.Failed += r.Failed
		t.Unknown += r.Unknown
		t.Segments += r.Segments
		t.CostMicros += r.CostMicros
		t.Attempts += r.Attempts
		t.Retries += r.Retries
		t.Resends += r.Resends
		t.Further += r.Further
		t.Unsent += r.Unsent
		t.Pending += r.Pending
		t.UnknownSegments += r.UnknownSegments
		t.UnknownMicros += r.UnknownMicros
		out[0].FirstChoiceSegments += r.FirstChoiceSegments
		t.DeliveredSegments += r.DeliveredSegments
		t.DeliveredMicros += r.DeliveredMicros
	}
	return out
}

// rows makes one row per channel, and one more for each further currency.
func (d *routeDay) rows(v *RouteVerdict) []DailyRow {
	var out []DailyRow
	for _, channel := range d.channels {
		at := len(out)
		out = append(out, d.row(channel))
		for i, tried := range d.tried[channel] {
			if i > 0 {
				out = append(out, DailyRow{Route: d.name, Channel: channel, Moved: []Move{}})
			}
			out[at+i].fill(tried)
		}
	}
	var sum amounts
	for i := range out {
		sum.add(&out[i])
	}
	for i := range out {
		out[i].assess(v)
		sum.share(&out[i])
		if first := i == 0 || out[i-1].Channel != out[i].Channel; first {
			out[i].Waterfall = waterfallOf(v.Waterfall, out[i].Channel)
		}
	}
	return out
}

// amounts are sums of the rows that shares are told of.
type amounts struct {
	delivered, drawnSegments, segments, deliveredSegments int64
	cost, deliveredCost                                   map[string]int64 // by currency
}

func (s *amounts) add(r *DailyRow) {
	if s.cost == nil {
		s.cost, s.deliveredCost = map[string]int64{}, map[string]int64{}
	}
	s.delivered += r.Delivered
	s.drawnSegments += r.FirstChoiceSegments
	s.segments += r.Segments
	s.deliveredSegments += r.DeliveredSegments
	s.cost[r.Currency] += r.CostMicros
	s.deliveredCost[r.Currency] += r.DeliveredMicros
}

// share fills in the row's part of each sum.
func (s *amounts) share(r *DailyRow) {
	r.DeliveredShare = part(r.Delivered, s.delivered)
	r.FirstChoiceSegmentsShare = part(r.FirstChoiceSegments, s.drawnSegments)
	r.SegmentsShare = part(r.Segments, s.segments)
	r.DeliveredSegmentsShare = part(r.DeliveredSegments, s.deliveredSegments)
	r.CostShare = part(r.CostMicros, s.cost[r.Currency])
	r.DeliveredCostShare = part(r.DeliveredMicros, s.deliveredCost[r.Currency])
}

// assess fills in the verdicts of the route.
func (r *DailyRow) assess(v *RouteVerdict) {
	r.PValue, r.DrawsVerdict = v.PValue, v.DrawsVerdict
	r.Verdict, r.TrafficVerdict = v.TrafficVerdict, v.TrafficVerdict
}

// row is what was agreed for one channel, its first choices, and what it carried.
func (d *routeDay) row(channel string) DailyRow {
	r := DailyRow{
		Route: d.name, Channel: channel, Moved: d.moves[channel],
		FirstChoice: d.counts[channel], FirstChoiceShare: part(d.counts[channel], d.total),
		Carried: d.carried[channel], CarriedShare: part(d.carried[channel], d.carries),
		FirstChoiceSegments: d.segments[channel],
	}
	if r.Moved == nil {
		r.Moved = []Move{}
	}
	d.agree(&r)
	return r
}

// agree fills in the shares that were agreed. On a day without a draw they are those of the route
// as it is now.
func (d *routeDay) agree(r *DailyRow) {
	agreed, effective, deviation := 0.0, 0.0, 0.0
	switch now := agreedShares(d.route); {
	case d.drawn.total > 0:
		n := float64(d.drawn.total)
		agreed, effective = d.drawn.agreed[r.Channel]/n, d.drawn.effective[r.Channel]/n
		deviation = float64(d.drawn.counts[r.Channel])/n - agreed
	case d.total == 0 && now != nil:
		agreed, effective = now[r.Channel], effectiveShares(d.route)[r.Channel]
	default:
		return
	}
	r.ConfiguredShare, r.EffectiveShare, r.Deviation = &agreed, &effective, &deviation
	if carried := agreed; d.traffic.total > 0 {
		carried = d.traffic.agreed[r.Channel] / float64(d.traffic.total)
		r.AgreedShare = &carried
	} else {
		r.AgreedShare = &carried
	}
}

// part is a share between 0 and 1; 0 of nothing.
func part(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// fill copies what the attempts came to.
func (r *DailyRow) fill(from *ledger.DailyRow) {
	r.Fallback, r.Submitted, r.Accepted = from.Fallback, from.Submitted, from.Accepted
	r.Delivered, r.Undelivered, r.NoReceipt = from.Delivered, from.Undelivered, from.NoReceipt
	r.Failed, r.Unknown = from.Failed(), from.Unknown
	r.Segments, r.CostMicros, r.Currency = from.Segments, from.CostMicros, from.Currency
	r.UnknownSegments, r.UnknownMicros = from.UnknownSegments, from.UnknownMicros
	r.Attempts, r.Retries, r.Resends = from.Attempts, from.Retries, from.Resends
	r.Further = from.Further
	r.Unsent, r.Pending, r.Reason = from.Unsent, from.Pending, from.Reason
	r.DeliveredSegments, r.DeliveredMicros = from.DeliveredSegments, from.DeliveredMicros
}
