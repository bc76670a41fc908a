package report

import (
	"fmt"
	"strconv"
)

// Percent writes a share between 0 and 1 the way every table and report does: "25.00 %".
func Percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) + " %" }

// Probability writes a p-value: four digits, and a bound where they would all be zero.
func Probability(p float64) string {
	switch {
	case p < 1e-6:
		return "p < 1e-6"
	case p < 0.0001:
		return fmt.Sprintf("p %.6f", p)
	}
	return fmt.Sprintf("p %.4f", p)
}
