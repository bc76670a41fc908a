package numbers

import (
	"strconv"
	"strings"
	"sync"

	"github.com/nyaruka/phonenumbers"
)

// Premium reports whether an E.164 number is a premium-rate one, whose owner earns from messages to
// it.
//
// Premium-rate numbers begin with few combinations of digits. A table of these decides most numbers
// in a few nanoseconds; only numbers in the table are looked up in full. It is safe for concurrent
// use. The first call builds the table, which takes some tens of milliseconds.
func Premium(number string) bool {
	digits := strings.TrimPrefix(number, "+")
	table, national := premiumTables().of(digits)
	if table == nil || !table.may(national) {
		return false
	}
	parsed, err := phonenumbers.Parse(number, "")
	return err == nil && phonenumbers.GetNumberType(parsed) == phonenumbers.PREMIUM_RATE
}

// firstDigits is how many digits of a national number a table uses, and beginnings how many
// combinations of them there are.
const (
	firstDigits = 4
	beginnings  = 10_000
)

// beginningTable says under which beginnings of national numbers there are premium-rate ones.
type beginningTable [beginnings]bool

// may reports whether a number may be premium-rate; true for one that is too short to tell.
func (t *beginningTable) may(national string) bool {
	if len(national) < firstDigits {
		return true
	}
	n := 0
	for i := range firstDigits {
		n = n*10 + int(national[i]-'0')
	}
	return n < 0 || n >= beginnings || t[n]
}

// mark marks a beginning for full look-ups. It also marks it after the national dialling prefix,
// such as the 0 of +33 08..., which does not change the number's meaning.
func (t *beginningTable) mark(prefix string) {
	first, err := strconv.Atoi(prefix)
	if err != nil || len(prefix) > firstDigits {
		return
	}
	width := 1
	for range firstDigits - len(prefix) {
		width *= 10
	}
	for n := first * width; n < (first+1)*width; n++ {
		t[n] = true
	}
}

// tablesByCode are the tables by calling code. A code has one to three digits and is not a prefix
// of another.
type tablesByCode [1000]*beginningTable

// of finds the table for a number, and its digits after the calling code; nil when that code has no
// premium-rate numbers.
func (t *tablesByCode) of(digits string) (*beginningTable, string) {
	code := 0
	for i := 0; i < 3 && i < len(digits); i++ {
		code = code*10 + int(digits[i]-'0')
		if code < 0 || code >= len(t) {
			return nil, ""
		}
		if t[code] != nil {
			return t[code], digits[i+1:]
		}
	}
	return nil, ""
}

// premiumTables are built from the numbering plans at first use.
var premiumTables = sync.OnceValue(func() *tablesByCode {
	var tables tablesByCode
	for _, plan := range metadata() {
		pattern := plan.GetPremiumRate().GetNationalNumberPattern()
		if pattern == "" || pattern == "NA" {
			continue
		}
		code := plan.GetCountryCode()
		if tables[code] == nil {
			tables[code] = new(beginningTable)
		}
		for beginning := range beginningsOf(compile(pattern), firstDigits) {
			n, _ := strconv.Atoi(beginning) // digits only
			tables[code][n] = true
		}
		tables[code].mark(plan.GetNationalPrefix())
	}
	return &tables
})
