package admission

import (
	"math"
	"math/bits"
)

// portion is n x part / whole, rounded down; n and part must not be negative, and whole is above 0.
// The product may exceed 64 bits, as micros of a currency times the nanoseconds of a day do. A
// result above 64 bits becomes the largest int64.
func portion(n, part, whole int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(part))
	if hi >= uint64(whole) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(whole))
	return int64(min(q, math.MaxInt64))
}

// portionUp is portion rounded up.
func portionUp(n, part, whole int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(part))
	lo, carry := bits.Add64(lo, uint64(whole)-1, 0)
	if hi += carry; hi >= uint64(whole) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(whole))
	return int64(min(q, math.MaxInt64))
}
