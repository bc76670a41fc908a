package report

import (
	"cmp"
	"slices"
	"time"

	"dispatcher/config"
	"dispatcher/ledger"
)

// Daily is the report of one business day for finance.
type Daily struct {
	Day      string `json:"day"` // 2026-11-21
	Timezone string `json:"timezone"`
	// Complete is false for a day that is not over; its figures are those so far.
	Complete bool `json:"complete"`
	// ClosedAt is when the day was closed; nil for a day that is not closed. The figures of a closed
	// day are those of that moment, plus Corrections: late receipts, and attempts whose outcome
	// became known later.
	ClosedAt    *time.Time   `json:"closed_at"`
	Corrections []Correction `json:"corrections"`
	// Checkpoint is the signed head of the log of hashes; empty where nothing is sealed.
	Checkpoint string         `json:"checkpoint"`
	Rows       []DailyRow     `json:"rows"`
	Totals     []DailyTotal   `json:"totals"`
	Routes     []RouteVerdict `json:"routes"` // in the order of Rows
}

// Correction is a change of the figures of a closed day.
type Correction struct {
	At time.Time `json:"at"`
	// Changes is how many rows of figures it changed; a row has an hour, channel, tenant and so on.
	Changes int64 `json:"changes"`
	// Figures are the changed sums of channels. In reports of several days there are none.
	Figures []CorrectedFigure `json:"figures"`
}

// CorrectedFigure is a figure of a channel before and after a correction. Amounts are micros.
type CorrectedFigure struct {
	At       time.Time `json:"at"`
	Route    string    `json:"route"`
	Channel  string    `json:"channel"`
	Figure   string    `json:"figure"`
	Was      int64     `json:"was"`
	Now      int64     `json:"now"`
	Currency string    `json:"currency"`
}

// newCorrection is a correction with times in a zone.
func newCorrection(
	at time.Time, changes int64, figures []ledger.FigureChange, zone *time.Location,
) Correction {
	c := Correction{At: at.In(zone), Changes: changes, Figures: make([]CorrectedFigure, len(figures))}
	for i := range figures {
		f := &figures[i]
		c.Figures[i] = CorrectedFigure{
			f.At.In(zone), f.Route, f.Channel, f.Figure, f.Was, f.Now, f.Currency,
		}
	}
	return c
}

// Found reports whether any route has a finding.
func (d *Daily) Found() bool {
	return slices.ContainsFunc(d.Routes, func(v RouteVerdict) bool { return v.Found() })
}

