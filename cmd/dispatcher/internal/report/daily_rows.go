package report

import "dispatcher/ledger"

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
	delivered := int64(0)
	for i := range out {
		delivered += out[i].Delivered
	}
	for i := range out {
		r := &out[i]
		r.PValue, r.Verdict, r.DrawsVerdict, r.TrafficVerdict = v.PValue, v.TrafficVerdict, v.DrawsVerdict, v.TrafficVerdict
		r.DeliveredShare = part(r.Delivered, delivered)
	}
	return out
}

// row is what was agreed for one channel, its first choices, and what it carried.
func (d *routeDay) row(channel string) DailyRow {
	r := DailyRow{
		Route: d.name, Channel: channel, FirstChoice: d.counts[channel], FirstChoiceShare: part(d.counts[channel], d.total),
		Carried: d.carried[channel], CarriedShare: part(d.carried[channel], d.carries), Moved: d.moves[channel],
	}
	if r.Moved == nil {
		r.Moved = []Move{}
	}
	d.agree(&r)
	return r
}

// agree fills in the shares that were agreed. On a day without a draw they are those of the route as
// it is now.
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
	r.Fallback, r.Submitted, r.Accepted, r.Delivered = from.Fallback, from.Submitted, from.Accepted, from.Delivered
	r.Undelivered, r.NoReceipt = from.Undelivered, from.NoReceipt
	r.Failed, r.Unknown = from.Failed(), from.Unknown
	r.Segments, r.CostMicros, r.Currency = from.Segments, from.CostMicros, from.Currency
	r.UnknownSegments, r.UnknownMicros = from.UnknownSegments, from.UnknownMicros
}
