package steer

import (
	"math/big"
	"strings"

	"dispatcher/selector"
)

const (
	// maxDecimals is how many digits a weight may have behind its point.
	maxDecimals = 9
	// maxSize is the largest sum that the weights of a route may have once they have been scaled
	// to whole numbers; see selector.NewTable.
	maxSize = 1 << 40
)

// exact is a weight as a fraction.
func exact(w selector.Weight) *big.Rat {
	r, _ := new(big.Rat).SetString(w.String()) // its text is a plain decimal
	return r
}

// decimals is how many digits a weight has behind its point.
func decimals(w selector.Weight) int {
	_, fraction, _ := strings.Cut(w.String(), ".")
	return len(fraction)
}

// resolution is how many decimals a computed weight may have: most + more, but nine at most. Of the
// weights that it is computed from, the most precise one has most decimals. The result is smaller
// if a route whose weights add up to sum at most would otherwise have no valid table.
func resolution(more, most int, sum *big.Rat) int {
	limit := new(big.Rat).SetInt64(maxSize)
	for places := min(most+more, maxDecimals); places > 0; places-- {
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

// nearest rounds to so many decimals, halves up.
func nearest(r *big.Rat, places int) selector.Weight {
	return selector.MustWeight(r.FloatString(places)) // within the bounds of what it was made of
}

// atLeast rounds up to so many decimals.
func atLeast(r *big.Rat, places int) selector.Weight {
	scaled := new(big.Rat).Mul(r, power(places))
	whole, rest := new(big.Int).QuoRem(scaled.Num(), scaled.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return nearest(new(big.Rat).Quo(new(big.Rat).SetInt(whole), power(places)), places)
}

// number is a weight for statistics, which need no exactness.
func number(w selector.Weight) float64 {
	f, _ := exact(w).Float64()
	return f
}