// DailyRow has the figures of one channel on one route. Shares are from 0 to 1.
//
// First choices count on the day on which the message was received, everything else on the day on
// which the attempt was made.
type DailyRow struct {
	Route   string `json:"route"`
	Channel string `json:"channel"`
	// ConfiguredShare is the agreed share: that of the document's weights. If they changed during
	// the day, it is the mean over the versions, weighted by the messages drawn under each. It is nil
	// for a route that does not draw.
	ConfiguredShare *float64 `json:"configured_share"`
	// EffectiveShare is the same for the effective weights, which draws use: those of the document,
	// except while health weighting has lowered one.
	EffectiveShare   *float64 `json:"effective_share"`
	FirstChoice      int64    `json:"first_choice"`
	FirstChoiceShare float64  `json:"first_choice_share"`
	Fallback         int64    `json:"fallback"`
	Submitted        int64    `json:"submitted"`
	Accepted         int64    `json:"accepted"`
	Delivered        int64    `json:"delivered"`
	Failed           int64    `json:"failed"`
	Unknown          int64    `json:"unknown"`
	// Segments and CostMicros were accepted, and so are billed. UnknownSegments and UnknownMicros may
	// be billed too, because no answer came.
	Segments        int64  `json:"segments"`
	CostMicros      int64  `json:"cost_micros"`
	UnknownSegments int64  `json:"unknown_segments"`
	UnknownMicros   int64  `json:"unknown_cost_micros"`
	Currency        string `json:"currency"`
	// Deviation is the share of the drawn first choices minus ConfiguredShare; nil without one.
	Deviation *float64 `json:"deviation"`
	// PValue is the p-value of all draws of the route against the effective shares; nil when nothing
	// was tested. It and the verdicts are the same in each row of a route. Verdict equals
	// TrafficVerdict.
	PValue  *float64 `json:"p_value"`
	Verdict string   `json:"verdict"`
	// Carried counts the messages that the channel carried: it accepted an attempt made on the day.
	// CarriedShare is its part of the route's. Like FirstChoice, both are only in the first row of a
	// channel.
	Carried      int64   `json:"carried"`
	CarriedShare float64 `json:"carried_share"`
	// AgreedShare is what CarriedShare is compared with. It is computed as ConfiguredShare, but
	// weighted by the messages carried under each version. It is nil for a route that does not draw.
	AgreedShare *float64 `json:"agreed_share"`
	// AgreedShareByTime is the agreed share weighted by the time that each version was in force, see
	// RouteVerdict.AgreedByTime. Reports of ranges have it only if the rows are by route and not by
	// hour, and the last dimension is the channel.
	AgreedShareByTime *float64 `json:"agreed_share_by_time"`
	// DeliveredShare is the channel's part of the route's delivered messages.
	DeliveredShare float64 `json:"delivered_share"`
	DrawsVerdict   string  `json:"draws_verdict"`
	TrafficVerdict string  `json:"traffic_verdict"`
	// Moved are the messages that were drawn for the channel and that it did not carry.
	Moved []Move `json:"moved"`
	// Undelivered and NoReceipt count accepted attempts: those that were not delivered, and those
	// without a receipt.
	Undelivered int64 `json:"undelivered"`
	NoReceipt   int64 `json:"no_receipt"`
	// Attempts counts all attempts of the day: Accepted, Failed, Unknown, Unsent (the dispatcher did
	// not send them) and Pending (no outcome yet). By reason they are Fallback, Retries, Resends,
	// Further (made because no receipt had come) and, the rest, for the first choice.
	Attempts int64 `json:"attempts"`
	Retries  int64 `json:"retries"`
	Resends  int64 `json:"resends"`
	Further  int64 `json:"further"`
	Unsent   int64 `json:"unsent"`
	Pending  int64 `json:"pending"`
	// The same figures in segments and in money. FirstChoiceSegments are the segments of the messages
	// in FirstChoice. FirstChoiceMicros is what the channels that carried messages on the day billed
	// for those whose first choice was this channel. DeliveredSegments and DeliveredMicros are the
	// delivered part of Segments and CostMicros. Shares in money are among the amounts of one
	// currency.
	FirstChoiceSegments      int64   `json:"first_choice_segments"`
	FirstChoiceSegmentsShare float64 `json:"first_choice_segments_share"`
	FirstChoiceMicros        int64   `json:"first_choice_cost_micros"`
	FirstChoiceCostShare     float64 `json:"first_choice_cost_share"`
	SegmentsShare            float64 `json:"segments_share"`
	CostShare                float64 `json:"cost_share"`
	DeliveredSegments        int64   `json:"delivered_segments"`
	DeliveredSegmentsShare   float64 `json:"delivered_segments_share"`
	DeliveredMicros          int64   `json:"delivered_cost_micros"`
	DeliveredCostShare       float64 `json:"delivered_cost_share"`
	// Reason is the reason of the attempts, in reports by reason.
	Reason string `json:"-"`
	// Waterfall is the channel's, only in its first row; nil when nothing was drawn. In JSON it
	// is in RouteVerdict.
	Waterfall *Waterfall `json:"-"`
}

// DailyTotal is the sum of a route's rows of one currency. First choices and carried messages have
// no currency, so only the route's first total has them.
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
	// UnknownSegments and UnknownMicros may be billed too.
	UnknownSegments     int64 `json:"unknown_segments"`
	UnknownMicros       int64 `json:"unknown_cost_micros"`
	FirstChoiceSegments int64 `json:"first_choice_segments"`
	FirstChoiceMicros   int64 `json:"first_choice_cost_micros"`
	DeliveredSegments   int64 `json:"delivered_segments"`
	DeliveredMicros     int64 `json:"delivered_cost_micros"`
}

// Figures are the figures of the ledger for a day.
type Figures struct {
	Day     time.Time // any instant of it
	Zone    *time.Location
	Rows    []ledger.DailyRow
	Choices []ledger.ChoiceRow
	Carried []ledger.CarriedRow
	// Complete is false when the day is not over.
	Complete bool
	// Closings are the times at which the day was summed after its end.
	Closings []ledger.DayClosing
	// Versions are the routing documents of Choices, Carried and InForce by version.
	Versions map[int64]*config.Routing
	// InForce are the versions that were in force on the day, with their times.
	InForce []ledger.InForce
	// Current gives the order of rows, and the shares of a route without a message that day.
	Current *config.Routing
	// Checkpoint is printed with the report, so that it is archived with the report.
	Checkpoint string
}

