package admission

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"dispatcher/config/tier"
)

func TestPortionIsExactBeyond64Bits(t *testing.T) {
	t.Parallel()
	tier.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int64{10, 1 << 40, math.MaxInt64})
		n := rapid.Int64Range(0, size.Draw(t, "n at most")).Draw(t, "n")
		part := rapid.Int64Range(0, size.Draw(t, "part at most")).Draw(t, "part")
		whole := rapid.Int64Range(1, size.Draw(t, "whole at most")).Draw(t, "whole")
		product := new(big.Int).Mul(big.NewInt(n), big.NewInt(part))
		down, rest := new(big.Int).QuoRem(product, big.NewInt(whole), new(big.Int))
		up := new(big.Int).Set(down)
		if rest.Sign() > 0 {
			up.Add(up, big.NewInt(1))
		}
		if got := portion(n, part, whole); got != saturated(down) {
			t.Fatalf("%d x %d / %d: %d, want %s", n, part, whole, got, down)
		}
		if got := portionUp(n, part, whole); got != saturated(up) {
			t.Fatalf("%d x %d / %d, up: %d, want %s", n, part, whole, got, up)
		}
	})
}

func saturated(n *big.Int) int64 {
	if n.IsInt64() {
		return n.Int64()
	}
	return math.MaxInt64
}
