package report

// without is the key of the rows that a row's shares are a part of: those that differ from it only
// in the last dimension.
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

// share sets the shares of messages.
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

// shareAmounts sets the shares of delivered messages, of segments and of money.
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
