package config

import (
	"maps"
	"slices"
	"strings"
)

// Rates convert prices to one currency, so that they can be compared. The zero value has no rates
// and converts nothing.
type Rates struct {
	Base string // ISO 4217; empty without rates
	// Per is what one unit of a currency is worth in Base, in billionths. It has no entry for Base.
	Per map[string]int64
}

// rateOne is the rate of 1.
const rateOne = 1_000_000_000

// Rate is the rate of a currency; false when there is none.
func (r *Rates) Rate(currency string) (billionths int64, ok bool) {
	if currency == r.Base {
		return rateOne, r.Base != ""
	}
	billionths, ok = r.Per[currency]
	return billionths, ok
}

const maxRate = 1_000_000 * rateOne

// readRates reads the table and checks that every price has a rate: otherwise channels could not be
// compared.
func readRates(v value, channels []Channel) Rates {
	var r Rates
	entries, ok := v.entries()
	if !ok {
		return r
	}
	for _, e := range entries {
		if e.name == "base" {
			r.Base = readCurrency(e.value)
		}
	}
	if !v.has("base") {
		v.fail(`base is missing; name the currency that prices are compared in, for example ` +
			`{base: EUR, GBP: "1.17"}`)
		return r
	}
	r.Per = make(map[string]int64, len(entries))
	for _, e := range entries {
		if e.name == "base" || !checkCurrency(e.value, e.name) {
			continue
		}
		if rate, ok := e.value.rate(); ok {
			r.Per[e.name] = rate
		}
		if e.name == r.Base {
			e.value.fail("is the base itself, whose rate is 1; remove it")
			delete(r.Per, e.name)
		}
	}
	v.checkRates(&r, channels)
	return r
}

func (v value) checkRates(r *Rates, channels []Channel) {
	for i := range channels {
		c := &channels[i]
		if c.Price.Currency == "" || v.has(c.Price.Currency) {
			continue // it has no price, or its rate was read above
		}
		if _, ok := r.Rate(c.Price.Currency); !ok {
			v.fail(`has no rate for %s, in which channel %s has its price; add what one %[1]s `+
				`is worth in %[3]s, for example %[1]s: "1.17"`,
				c.Price.Currency, c.Name, r.Base)
		}
	}
}

// rate reads an exact decimal above 0.
func (v value) rate() (billionths int64, ok bool) {
	const want = `a rate such as "1.17"`
	s, ok := v.raw(want)
	if !ok {
		return 0, false
	}
	n, err := parseDecimal(s, 9, maxRate)
	switch {
	case err != nil:
		v.fail(`%q %v; write %s`, s, err, want)
		return 0, false
	case n == 0:
		v.fail("is 0, which would make everything in that currency free; write what one unit of " +
			"it is worth in the base")
		return 0, false
	}
	return n, true
}

// checkScoredPrices refuses an expression over prices that cannot be compared: plain numbers of
// several currencies, or of a channel without a price, which would count as free.
func checkScoredPrices(f fields, r *Route, known *scope) {
	if r.Scoring.Expression == nil || !r.Scoring.Expression.ReadsPrice() || known.applied {
		return
	}
	at, _ := f.get("scoring")
	if keys, ok := at.fields(expressionPart); ok {
		at, _ = keys.get("expression")
	}
	by := map[string][]string{}
	for _, name := range r.Channels {
		c := known.channels[name]
		switch {
		case c == nil: // reported before
		case c.Price.Currency == "":
			at.fail(`reads price, but channel %s of route %s has none and would count as free; `+
				`give it one, if only {currency: EUR, default: "0"}`, name, r.Name)
		default:
			by[c.Price.Currency] = append(by[c.Price.Currency], name)
		}
	}
	if len(by) < 2 || known.rates.Base != "" {
		return
	}
	var words []string
	for _, currency := range slices.Sorted(maps.Keys(by)) {
		words = append(words, currency+" ("+strings.Join(by[currency], ", ")+")")
	}
	at.fail(`reads price, but the channels of route %s have theirs in several currencies, %s, `+
		`which cannot be compared; add top-level rates: {base: EUR, GBP: "1.17"} with a rate `+
		`for each, or keep the route to one currency`,
		r.Name, strings.Join(words, " and "))
}
