package demo

import (
	"cmp"
	"context"
	"slices"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
)

// Result is the result of a run. Scripts rely on the JSON names.
type Result struct {
	Messages       int   `json:"messages"`
	Accepted       int64 `json:"accepted"`
	Rejected       int64 `json:"rejected"`
	Unknown        int64 `json:"unknown"`
	DuplicatesSent int   `json:"duplicates_sent"` // by the carriers' own count
	// from the first publish to the last outcome
	Seconds           float64 `json:"seconds"`
	MessagesPerSecond float64 `json:"messages_per_second"`
	// of the draws; 1 when there were too few to test
	ChiSquareP     float64 `json:"chi_square_p"`
	Verdict        string  `json:"verdict"` // TrafficVerdict
	DrawsVerdict   string  `json:"draws_verdict"`
	TrafficVerdict string  `json:"traffic_verdict"`
	// both verdicts in sentences, as the daily report has them
	Text     []string  `json:"text"`
	Seed     uint64    `json:"seed"`
	Channels []Channel `json:"channels"`
}

// Channel is one channel's part of a Result.
type Channel struct {
	Channel          string  `json:"channel"`
	Configured       float64 `json:"configured"` // share between 0 and 1
	FirstChoice      int64   `json:"first_choice"`
	FirstChoiceShare float64 `json:"first_choice_share"`
	Deviation        float64 `json:"deviation"` // of the share, in points of 1
	Fallback         int64   `json:"fallback"`
	Sent             int64   `json:"sent"`
	Accepted         int64   `json:"accepted"`
	Carried          int64   `json:"carried"` // messages that the channel accepted
	CarriedShare     float64 `json:"carried_share"`
	Segments         int64   `json:"segments"`
	CostMicros       int64   `json:"cost_micros"`
	Currency         string  `json:"currency"`
}

// result compares the ledger's figures with the configured shares.
func (d *demo) result(totals *ledger.Totals, carriedBy moves, took time.Duration) (*Result, error) {
	of := func(state ledger.State) int64 {
		return totals.Messages[state] - d.before.Messages[state]
	}
	r := &Result{
		Messages: d.cfg.Messages, Seed: d.cfg.Seed,
		Accepted: of(ledger.Accepted), Rejected: of(ledger.Rejected), Unknown: of(ledger.Unknown),
		Seconds: took.Seconds(), MessagesPerSecond: float64(d.cfg.Messages) / took.Seconds(),
	}
	d.submits.mu.Lock()
	r.DuplicatesSent = d.submits.twice
	d.submits.mu.Unlock()
	carried := int64(0)
	for _, w := range weights {
		now, was := channelTotal(totals, w.channel), channelTotal(&d.before, w.channel)
		c := Channel{
			Channel: w.channel, Configured: w.share,
			FirstChoice: now.FirstChoice - was.FirstChoice, Fallback: now.Fallback - was.Fallback,
			Sent: now.Attempts - was.Attempts, Accepted: now.Accepted - was.Accepted,
			Segments: now.Segments - was.Segments, CostMicros: now.CostMicros - was.CostMicros,
			Currency: now.Currency,
		}
		c.FirstChoiceShare = float64(c.FirstChoice) / float64(d.cfg.Messages)
		c.Deviation = c.FirstChoiceShare - c.Configured
		c.Carried = c.Accepted
		carried += c.Carried
		r.Channels = append(r.Channels, c)
	}
	for i := range r.Channels {
		r.Channels[i].CarriedShare = float64(r.Channels[i].Carried) / float64(max(carried, 1))
	}
	r.compare(d.doc, carriedBy.since(d.moved))
	return r, nil
}

// moves counts the messages that a channel carried whose first choice was another, by reason.
type moves map[ledger.CarriedRow]int64

// carried counts the messages carried since the day on which the run began, including those of
// earlier runs with the folder. All count under version 1, because there is one document.
func (d *demo) carried(ctx context.Context) (moves, error) {
	m := moves{}
	for day := d.began; ; day = admission.Day.End(day, d.doc.Timezone) {
		if day.After(time.Now()) {
			return m, nil
		}
		figures, _, err := d.app.Ledger().Reports.Day(ctx, ledger.NewBusinessDay(day, d.doc.Timezone))
		if err != nil {
			return nil, err
		}
		m.add(figures.Carried)
	}
}

// add counts messages. Billed amounts differ between runs, so they are not part of the key.
func (m moves) add(rows []ledger.CarriedRow) {
	for i := range rows {
		r := &rows[i]
		m[ledger.CarriedRow{
			Version: 1, Route: r.Route, FirstChoice: r.FirstChoice, Channel: r.Channel, Cause: r.Cause,
		}] += r.Messages
	}
}

// since are the moves minus earlier ones.
func (m moves) since(before moves) (rows []ledger.CarriedRow) {
	for r, n := range m {
		if n -= before[r]; n > 0 {
			r.Messages = n
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b ledger.CarriedRow) int {
		return cmp.Or(cmp.Compare(a.FirstChoice, b.FirstChoice), cmp.Compare(a.Channel, b.Channel),
			cmp.Compare(a.Cause, b.Cause))
	})
	return rows
}

// compare gets the verdicts of the daily report on this run: on the draws and on the traffic.
func (r *Result) compare(doc *config.Routing, carried []ledger.CarriedRow) {
	route := doc.Routes[0].Name
	f := report.Figures{
		Day:      time.Now(),
		Zone:     doc.Timezone,
		Current:  doc,
		Versions: map[int64]*config.Routing{1: doc},
		Carried:  carried,
	}
	for _, c := range r.Channels {
		f.Choices = append(
			f.Choices,
			ledger.ChoiceRow{
				Version:     1,
				Route:       route,
				Channel:     c.Channel,
				FirstChoice: c.FirstChoice,
			},
		)
	}
	daily := report.NewDaily(&f)
	v := &daily.Routes[0]
	r.ChiSquareP = 1
	if v.PValue != nil {
		r.ChiSquareP = *v.PValue
	}
	r.Verdict, r.TrafficVerdict = v.TrafficVerdict, v.TrafficVerdict
	r.DrawsVerdict, r.Text = v.DrawsVerdict, v.Text
}

func channelTotal(t *ledger.Totals, name string) ledger.ChannelTotal {
	for _, c := range t.Channels {
		if c.Channel == name {
			return c
		}
	}
	return ledger.ChannelTotal{}
}
