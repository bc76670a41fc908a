package report

import (
	"fmt"
	"strings"
)

// Money writes micros (millionths of a currency unit) as an exact decimal with at least two
// digits behind the point.
func Money(micros int64) string {
	sign := ""
	if micros < 0 {
		sign, micros = "-", -micros
	}
	digits := strings.TrimRight(fmt.Sprintf("%06d", micros%1_000_000), "0")
	return fmt.Sprintf("%s%d.%s", sign, micros/1_000_000, digits+strings.Repeat("0", max(2-len(digits), 0)))
}
