package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Bounds of amounts in micros.
const (
	maxPrice  = 1_000_000_000_000     // a million units of currency for one segment
	maxBudget = 1_000_000_000_000_000 // a billion in one window
)

// Price is what a segment costs, in micros (millionths) of Currency.
type Price struct {
	Currency string // ISO 4217; empty when the document gives no price
	// Lists hold amounts in the order of their dates, each valid from its date until the next one's.
	// The first has no date. There is at least one unless Currency is empty.
	Lists []PriceList
}

// PriceList holds what a segment costs from a date on. The most specific amount applies: that of
// the network, else of the number's prefix, else of its country, else Default.
type PriceList struct {
	From    time.Time // zero for the first list of a price
	Default int64
	// Prefixes are amounts by prefix of the number, plus included. The longest applies.
	Prefixes map[string]int64
	// Countries are amounts by ISO 3166 region in lower case.
	Countries map[string]int64
	// Networks are amounts by prefix of the mobile network's code, MCC and MNC, three to six digits.
	// The longest applies.
	Networks map[string]int64
}

// amounts calls yield for every amount of every list.
func (p *Price) amounts(yield func(int64) bool) {
	for i := range p.Lists {
		l := &p.Lists[i]
		if !yield(l.Default) {
			return
		}
		for _, some := range []map[string]int64{l.Prefixes, l.Countries, l.Networks} {
			for _, amount := range some {
				if !yield(amount) {
					return
				}
			}
		}
	}
}

// Least is the lowest amount of all lists; 0 without a price.
func (p *Price) Least() int64 {
	if len(p.Lists) == 0 {
		return 0
	}
	least := int64(math.MaxInt64)
	for amount := range p.amounts {
		least = min(least, amount)
	}
	return least
}

// readPrice reads one list of prices, or several, of which all but the first have a date. Dates
// without a time begin at midnight in the zone.
func readPrice(v value, zone *time.Location) Price {
	var p Price
	items := []value{v}
	if v.isList() {
		items = v.items()
	}
	if len(items) == 0 {
		v.fail(`there is no price; write for example {currency: EUR, default: "0.031"}`)
	}
	for i, item := range items {
		f, ok := item.fields(pricePart)
		if !ok {
			continue
		}
		p.readCurrency(f, i == 0)
		l := readPriceList(f)
		from, dated := f.get("from")
		switch {
		case dated && i == 0:
			from.fail("is in the first list, which is valid from the beginning; remove " +
				"from, or put the price until then before it")
		case dated:
			l.From = from.date(zone)
		case i > 0:
			item.fail("from is missing; write when this list begins, for example from: " +
				"2026-12-01")
		}
		if n := len(p.Lists); n > 1 && dated && !l.From.After(p.Lists[n-1].From) {
			from.fail("is not after the list before it; put the lists in the order of their dates")
		}
		p.Lists = append(p.Lists, l)
	}
	return p
}

// readCurrency reads the currency of one list. All lists must have the same, because limits in
// money add up what a channel costs.
func (p *Price) readCurrency(f fields, first bool) {
	if first {
		if v, ok := f.need("currency", "currency: EUR"); ok {
			p.Currency = readCurrency(v)
		}
		return
	}
	if v, ok := f.get("currency"); ok {
		if other := readCurrency(v); other != p.Currency {
			v.fail("a channel has its price in one currency, and the first list says %s; make "+
				"it a channel of its own", p.Currency)
		}
	}
}

// readPriceList reads the amounts of one list.
func readPriceList(f fields) PriceList {
	var l PriceList
	if v, ok := f.need("default", `default: "0.031"`); ok {
		l.Default, _ = v.micros(maxPrice)
	}
	l.Prefixes = readAmounts(f, "prefixes", checkPrefix)
	l.Countries = readAmounts(f, "countries", checkCountry)
	l.Networks = readAmounts(f, "networks", checkNetwork)
	return l
}

// readAmounts reads a mapping of amounts whose keys pass a check; countries become lower case.
func readAmounts(f fields, key string, check func(value, string) bool) map[string]int64 {
	v, ok := f.get(key)
	if !ok {
		return nil
	}
	entries, _ := v.entries()
	out := make(map[string]int64, len(entries))
	for _, e := range entries {
		amount, ok := e.value.micros(maxPrice)
		if !check(e.value, e.name) || !ok {
			continue
		}
		name := strings.ToLower(e.name)
		if _, twice := out[name]; twice {
			e.value.fail("is listed twice; remove one of the two")
		}
		out[name] = amount
	}
	return out
}

