package control

import (
	"errors"
	"regexp"
)

// phoneNumber finds a plus and eight digits, the fewest that a number in E.164 has. Spaces and
// marks may stand between the digits, as in +44 (0)7700-900.123.
var phoneNumber = regexp.MustCompile(`\+(?:[\s()./–-]*\d){8}`)

var errNumberInReason = errors.New("the reason has a phone number, which finance and the history " +
	"would show: nothing was changed; name the message's id, the tenant or the ticket instead")

// CheckReason refuses the reason of a change if it has a phone number. Whoever may read the history
// or the views of schema audit can read reasons, and must see no number.
func CheckReason(reason string) error {
	if phoneNumber.MatchString(reason) {
		return refuse(errNumberInReason)
	}
	return nil
}
