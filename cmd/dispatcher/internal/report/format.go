package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Money writes micros (millionths of a currency unit) as an exact decimal with at least two
// decimals.
func Money(micros int64) string {
	sign := ""
	if micros < 0 {
		sign, micros = "-", -micros
	}
	digits := strings.TrimRight(fmt.Sprintf("%06d", micros%1_000_000), "0")
	digits += strings.Repeat("0", max(2-len(digits), 0))
	return fmt.Sprintf("%s%d.%s", sign, micros/1_000_000, digits)
}

// Amount writes money with its currency, which may be empty.
func Amount(micros int64, currency string) string {
	return strings.TrimSpace(Money(micros) + " " + currency)
}

// Moment is a time for JSON: nil, and so null, for the zero time.
func Moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Percent writes a share from 0 to 1 with two decimals, for tables: "25.00 %".
func Percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) + " %" }

// percent writes a share with at most two decimals, for sentences: "25 %".
func percent(share float64) string {
	digits := strconv.FormatFloat(100*share, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(digits, "0"), ".") + " %"
}

// Probability writes a p-value: "p 0.0312", or "p < 1e-6" for a smaller one.
func Probability(p float64) string {
	switch {
	case p < 1e-6:
		return "p < 1e-6"
	case p < 0.0001:
		return fmt.Sprintf("p %.6f", p)
	}
	return fmt.Sprintf("p %.4f", p)
}

// plural writes a count with its noun: "1 message", "3 messages".
func plural[T int | int64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// span writes a duration: "20 ms", "16.2 s", "5 min", "2 h 18 min 7 s".
func span(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	if d.Round(time.Second/10) < time.Minute {
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	var parts []string
	d = d.Round(time.Second)
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}} {
		if n := d / unit.length; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, unit.name))
		}
		d %= unit.length
	}
	return strings.Join(parts, " ")
}

// enumerate joins words as in "a, b and c".
func enumerate(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// mostNamed bounds the names that a sentence lists.
const mostNamed = 8

// list joins words as enumerate does. Of a long list it writes the first and counts the rest.
func list(words []string) string {
	if len(words) <= mostNamed {
		return enumerate(words)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:mostNamed], ", "),
		len(words)-mostNamed)
}
