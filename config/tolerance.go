package config

// Tolerance is how far the share that a channel carried may be from the agreed one before the daily
// report says so, in millionths of a percentage point.
type Tolerance int64

// DefaultTolerance is two percentage points.
const DefaultTolerance Tolerance = 2_000_000

const maxTolerance = 100_000_000 // all

// Share is the tolerance as a share between 0 and 1.
func (t Tolerance) Share() float64 { return float64(t) / maxTolerance }

// readTolerance reads the percentage points of a route.
func readTolerance(f fields) Tolerance {
	v, ok := f.get("tolerance")
	if !ok {
		return DefaultTolerance
	}
	const want = "percentage points from 0 to 100, such as 2 or 0.5"
	s, ok := v.raw(want)
	if !ok {
		return DefaultTolerance
	}
	n, err := parseMicros(s, maxTolerance)
	if err != nil {
		v.fail("%q is not a tolerance; write %s", s, want)
		return DefaultTolerance
	}
	return Tolerance(n)
}