// NewDaily makes the report of a day. Every channel with a weight has a row, even without a
// message, because that is a finding.
func NewDaily(f *Figures) Daily {
	d := Daily{
		Day: f.Day.In(f.Zone).Format(time.DateOnly), Timezone: f.Zone.String(),
		Complete: f.Complete, Corrections: []Correction{}, Checkpoint: f.Checkpoint,
		Rows: []DailyRow{}, Totals: []DailyTotal{}, Routes: []RouteVerdict{},
	}
	for i, c := range f.Closings {
		if at := c.At.In(f.Zone); i == 0 {
			d.ClosedAt = &at
		} else if c.Changes > 0 {
			d.Corrections = append(d.Corrections, newCorrection(c.At, c.Changes, c.Figures, f.Zone))
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

// routes returns the routes with figures: in the order of the current document, then those that it
// no longer has.
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
		order = f.Current.RouteNames()
	}
	return inOrder(active, order)
}

// inOrder returns the distinct names: first those in order, in that order, then the others sorted.
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

// totals sums the rows of one route by currency. Rows without a currency go into the first total.
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
		t.FirstChoiceMicros += r.FirstChoiceMicros
		t.DeliveredSegments += r.DeliveredSegments
		t.DeliveredMicros += r.DeliveredMicros
	}
	return out
}

// rows makes one row for each channel, and one more for each further currency.
func (d *routeDay) rows(v *RouteVerdict) []DailyRow {
	var out []DailyRow
	for _, channel := range d.channels {
		for _, r := range byCurrency(d.row(channel), d.tried[channel], d.billed[channel]) {
			r.Route, r.Channel = d.name, channel
			out = append(out, *r)
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

// byCurrency returns first with the figures of the first line, and a row for each further line.
// What was billed for first choices is in the first row of its currency. A currency without a row
// gets a row without a currency, or a new one.
func byCurrency(first DailyRow, lines []*ledger.DailyRow, costs map[string]int64) []*DailyRow {
	rows := []*DailyRow{&first}
	for i, line := range lines {
		if i > 0 {
			rows = append(rows, &DailyRow{Moved: []Move{}})
		}
		rows[i].fill(line)
	}
	billed := quantity{costs: costs}
	for _, c := range billed.listed() {
		at := slices.IndexFunc(rows, func(r *DailyRow) bool { return r.Currency == c.Currency })
		if at < 0 {
			at = slices.IndexFunc(rows, func(r *DailyRow) bool { return r.Currency == "" })
		}
		if at < 0 {
			at, rows = len(rows), append(rows, &DailyRow{Moved: []Move{}})
		}
		rows[at].FirstChoiceMicros, rows[at].Currency = c.CostMicros, c.Currency
	}
	return rows
}

// amounts are the sums that shares are computed from.
type amounts struct {
	delivered, drawnSegments, segments, deliveredSegments int64
	drawnCost, cost, deliveredCost                        map[string]int64 // by currency
}

func (a *amounts) add(r *DailyRow) {
	if a.cost == nil {
		a.cost, a.deliveredCost = map[string]int64{}, map[string]int64{}
		a.drawnCost = map[string]int64{}
	}
	a.delivered += r.Delivered
	a.drawnSegments += r.FirstChoiceSegments
	a.segments += r.Segments
	a.deliveredSegments += r.DeliveredSegments
	a.drawnCost[r.Currency] += r.FirstChoiceMicros
	a.cost[r.Currency] += r.CostMicros
	a.deliveredCost[r.Currency] += r.DeliveredMicros
}

// share sets the row's share of each sum.
func (a *amounts) share(r *DailyRow) {
	r.DeliveredShare = part(r.Delivered, a.delivered)
	r.FirstChoiceSegmentsShare = part(r.FirstChoiceSegments, a.drawnSegments)
	r.SegmentsShare = part(r.Segments, a.segments)
	r.DeliveredSegmentsShare = part(r.DeliveredSegments, a.deliveredSegments)
	r.FirstChoiceCostShare = part(r.FirstChoiceMicros, a.drawnCost[r.Currency])
	r.CostShare = part(r.CostMicros, a.cost[r.Currency])
	r.DeliveredCostShare = part(r.DeliveredMicros, a.deliveredCost[r.Currency])
}

// assess sets the verdicts of the route.
func (r *DailyRow) assess(v *RouteVerdict) {
	r.PValue, r.DrawsVerdict = v.PValue, v.DrawsVerdict
	r.Verdict, r.TrafficVerdict = v.TrafficVerdict, v.TrafficVerdict
}

// row makes the row of one channel with its agreed shares, first choices and carried messages.
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
	if d.byTime != nil {
		r.AgreedShareByTime = new(d.byTime[channel])
	}
	d.agree(&r)
	return r
}

// agree sets the agreed shares. On a day without a draw they are those of the current route.
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
	carried := agreed
	if d.traffic.total > 0 {
		carried = d.traffic.agreed[r.Channel] / float64(d.traffic.total)
	}
	r.AgreedShare = &carried
}

// part is n / of; 0 when of is 0.
func part(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// fill copies the figures of attempts.
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
