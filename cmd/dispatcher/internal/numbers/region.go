package numbers

import (
	"fmt"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// Region turns numbers as people of one country write them into E.164. The empty region
// leaves every number as it is.
type Region string

// ParseRegion takes an ISO 3166 code such as GB, in either case, or nothing.
func ParseRegion(code string) (Region, error) {
	code = strings.ToUpper(code)
	if code != "" && !phonenumbers.GetSupportedRegions()[code] {
		return "", fmt.Errorf("%q is no country code; write for example GB", code)
	}
	return Region(code), nil
}

// E164 returns the number in E.164 form, or unchanged when it has that form already or cannot be a
// number, which the envelope's own check will say. A number with a plus or an international prefix
// keeps its own country; only its spaces, dashes and brackets go.
func (r Region) E164(number string) string {
	if r == "" || plain(number) {
		return number
	}
	parsed, err := phonenumbers.Parse(number, string(r))
	if err != nil || !phonenumbers.IsPossibleNumber(parsed) || parsed.GetExtension() != "" {
		return number
	}
	return phonenumbers.Format(parsed, phonenumbers.E164)
}

// plain reports whether the number is a plus and digits: whatever a parser may think of it, it says
// what it means.
func plain(number string) bool {
	digits, plus := strings.CutPrefix(number, "+")
	return plus && digits != "" && strings.Trim(digits, "0123456789") == ""
}
