package numbers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// leastWritten is how many digits a way of writing a number has at least: fewer may be a code or a
// date.
const leastWritten = 8

// Written are the digits of a number in E.164 as people write it without its calling code, with and
// without the prefix of national calls, and as in +44 (0)7700 900123. There are none if no country
// has the calling code.
func Written(number string) (written []string) {
	n, err := phonenumbers.Parse(number, "")
	if err != nil {
		return nil
	}
	national := strings.Map(func(c rune) rune {
		if c < '0' || c > '9' {
			return -1
		}
		return c
	}, phonenumbers.Format(n, phonenumbers.NATIONAL))
	for _, digits := range []string{
		phonenumbers.GetNationalSignificantNumber(n), national,
		fmt.Sprint(n.GetCountryCode()) + national,
	} {
		if len(digits) >= leastWritten && !slices.Contains(written, digits) {
			written = append(written, digits)
		}
	}
	return written
}
