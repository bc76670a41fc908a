package selector

import "math/big"

// Rat is the weight as a fraction.
func (w Weight) Rat() *big.Rat {
	return new(big.Rat).Quo(new(big.Rat).SetUint64(w.units), tenTo(w.decimals))
}

// Float is the weight as a float, for statistics that need no exact value.
func (w Weight) Float() float64 {
	f, _ := w.Rat().Float64()
	return f
}

// Decimals is how many digits the weight has after the point, without trailing zeros.
func (w Weight) Decimals() int { return w.decimals }

// Less reports whether the weight is smaller than another one.
func (w Weight) Less(than Weight) bool { return w.Rat().Cmp(than.Rat()) < 0 }

// Places is the largest number of decimals, at most most and MaxDecimals, that weights with this
// sum may have without exceeding MaxSize.
func Places(most int, sum *big.Rat) int {
	limit := new(big.Rat).SetInt64(MaxSize)
	for places := min(most, MaxDecimals); places > 0; places-- {
		if new(big.Rat).Mul(sum, tenTo(places)).Cmp(limit) <= 0 {
			return places
		}
	}
	return 0
}

// RoundHalfUp rounds to places decimals, halves up. It panics when the result is not a weight.
func RoundHalfUp(r *big.Rat, places int) Weight { return MustWeight(r.FloatString(places)) }

// RoundUp rounds up to places decimals. It panics when the result is not a weight.
func RoundUp(r *big.Rat, places int) Weight {
	units := new(big.Rat).Mul(r, tenTo(places))
	whole, rest := new(big.Int).QuoRem(units.Num(), units.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return RoundHalfUp(new(big.Rat).Quo(new(big.Rat).SetInt(whole), tenTo(places)), places)
}

// tenTo is 10^n.
func tenTo(n int) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil))
}
