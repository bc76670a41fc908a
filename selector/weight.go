package selector

import (
	"fmt"
	"strings"
)

// MaxDecimals is how many digits may follow the decimal point of a weight.
const MaxDecimals = 9

// MaxSize bounds Table.Size, so that 24 of the 64 bits of a draw remain and its bias, which is
// below Size/2^64, favours no interval noticeably.
const MaxSize = 1 << 40

// Weight is an exact, non-negative decimal with at most nine digits after the point.
// The zero Weight is 0.
type Weight struct {
	units    uint64 // the digits without the point
	decimals int    // how many of them follow the point, without trailing zeros
}

// ParseWeight reads a plain decimal such as 25, 34.5 or 0.000000001. Signs,
// exponents, NaN and infinities are refused.
func ParseWeight(s string) (Weight, error) {
	whole, fraction, point := strings.Cut(s, ".")
	switch {
	case strings.HasPrefix(s, "-"):
		return Weight{}, fmt.Errorf("weight %s is negative; use 0 to take a channel out", s)
	case whole == "" || (point && fraction == "") || !digits(whole) || !digits(fraction):
		return Weight{}, fmt.Errorf("weight %q is not a plain decimal number such as 25 or 34.5", s)
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > MaxDecimals {
		return Weight{}, fmt.Errorf("weight %s has more than %d decimals", s, MaxDecimals)
	}
	w := Weight{decimals: len(fraction)}
	for _, r := range whole + fraction {
		w.units = w.units*10 + uint64(r-'0')
		if w.units > MaxSize {
			return Weight{},
				fmt.Errorf("weight %s is too large: all weights together may reach 2^40 units", s)
		}
	}
	return w, nil
}

// MustWeight is ParseWeight for constants; it panics on a text that is not a weight.
func MustWeight(s string) Weight {
	w, err := ParseWeight(s)
	if err != nil {
		panic("selector: " + err.Error())
	}
	return w
}

// IsZero reports whether the weight is 0, which means no interval.
func (w Weight) IsZero() bool { return w.units == 0 }

// String gives the shortest decimal that ParseWeight reads back.
func (w Weight) String() string {
	s := fmt.Sprintf("%0*d", w.decimals+1, w.units)
	if w.decimals == 0 {
		return s
	}
	return s[:len(s)-w.decimals] + "." + s[len(s)-w.decimals:]
}

// MarshalText writes the decimal text, for JSON and YAML.
func (w Weight) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (w *Weight) UnmarshalText(text []byte) error {
	parsed, err := ParseWeight(string(text))
	if err != nil {
		return err
	}
	*w = parsed
	return nil
}

// scaled is the weight as a whole number after moving its point by decimals places.
// It reports false when the result would exceed MaxSize.
func (w Weight) scaled(decimals int) (uint64, bool) {
	n := w.units
	for range decimals - w.decimals {
		if n > MaxSize/10 {
			return 0, false
		}
		n *= 10
	}
	return n, n <= MaxSize
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
