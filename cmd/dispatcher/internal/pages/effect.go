package pages

import (
	"fmt"
	"html/template"
	"strings"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
)

// effectPage shows what other weights of a route would change.
type effectPage struct {
	Route   string
	Changed bool
	Size    uint64 // how many draws there are
	Rows    []*effectRow
	Before  template.HTML
	After   template.HTML
	// Cost is what 1000 segments cost at the default prices with the new weights, CostBefore with the
	// present ones. Both are empty when a channel has no price, or currencies differ.
	Cost, CostBefore string
	Problem          string
	Warnings         []string
}

type effectRow struct {
	Channel            string
	Weight, Effective  string
	Low, High          *uint64
	Share, ShareBefore *float64
	Rate, RateNow      float64 // attempts a second on the channel
	Limit              *float64
	Over               bool
	Index              int
	Takes              bool
}

// effectOf compares the intervals of a route before and after a change, and projects the traffic of
// the last minutes on both. before is nil for a new route.
func effectOf(now *snapshot, before, after *config.Route) (*effectPage, error) {
	is, err := report.PreviewRoute(after)
	was := &report.RoutePreview{}
	if err == nil && before != nil {
		was, err = report.PreviewRoute(before)
	}
	if err != nil {
		return nil, err
	}
	p := &effectPage{
		Route: after.Name, Size: is.Size, Before: intervalBar(was), After: intervalBar(is),
	}
	messages := routeRate(now, after.Name)
	old := map[string]report.IntervalPreview{}
	for _, iv := range was.Intervals {
		old[iv.Channel] = iv
	}
	for i, iv := range is.Intervals {
		row := newEffectRow(now, messages, old[iv.Channel], iv)
		row.Index = i % len(series)
		p.Rows = append(p.Rows, &row)
		p.Changed = p.Changed || changedShare(old[iv.Channel].Share, iv.Share)
		if row.Over {
			p.Warnings = append(p.Warnings, fmt.Sprintf("Channel %s would get %.1f attempts a "+
				"second, and its limits allow %s on average: the rest goes to the others or waits.",
				row.Channel, row.Rate, rate(row.Limit)))
		}
		if !row.Takes && deref(iv.Share) > 0 {
			p.Warnings = append(p.Warnings, control.TakesNone(row.Channel))
		}
	}
	p.Cost, p.CostBefore = thousand(now.doc, is), thousand(now.doc, was)
	return p, nil
}

// Last is the highest possible draw.
func (p *effectPage) Last() string { return number(int64(max(p.Size, 1) - 1)) }

// LowNumber is the lower end of the interval.
func (r *effectRow) LowNumber() uint64 { return *r.Low }

// HighNumber is the upper end.
func (r *effectRow) HighNumber() uint64 { return *r.High }

func changedShare(a, b *float64) bool { return (a == nil) != (b == nil) || deref(a) != deref(b) }

func newEffectRow(now *snapshot, route float64, was, is report.IntervalPreview) effectRow {
	row := effectRow{
		Channel: is.Channel, Low: is.Low, High: is.High, Share: is.Share, ShareBefore: was.Share,
	}
	if is.Weight != nil {
		row.Weight = is.Weight.String()
	}
	if is.Configured != nil {
		row.Weight, row.Effective = is.Configured.String(), is.Weight.String()
	}
	for i := range now.status.Channels {
		if c := &now.status.Channels[i]; c.Name == is.Channel {
			row.RateNow, row.Limit = c.Rate, c.Limit
			row.Takes = c.State == string(config.Enabled)
		}
	}
	row.Rate = max(row.RateNow+route*(deref(is.Share)-deref(was.Share)), 0)
	row.Over = row.Limit != nil && row.Rate > *row.Limit && row.Rate > row.RateNow
	return row
}

// routeRate is the number of messages a second that a route received since snapshot.since.
func routeRate(now *snapshot, route string) float64 {
	var messages int64
	for _, c := range now.carried[route] {
		messages += c.FirstChoice
	}
	if seconds := now.status.Now.Sub(now.since()).Seconds(); seconds >= 1 {
		return float64(messages) / seconds
	}
	return 0
}

// thousand is the cost of 1000 segments by the shares of a route and the default prices of its
// channels.
func thousand(doc *config.Routing, p *report.RoutePreview) string {
	currency, sum := "", 0.0
	for _, iv := range p.Intervals {
		channel := doc.Channel(iv.Channel)
		if channel == nil || deref(iv.Share) == 0 {
			continue
		}
		price := &channel.Price
		if price.Currency == "" || currency != "" && price.Currency != currency {
			return ""
		}
		currency = price.Currency
		sum += *iv.Share * float64(price.Lists[len(price.Lists)-1].Default) * 1000
	}
	if currency == "" {
		return ""
	}
	return fmt.Sprintf("%.2f %s", sum/1e6, currency)
}

// intervalBar draws the intervals side by side.
func intervalBar(p *report.RoutePreview) template.HTML {
	var out strings.Builder
	out.WriteString(`<svg class="intervals" viewBox="0 0 1000 26" preserveAspectRatio="none" ` +
		`aria-hidden="true" focusable="false">`)
	at := 0.0
	for i, iv := range p.Intervals {
		width := 1000 * deref(iv.Share)
		fmt.Fprintf(&out, `<rect class="c%d" x="%.2f" width="%.2f" height="26"/>`, i%len(series), at,
			max(width-2, 0))
		at += width
	}
	out.WriteString(`</svg>`)
	return template.HTML(out.String()) //nolint:gosec // Numbers alone.
}
