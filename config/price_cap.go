package config

import (
	"maps"
	"slices"
)

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

// checkPriceCap reports members of a route that its cap says nothing about, and a cap below every price.
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
			v.fail(`channel %s has no price, so nobody can tell whether it keeps the cap; give it one, if only {currency: %s, default: "0"}`, name, slices.Sorted(maps.Keys(r.PriceCap))[0])
		case !capped:
			v.fail("channel %s has its price in %s, for which the cap has no amount; add %s, or take the channel out of the route", name, c.Price.Currency, c.Price.Currency)
		default:
			priced++
			fits = fits || c.Price.Least() <= most
		}
	}
	if priced > 0 && priced == len(r.Channels) && !fits {
		v.fail("is below the lowest price of every channel of the route, so it would let nothing pass; raise it")
	}
	v.reportUnused(r, known)
}

// reportUnused reports an amount in a currency in which no member has its price: most likely a slip.
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
