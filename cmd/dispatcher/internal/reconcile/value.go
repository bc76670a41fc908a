package reconcile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/xuri/excelize/v2"
)

// refused are the prefixes of a status that says that the provider did not take the message.
var refused = []string{
	"fail", "sending_failed", "reject", "discard", "expired send", "cancel", "invalid", "blocked",
	"not sent", "esme_r", "error", "sendingerror",
}

// refuses reports whether a status says that the provider did not take the message: it begins with
// one of the words, or of refused if there are none. An undelivered message was taken.
func refuses(status string, words []string) bool {
	status = strings.ToLower(status)
	if words == nil {
		words = refused
	}
	for _, word := range words {
		if strings.HasPrefix(status, word) {
			return status != "esme_rok"
		}
	}
	return false
}

// digits returns the digits of a number. It is false if there is anything else than the usual
// separators.
func digits(s string) (string, bool) {
	var out strings.Builder
	for _, r := range s {
		switch {
		case r >= '0' && r <= '9':
			out.WriteRune(r)
		case !strings.ContainsRune(" ()-./'\u00a0", r):
			return "", false
		}
	}
	return out.String(), true
}

// parseNumber parses a number in international form, with or without a plus or 00. A masked number
// gives an empty one. Errors do not quote it.
func parseNumber(s string) (string, error) {
	if s == "" || strings.ContainsAny(s, "xX*#") {
		return "", nil
	}
	s = whole(s)
	n, ok := digits(strings.TrimPrefix(s, "+"))
	if !strings.HasPrefix(s, "+") {
		n = strings.TrimPrefix(n, "00")
	}
	switch {
	case strings.ContainsAny(s, "eE"):
		return "", errors.New("a spreadsheet has rounded this number; export it as text")
	case !ok || len(n) < 8 || len(n) > 15 || n[0] == '0':
		return "", errors.New("this is not a number in international form: a plus, the country's code " +
			"and the rest, 8 to 15 digits")
	}
	return "+" + n, nil
}

// whole converts a whole number in exponential form, as spreadsheets write long ones, to digits,
// unless some of them are lost.
func whole(s string) string {
	mantissa, exponent, ok := strings.Cut(s, "E+")
	if !ok {
		mantissa, exponent, ok = strings.Cut(s, "E")
	}
	n, err := strconv.Atoi(exponent)
	units, fraction, _ := strings.Cut(mantissa, ".")
	if !ok || err != nil || len(units) != 1 || n < len(fraction) || n > 15 || len(fraction) < 7 {
		return s
	}
	return units + fraction + strings.Repeat("0", n-len(fraction))
}

// parseSegments parses a number of segments; 0 for an empty cell.
func parseSegments(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(strings.TrimSuffix(s, ".0"))
	if err != nil || n < 0 || n > 1000 {
		return 0, errors.New("this is not a number of segments")
	}
	return n, nil
}

// maxPrice is a million of the currency, in billionths.
const maxPrice = 1_000_000 * 1_000_000_000

