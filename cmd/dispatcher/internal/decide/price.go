package decide

import (
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"dispatcher/config"
)

// Price is the price of a channel, indexed. The zero value charges nothing.
type Price struct {
	config.Price
	longest []int // length of the longest prefix of each list

	rate int64  // billionths of a unit of base that one unit of Currency is worth; 0 converts nothing
	base string // empty when nothing is converted
}

// NewPrice indexes lists, which are in the order of their dates.
func NewPrice(currency string, lists ...config.PriceList) Price {
	p := Price{
		Price: config.Price{Currency: currency, Lists: lists}, longest: make([]int, len(lists)),
	}
	for i := range lists {
		for prefix := range lists[i].Prefixes {
			p.longest[i] = max(p.longest[i], len(prefix))
		}
	}
	return p
}

// In sets the rate, in billionths, at which the price is converted to a base currency. The
// converted price is used to compare channels; billing stays in Currency.
func (p Price) In(base string, rate int64) Price {
	p.base, p.rate = base, rate
	return p
}

// comparable converts an amount of Currency to the base, rounded half up to a micro. Without rates
// it is the amount itself.
func (p *Price) comparable(micros int64) int64 {
	if p.rate == 0 {
		return micros
	}
	const one = 1_000_000_000
	high, low := bits.Mul64(uint64(micros), uint64(p.rate)) //nolint:gosec // Neither is negative.
	low, carry := bits.Add64(low, one/2, 0)
	if high += carry; high >= one {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, one)
	return int64(min(quotient, math.MaxInt64)) //nolint:gosec // Bounded.
}

// comparedIn is the currency of what comparable returns; empty for a channel without a price.
func (p *Price) comparedIn() string {
	if p.rate == 0 {
		return p.Currency
	}
	return p.base
}

// Segment is the price of one segment at a time of the database's clock.
func (p *Price) Segment(to *Destination, at time.Time) int64 {
	if len(p.Lists) == 0 {
		return 0
	}
	i := p.at(at)
	l := &p.Lists[i]
	if to.Network != "" && len(l.Networks) > 0 {
		for n := len(to.Network); n > 0; n-- {
			if amount, ok := l.Networks[to.Network[:n]]; ok {
				return amount
			}
		}
	}
	for n := min(p.longest[i], len(to.Number)); n > 0; n-- {
		if amount, ok := l.Prefixes[to.Number[:n]]; ok {
			return amount
		}
	}
	if amount, ok := l.Countries[to.Country]; ok {
		return amount
	}
	return l.Default
}

// possible are the amounts that a segment may cost at a time when only the calling code of the
// number is known; ascending and distinct.
func (p *Price) possible(r *Routing, code int16, at time.Time) []int64 {
	if len(p.Lists) == 0 {
		return []int64{0}
	}
	l := &p.Lists[p.at(at)]
	amounts, longest := slices.Collect(maps.Values(l.Networks)), ""
	for prefix, amount := range l.Prefixes {
		switch may, surely := begins(code, prefix); {
		case surely:
			longest = max(longest, prefix) // of two prefixes that surely match, one is a prefix of the other
		case may:
			amounts = append(amounts, amount)
		}
	}
	if longest != "" {
		amounts = append(amounts, l.Prefixes[longest])
	} else {
		amounts = append(amounts, l.Default)
		for country, amount := range l.Countries {
			if r.mayBeIn(code, country) {
				amounts = append(amounts, amount)
			}
		}
	}
	slices.Sort(amounts)
	return slices.Compact(amounts)
}

// at is the index of the list in force at a time; the first list for the zero time.
func (p *Price) at(at time.Time) int {
	for i := len(p.Lists) - 1; i > 0; i-- {
		if !at.Before(p.Lists[i].From) {
			return i
		}
	}
	return 0
}

// byCountry reports whether a list has amounts for countries.
func (p *Price) byCountry() bool {
	for i := range p.Lists {
		if len(p.Lists[i].Countries) > 0 {
			return true
		}
	}
	return false
}

// units is Segment for scoring rules: in whole units of the base currency, or of the channel's own
// currency where the document has no rates.
func (p *Price) units(to *Destination, at time.Time) float64 {
	return float64(p.comparable(p.Segment(to, at))) / 1e6
}

// Price is what a number of parts of the message costs on a channel at the time of the task.
func (t *Task) Price(ch *Channel, parts int) int64 {
	return int64(parts) * ch.Price.Segment(&t.to, t.At)
}

// overPriceCap reports whether the whole message costs more on a channel than allowed by its own
// max_price or by the cap of its route. max_price is in the base currency of the document's rates
// or, without rates, in the channel's own. The cap has an amount for each currency.
func (t *Task) overPriceCap(ch *Channel) bool {
	if t.msg.MaxPrice == nil && len(t.Route.PriceCap) == 0 {
		return false
	}
	cost := t.Price(ch, t.segments(ch))
	if t.msg.MaxPrice != nil && ch.Price.comparable(cost) > *t.msg.MaxPrice {
		return true
	}
	most, capped := t.Route.PriceCap[ch.Price.Currency]
	return capped && cost > most
}

// networkLabel is the label of a message that names the mobile network of its recipient.
const networkLabel = "mccmnc"

// network is the label's value if it is digits only; else empty.
func network(label string) string {
	if strings.Trim(label, "0123456789") != "" {
		return ""
	}
	return label
}
