package dispatch

import (
	"math"
	"math/bits"
	"strings"
	"time"
)

// Price is what a channel charges for a segment, in micros of Currency. The zero value charges nothing.
type Price struct {
	Currency string
	lists    []PriceList // ascending by From, which is zero for the first

	rate int64  // billionths of a unit of base that one unit of Currency is worth; 0 converts nothing
	base string // empty when nothing is converted
}

// PriceList holds amounts that are charged from a time on. The closest counts: that of the network,
// else of the number's prefix, else of its country, else Default.
type PriceList struct {
	From      time.Time
	Default   int64
	Prefixes  map[string]int64 // by the beginning of the number, plus included; the longest counts
	Countries map[string]int64 // by ISO 3166 region in lower case
	Networks  map[string]int64 // by the beginning of MCC and MNC; the longest counts

	longest int // of the prefixes
}

// NewPrice indexes lists, which are in the order of their dates.
func NewPrice(currency string, lists ...PriceList) Price {
	p := Price{Currency: currency, lists: lists}
	for i := range lists {
		for prefix := range lists[i].Prefixes {
			lists[i].longest = max(lists[i].longest, len(prefix))
		}
	}
	return p
}

// In makes the price comparable with others: it is converted at a rate, in billionths, to a base
// currency wherever one number stands for the prices of several channels. What is billed stays in
// Currency.
func (p Price) In(base string, rate int64) Price {
	p.base, p.rate = base, rate
	return p
}

// comparable converts an amount of Currency to the base, rounded half up to a micro. Without rates it
// is the amount itself.
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
	l := p.at(at)
	if l == nil {
		return 0
	}
	return l.segment(to)
}

// at is the list that holds at a time; the first when that is zero, nil when there is none.
func (p *Price) at(at time.Time) *PriceList {
	for i := len(p.lists) - 1; i > 0; i-- {
		if !at.Before(p.lists[i].From) {
			return &p.lists[i]
		}
	}
	if len(p.lists) == 0 {
		return nil
	}
	return &p.lists[0]
}

func (l *PriceList) segment(to *Destination) int64 {
	if to.Network != "" && len(l.Networks) > 0 {
		for n := len(to.Network); n > 0; n-- {
			if amount, ok := l.Networks[to.Network[:n]]; ok {
				return amount
			}
		}
	}
	for n := min(l.longest, len(to.Number)); n > 0; n-- {
		if amount, ok := l.Prefixes[to.Number[:n]]; ok {
			return amount
		}
	}
	if amount, ok := l.Countries[to.Country]; ok {
		return amount
	}
	return l.Default
}

// byCountry reports whether a list has amounts for countries.
func (p *Price) byCountry() bool {
	for i := range p.lists {
		if len(p.lists[i].Countries) > 0 {
			return true
		}
	}
	return false
}

// units is Segment for scoring rules: in whole units of the base currency, or of the channel's own
// where the document has no rates.
func (p *Price) units(to *Destination, at time.Time) float64 {
	return float64(p.comparable(p.Segment(to, at))) / 1e6
}

// price is what the message costs on a channel when parts of it are submitted, at the moment of the task.
func (t *task) price(ch *Channel, parts int) int64 {
	return int64(parts) * ch.Price.Segment(&t.to, t.at)
}

// dear reports whether the whole message costs more on a channel than it may: by its own max_price, which is in the
// base currency of the document's rates or, without rates, in the channel's own; or by the cap of its route, which has
// an amount for each currency.
func (t *task) dear(ch *Channel) bool {
	if t.msg.MaxPrice == nil && len(t.route.PriceCap) == 0 {
		return false
	}
	cost := t.price(ch, t.segments(ch))
	if t.msg.MaxPrice != nil && ch.Price.comparable(cost) > *t.msg.MaxPrice {
		return true
	}
	most, capped := t.route.PriceCap[ch.Price.Currency]
	return capped && cost > most
}

// networkLabel is the label of a message that names the mobile network of its recipient.
const networkLabel = "mccmnc"

// network is what a label says, digits alone; empty when it says nothing of use.
func network(label string) string {
	if strings.Trim(label, "0123456789") != "" {
		return ""
	}
	return label
}
