package numbers

import (
	"fmt"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// Region converts numbers as they are written within one country to E.164. The empty region changes
// no number.
type Region string

// ParseRegion reads an ISO 3166 code such as GB, in either case; empty is the empty region.
func ParseRegion(code string) (Region, error) {
	code = strings.ToUpper(code)
	if code != "" && !phonenumbers.GetSupportedRegions()[code] {
		return "", fmt.Errorf("%q is not a country code; write for example GB", code)
	}
	return Region(code), nil
}

// E164 returns the number in E.164 form, or unchanged when it has that form already or is not a
// number; the envelope's own check reports the latter. A number with a plus or an international
// prefix keeps its own country; only its spaces, dashes and brackets are removed.
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

// Whole reports whether the beginning of a number is as long as a number of its country.
func Whole(prefix string) bool {
	parsed, err := phonenumbers.Parse(prefix, "")
	return err == nil && phonenumbers.IsPossibleNumberWithReason(parsed) == phonenumbers.IS_POSSIBLE
}

// plain reports whether the number is a plus and digits. Then it is unambiguous, whatever the
// library would make of it.
func plain(number string) bool {
	digits, plus := strings.CutPrefix(number, "+")
	return plus && digits != "" && strings.Trim(digits, "0123456789") == ""
}
