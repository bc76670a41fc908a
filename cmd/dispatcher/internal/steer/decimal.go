package steer

import (
	"math/big"
	"strings"

	"dispatcher/selector"
)

const (
	// maxDecimals is how many digits a weight may have after the decimal point.
	maxDecimals = 9
	// maxSize is the largest sum of a route's weights after they were scaled to whole numbers;
	// see selector.NewTable.
	maxSize = 1 << 40
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

// resolution is how many decimals a computed weight may have: most + more, at most maxDecimals.
// most is the largest number of decimals among the weights it is computed from. The result is
// smaller where weights with the sum given would exceed maxSize.
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
