package steer

import (
	"math/big"
	"strings"

	"dispatcher/selector"
)

// exact is a weight as a fraction.
func exact(w selector.Weight) *big.Rat {
	r, _ := new(big.Rat).SetString(w.String()) // its text is a plain decimal
	return r
}

// decimals is how many digits a weight has after the decimal point.
func decimals(w selector.Weight) int {
	_, fraction, _ := strings.Cut(w.String(), ".")
	return len(fraction)
}

// resolution is how many decimals a computed weight may have: most + more, at most
// selector.MaxDecimals. most is the largest number of decimals among the weights it is computed
// from. The result is smaller where weights with the sum given would exceed selector.MaxSize.
func resolution(more, most int, sum *big.Rat) int {
	limit := new(big.Rat).SetInt64(selector.MaxSize)
	for places := min(most+more, selector.MaxDecimals); places > 0; places-- {
		if new(big.Rat).Mul(sum, power(places)).Cmp(limit) <= 0 {
			return places
		}
	}
	return 0
}

// power is 10^n.
func power(n int) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil))
}

// roundHalfUp rounds to places decimals, halves up.
func roundHalfUp(r *big.Rat, places int) selector.Weight {
	return selector.MustWeight(r.FloatString(places)) // valid: it lies between valid weights
}

// roundUp rounds up to places decimals.
func roundUp(r *big.Rat, places int) selector.Weight {
	scaled := new(big.Rat).Mul(r, power(places))
	whole, rest := new(big.Int).QuoRem(scaled.Num(), scaled.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return roundHalfUp(new(big.Rat).Quo(new(big.Rat).SetInt(whole), power(places)), places)
}

// number is a weight as a float, for statistics and metrics that need no exact value.
func number(w selector.Weight) float64 {
	f, _ := exact(w).Float64()
	return f
}
