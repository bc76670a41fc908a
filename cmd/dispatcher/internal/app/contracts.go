package app

import (
	"context"
	"errors"
	"time"

	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
)

// showCaps shows how much of its cap each channel has used in its contract month. It counts only
// closed days, whose figures are cheap to read; "report contracts" also counts today.
func (d *days) showCaps(ctx context.Context) {
	used, err := d.capsUsed(ctx)
	if err != nil {
		if ctx.Err() == nil {
			d.trouble("caps of contracts", err)
		}
		return
	}
	d.metrics.capUsed.Reset() // the document may have fewer of them now
	for channel, part := range used {
		d.metrics.capUsed.WithLabelValues(channel).Set(part)
	}
}

// capsUsed returns the used part of each cap by channel.
func (d *days) capsUsed(ctx context.Context) (map[string]float64, error) {
	v, err := documentVersion(ctx, d.routing, 0)
	if errors.Is(err, ledger.ErrNoRouting) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	_, doc, err := config.ParseVersion(v.Version, v.Document, nil)
	if err != nil {
		return nil, err
	}
	var closed []ledger.ClosedDay
	var now time.Time
	used := map[string]float64{}
	months := map[int]ledger.RangeFigures{} // by the day on which they begin
	for i := range doc.Channels {
		channel := &doc.Channels[i]
		begins := channel.Contract.Begins
		if channel.Contract.Cap <= 0 {
			continue
		}
		if now.IsZero() {
			if now, err = d.clock(ctx); err != nil {
				return nil, err
			}
			if closed, err = d.reports.ClosedDays(ctx); err != nil {
				return nil, err
			}
		}
		month, ok := months[begins]
		if !ok {
			from, to := report.ContractMonth(now, doc.Timezone, begins)
			if month, err = d.closedFigures(ctx, closed, from, to); err != nil {
				return nil, err
			}
			months[begins] = month
		}
		sum := int64(0)
		for j := range month.Parts {
			sum += report.Billed(channel, month.Parts[j].Rows)
		}
		used[channel.Name] = float64(sum) / float64(channel.Contract.Cap)
	}
	return used, nil
}

// closedFigures adds up the closed days from the date of from to the one before that of to.
func (d *days) closedFigures(
	ctx context.Context, closed []ledger.ClosedDay, from, to time.Time,
) (ledger.RangeFigures, error) {
	first, end := from.Format(time.DateOnly), to.Format(time.DateOnly)
	var dates []string
	for i := range closed {
		if date := closed[i].Date; first <= date && date < end {
			dates = append(dates, date)
		}
	}
	return Figures(ctx, d.routing, d.reports, dates)
}

// Figures adds up the figures of ascending dates.
func Figures(
	ctx context.Context, routing *ledger.Routing, reports *ledger.Reports, dates []string,
) (ledger.RangeFigures, error) {
	noons, err := BusinessDays(ctx, routing, dates)
	if err != nil {
		return ledger.RangeFigures{}, err
	}
	days := make([]ledger.RangeDay, len(noons))
	for i, noon := range noons {
		days[i].BusinessDay = ledger.NewBusinessDay(noon, noon.Location())
	}
	return reports.Range(ctx, days, ledger.Split{}, nil)
}
