package config

import (
	"errors"
	"fmt"
	"strings"
)

// Bounds of amounts in micros.
const (
	maxPrice  = 1_000_000_000_000     // a million units of currency for one segment
	maxBudget = 1_000_000_000_000_000 // a billion in one window
)

// parseMicros turns a plain decimal with at most six digits behind the point into
// millionths, without rounding. Most is a power of ten, of a million at least.
func parseMicros(s string, most int64) (int64, error) {
	if strings.HasPrefix(s, "-") {
		return 0, errors.New("is negative")
	}
	whole, fraction, point := strings.Cut(s, ".")
	if !isDigits(whole) || (point && !isDigits(fraction)) {
		return 0, errors.New("is not a plain decimal number")
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > 6 {
		return 0, errors.New("has more than six decimals")
	}
	var m int64
	for _, r := range whole + fraction + strings.Repeat("0", 6-len(fraction)) {
		m = m*10 + int64(r-'0')
		if m > most {
			return 0, fmt.Errorf("is more than %d", most/1_000_000)
		}
	}
	return m, nil
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// readPrice reads {currency, default, prefixes}.
func readPrice(v value) Price {
	f, ok := v.fields("currency", "default", "prefixes")
	if !ok {
		return Price{}
	}
	var p Price
	if c, ok := f.need("currency", "currency: EUR"); ok {
		p.Currency = readCurrency(c)
	}
	if d, ok := f.need("default", `default: "0.031"`); ok {
		p.Default, _ = d.micros(maxPrice)
	}
	prefixes, ok := f.get("prefixes")
	if !ok {
		return p
	}
	entries, _ := prefixes.entries()
	p.Prefixes = make(map[string]int64, len(entries))
	for _, e := range entries {
		amount, ok := e.value.micros(maxPrice)
		if checkPrefix(e.value, e.name) && ok {
			p.Prefixes[e.name] = amount
		}
	}
	return p
}

func readCurrency(v value) string {
	s, ok := v.text()
	if ok && (len(s) != 3 || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "") {
		v.fail("%q is not a currency; write its three capital letters, such as EUR", s)
	}
	return s
}

// isPrefix takes the beginning of an E.164 number: a plus and 1 to 15 digits.
func isPrefix(s string) bool {
	digits, plus := strings.CutPrefix(s, "+")
	return plus && isDigits(digits) && len(digits) <= 15 && digits[0] != '0'
}

func checkPrefix(v value, s string) bool {
	if isPrefix(s) {
		return true
	}
	v.fail(`%q does not begin a number; write a plus and digits in quotes, such as "+44"`, s)
	return false
}
