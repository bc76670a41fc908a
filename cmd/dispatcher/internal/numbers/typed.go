package numbers

import "strings"

// Typed reads a number as people write it, with blanks, dots, dashes or brackets between its
// digits. ok is false if the result is not a number with a country code.
func Typed(r Region, text string) (number string, ok bool) {
	text = strings.Map(func(c rune) rune {
		if strings.ContainsRune(" \u00a0\t.-/()", c) {
			return -1
		}
		return c
	}, text)
	if rest, found := strings.CutPrefix(text, "00"); found && r == "" {
		text = "+" + rest
	}
	number = r.E164(text)
	digits := strings.TrimPrefix(number, "+")
	switch {
	case digits == number || len(digits) < 7 || len(digits) > 15 || digits[0] == '0':
		return "", false
	case strings.Trim(digits, "0123456789") != "":
		return "", false
	}
	return number, true
}
