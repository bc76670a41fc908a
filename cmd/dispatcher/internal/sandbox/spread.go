package sandbox

import "math"

// Multipliers of spread, one for each decision, so that decisions are independent of each other: fractional parts of
// square roots that no rational numbers tie together.
const (
	forVerdict    = math.Sqrt2 - 1
	forReceipts   = 0.7320508075688772 // of 3
	forDelivered  = 0.2360679774997897 // of 5
	forEarly      = 0.6457513110645907 // of 7
	forDuplicates = 0.3166247903553998 // of 11
)

// spread places n in [0, 1). Successive numbers fall evenly, in no visible pattern: the sequence of H. Weyl (Über
// die Gleichverteilung von Zahlen mod. Eins, 1916).
func spread(n uint64, multiplier float64) float64 {
	x := float64(n) * multiplier
	return x - math.Floor(x)
}
