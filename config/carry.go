package config

import (
	"math/big"
	"strings"

	"dispatcher/selector"
)

// CarryEffects are the effects that remain when the document of after takes the place of the
// routing before, which has effects in force: each lowered channel keeps the same part of
// its new configured weight, so that no change of the document, on whatever route, lifts a failing
// channel.
//
// A part is exact where a weight of a valid table can be: it is rounded to the nearest of
// at most nine decimals, fewer beside large weights. It is never below the floor of the new
// document, rounded up. Gone are the effects of a route that is gone or has no health weighting any
// more, and those of a channel that is gone, was given the weight 0, or whose weight has no
// room for a smaller one.
func CarryEffects(before, after *Routing) Effects {
	earlier := make(map[string]*Route, len(before.Routes))
	for i := range before.Routes {
		earlier[before.Routes[i].Name] = &before.Routes[i]
	}
	var e Effects
	for i := range after.Routes {
		route := &after.Routes[i]
		was := earlier[route.Name]
		if was == nil || route.Health == nil {
			continue
		}
		for channel, w := range route.carry(was) {
			e.Set(route.Name, channel, w)
		}
	}
	return e
}

// carry are the effective weights of a route that come from those before.
func (r *Route) carry(before *Route) map[string]selector.Weight {
	left := map[string]*big.Rat{} // the part of the configured weight that is in force
	for _, w := range before.Weights {
		if compareWeights(w.Weight, w.Configured) < 0 {
			left[w.Channel] = new(big.Rat).Quo(fraction(w.Weight), fraction(w.Configured))
		}
	}
	if len(left) == 0 {
		return nil
	}
	places := r.places()
	out := map[string]selector.Weight{}
	for _, w := range r.Weights {
		part, lowered := left[w.Channel]
		if !lowered {
			continue
		}
		effective := scaled(w.Configured, part, places)
		if floor := scaledUp(w.Configured, big.NewRat(int64(r.Health.Floor), 100), places); compareWeights(effective, floor) < 0 {
			effective = floor
		}
		if compareWeights(effective, w.Configured) < 0 {
			out[w.Channel] = effective
		}
	}
	return out
}

const (
	// weightDecimals is how many digits a weight may have behind its point.
	weightDecimals = 9
	// tableSize is the largest sum of the weights of a route in units of their last decimal;
	// see selector.NewTable.
	tableSize = 1 << 40
)

// places is the largest number of decimals that every weight of the route may have, none
// being above the configured one, with a valid table.
func (r *Route) places() int {
	sum := new(big.Rat)
	for _, w := range r.Weights {
		sum.Add(sum, fraction(w.Configured))
	}
	room := new(big.Rat).SetInt64(tableSize)
	for places := weightDecimals; places > 0; places-- {
		if new(big.Rat).Mul(sum, tens(places)).Cmp(room) <= 0 {
			return places
		}
	}
	return 0
}

// scaled is part of a weight, rounded to so many decimals, halves up.
func scaled(w selector.Weight, part *big.Rat, places int) selector.Weight {
	text := new(big.Rat).Mul(fraction(w), part).FloatString(places)
	return selector.MustWeight(text) // not above w, and with no more decimals than fit
}

// scaledUp is part of a weight, rounded up to so many decimals.
func scaledUp(w selector.Weight, part *big.Rat, places int) selector.Weight {
	units := new(big.Rat).Mul(fraction(w), part)
	units.Mul(units, tens(places))
	whole, rest := new(big.Int).QuoRem(units.Num(), units.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	up := new(big.Rat).Quo(new(big.Rat).SetInt(whole), tens(places))
	return selector.MustWeight(up.FloatString(places))
}

// fraction is a weight as an exact number.
func fraction(w selector.Weight) *big.Rat {
	f, _ := new(big.Rat).SetString(w.String()) // its text is a plain decimal
	return f
}

// tens is 10^n.
func tens(n int) *big.Rat {
	f, _ := new(big.Rat).SetString("1" + strings.Repeat("0", n))
	return f
}
