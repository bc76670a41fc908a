package numbers

import (
	"fmt"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// Written are the digits of a number in E.164 as people write it without its calling code, and as
// in +44 (0)7700 900123. There are none if no country has the calling code.
func Written(number string) []string {
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
	return []string{national, fmt.Sprint(n.GetCountryCode()) + national}
}