// parsePrice parses a price exactly, in billionths, and a currency if the cell has one.
func parsePrice(s string, comma bool) (nanos int64, currency string, err error) {
	currency, s = splitCurrency(s)
	sign := int64(1)
	if strings.HasPrefix(s, "-") {
		sign = -1
	}
	s = strings.TrimLeft(s, "+-")
	decimal, thousands := ".", ","
	if comma {
		decimal, thousands = ",", "."
	}
	whole, fraction, _ := strings.Cut(s, decimal)
	if strings.Contains(whole, thousands) {
		groups := strings.Split(whole, thousands)
		for i, g := range groups {
			if i > 0 && len(g) != 3 || len(g) == 0 || len(g) > 3 {
				return 0, "", errors.New("this is not a price; if its comma divides units from " +
					"cents, or its point thousands, give --decimal-comma")
			}
		}
		whole = strings.Join(groups, "")
	}
	if strings.ContainsAny(s, "eE") || len(fraction) > 12 { // a float of a spreadsheet
		f, err := strconv.ParseFloat(strings.Replace(s, ",", ".", 1), 64)
		if err != nil {
			return 0, "", errors.New("this is not a price")
		}
		whole, fraction, _ = strings.Cut(strconv.FormatFloat(f, 'f', -1, 64), ".")
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > 9 {
		return 0, "", errors.New("the price has more than nine decimals")
	}
	if whole+fraction == "" && !strings.Contains(s, "0") {
		return 0, "", errors.New("this is not a price")
	}
	n, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", 9-len(fraction)), 10, 63)
	if err != nil || n > maxPrice {
		return 0, "", errors.New("this is not a price")
	}
	return sign * int64(n), currency, nil //nolint:gosec // It is below maxPrice.
}

// symbols are the currency symbols that stand for one currency only.
var symbols = map[string]string{"€": "EUR", "£": "GBP", "₹": "INR", "₦": "NGN", "US$": "USD"}

// splitCurrency splits "0.05 EUR" and "€0.05".
func splitCurrency(s string) (currency, amount string) {
	s = strings.TrimSpace(s)
	for symbol, code := range symbols {
		if rest := strings.Replace(s, symbol, "", 1); rest != s {
			return code, strings.TrimSpace(rest)
		}
	}
	if n := len(s); n > 4 && isCurrency(strings.ToUpper(s[:3])) {
		return s[:3], strings.TrimSpace(s[3:])
	} else if n > 4 && isCurrency(strings.ToUpper(s[n-3:])) {
		return s[n-3:], strings.TrimSpace(s[:n-3])
	}
	return "", s
}

func isCurrency(s string) bool {
	return len(s) == 3 && s[0] >= 'A' && s[0] <= 'Z' && s[1] >= 'A' && s[1] <= 'Z' && s[2] >= 'A' &&
		s[2] <= 'Z'
}

// layouts are the accepted layouts of times, each with or without a fraction of a second. parseTime
// tries layouts with slashes last.
var layouts = []string{
	time.RFC3339, "2006-01-02T15:04:05-0700", "2006-01-02 15:04:05", "2006-01-02T15:04:05",
	"2006-01-02 15:04:05-07:00", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05 MST", "2006-01-02 15:04", "2006-01-02", time.RFC1123Z, time.RFC1123,
	"Mon, 2 Jan 2006 15:04:05 -0700", "Jan 2 2006 15:04:05", "2 Jan 2006 15:04:05",
	"2006/01/02 15:04:05", "02.01.2006 15:04:05", "02.01.2006 15:04",
}

// parseTime parses a time, in the zone if it has none. A plain number is a time of a spreadsheet,
// in days, or a Unix time, in seconds or milliseconds.
func parseTime(s string, zone *time.Location, dayFirst bool) (time.Time, error) {
	if s[len(s)-1] >= '0' && s[len(s)-1] <= '9' && strings.Trim(s, "0123456789.") == "" &&
		strings.Count(s, ".") < 2 {
		return serialTime(s, zone)
	}
	s = strings.TrimSuffix(s, " UTC")
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, s, zone); err == nil {
			if name, _ := t.Zone(); strings.Contains(layout, "MST") && name != "UTC" && name != "GMT" {
				return time.Time{}, errors.New("a zone of letters says too little; name the zone of " +
					"the file with --timezone, and export times without")
			}
			return sensible(t)
		}
	}
	slashed := "1/2/2006"
	if dayFirst {
		slashed = "2/1/2006"
	}
	for _, clock := range []string{" 15:04:05", " 15:04", " 3:04:05 PM", " 3:04 PM", ""} {
		if t, err := time.ParseInLocation(slashed+clock, s, zone); err == nil {
			return sensible(t)
		}
	}
	return time.Time{}, errors.New("this is not a time that is known, such as 2026-11-21 10:00:00; " +
		"21/11/2026 needs --day-first")
}

// serialTime parses a time that is a number.
func serialTime(s string, zone *time.Location) (time.Time, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return time.Time{}, errors.New("this is not a time")
	}
	switch {
	case f < 100_000:
		t, err := excelize.ExcelDateToTime(f, false)
		if err != nil {
			return time.Time{}, errors.New("this is not a time")
		}
		t = t.Round(time.Millisecond)
		return sensible(time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(),
			t.Nanosecond(), zone))
	case f < 1e11:
		return sensible(time.UnixMicro(int64(f * 1e6)))
	}
	return sensible(time.UnixMilli(int64(f)))
}

// sensible refuses times outside of the years 2000 to 2199.
func sensible(t time.Time) (time.Time, error) {
	if t.Year() < 2000 || t.Year() > 2199 {
		return t, fmt.Errorf("the year %d cannot be right", t.Year())
	}
	return t.UTC(), nil
}