// checkNetwork accepts a mobile country code, or that plus the beginning of a network code.
func checkNetwork(v value, s string) bool {
	if isDigits(s) && len(s) >= 3 && len(s) <= 6 {
		return true
	}
	v.fail(`%q is not a mobile network; write its country code of three digits with or without the `+
		`network's own behind it, in quotes, such as "23415"`, s)
	return false
}

// parseMicros turns a plain decimal with at most six decimals into millionths, without rounding.
// most is a power of ten and at least a million.
func parseMicros(s string, most int64) (int64, error) { return parseDecimal(s, 6, most) }

// parseDecimal is parseMicros for another number of decimals: the result is in units of the last of
// them.
func parseDecimal(s string, digits int, most int64) (int64, error) {
	if strings.HasPrefix(s, "-") {
		return 0, errors.New("is negative")
	}
	whole, fraction, point := strings.Cut(s, ".")
	if !isDigits(whole) || (point && !isDigits(fraction)) {
		return 0, errors.New("is not a plain decimal number")
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > digits {
		return 0, fmt.Errorf("has more than %s decimals", map[int]string{
			6: "six",
			9: "nine",
		}[digits])
	}
	var m int64
	for _, r := range whole + fraction + strings.Repeat("0", digits-len(fraction)) {
		m = m*10 + int64(r-'0')
		if m > most {
			return 0, fmt.Errorf("is more than %d", most/pow10(digits))
		}
	}
	return m, nil
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func readCurrency(v value) string {
	s, ok := v.text()
	if ok {
		checkCurrency(v, s)
	}
	return s
}

func checkCurrency(v value, s string) bool {
	if len(s) == 3 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
		return true
	}
	v.fail("%q is not a currency; write its three capital letters, such as EUR", s)
	return false
}

// IsPrefix accepts the beginning of an E.164 number: a plus and 1 to 15 digits.
func IsPrefix(s string) bool {
	digits, plus := strings.CutPrefix(s, "+")
	return plus && isDigits(digits) && len(digits) <= 15 && digits[0] != '0'
}

// checkPrefix does not repeat the text in its error, because it may be the number of a person
// without its plus. If the prefix is a key, the path of the error leaves it out.
func checkPrefix(v value, s string) bool {
	if IsPrefix(s) {
		return true
	}
	v.r.fail(v.node.Line, strings.TrimSuffix(v.key, "."+s),
		`a prefix here does not begin a number; write a plus and digits in quotes, such as "+44"`)
	return false
}

// readPriceCap reads the most that one message of a route may cost, by currency.
func readPriceCap(f fields) map[string]int64 {
	v, ok := f.get("price_cap")
	if !ok {
		return nil
	}
	entries, ok := v.entries()
	if !ok {
		return nil
	}
	if len(entries) == 0 {
		v.fail(`names no currency; write for example {EUR: "0.10"} or remove the key`)
	}
	out := make(map[string]int64, len(entries))
	for _, e := range entries {
		amount, ok := e.value.micros(maxPrice)
		if checkCurrency(e.value, e.name) && ok {
			out[e.name] = amount
		}
	}
	return out
}

// checkPriceCap reports members of a route without an amount in its cap, and a cap below every
// price.
func checkPriceCap(f fields, r *Route, known *scope) {
	v, ok := f.get("price_cap")
	if !ok || len(r.PriceCap) == 0 {
		return
	}
	fits, priced := false, 0
	for _, name := range r.Channels {
		c := known.channels[name]
		if c == nil {
			continue
		}
		most, capped := r.PriceCap[c.Price.Currency]
		switch {
		case c.Price.Currency == "":
			v.fail(`channel %s has no price, so nobody can tell whether it keeps the cap; give `+
				`it one, if only {currency: %s, default: "0"}`, name,
				slices.Sorted(maps.Keys(r.PriceCap))[0])
		case !capped:
			v.fail("channel %s has its price in %s, for which the cap has no amount; add %s, or "+
				"take the channel out of the route", name, c.Price.Currency, c.Price.Currency)
		default:
			priced++
			fits = fits || c.Price.Least() <= most
		}
	}
	if priced > 0 && priced == len(r.Channels) && !fits {
		v.fail("is below the lowest price of every channel of the route, so it would let " +
			"nothing pass; raise it")
	}
	v.reportUnused(r, known)
}

// reportUnused reports an amount in a currency that no member uses, which is probably a mistake.
func (v value) reportUnused(r *Route, known *scope) {
	entries, _ := v.entries()
	for _, e := range entries {
		used := slices.ContainsFunc(r.Channels, func(name string) bool {
			c := known.channels[name]
			return c == nil || c.Price.Currency == "" || c.Price.Currency == e.name
		})
		if _, read := r.PriceCap[e.name]; read && !used {
			e.value.fail("no channel of the route has its price in %s; remove it", e.name)
		}
	}
}
