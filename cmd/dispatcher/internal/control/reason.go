package control

import (
	"errors"
	"regexp"
)

// phoneNumber finds the numbers in a text that begin with a plus. Single spaces and dashes may
// stand between the digits.
var phoneNumber = regexp.MustCompile(`\+\d(?:[ -]?\d)*`)

// A number in E.164 has 8 to 15 digits.
const (
	fewestDigits = 8
	mostDigits   = 15
)

var errNumberInReason = errors.New("the reason has a phone number, which finance and the history " +
	"would show: nothing was changed; name the message's id, the tenant or the ticket instead")

// CheckReason refuses the reason of a change if it has a phone number. Whoever may read the history
// or the views of schema audit can read reasons, and must see no number.
func CheckReason(reason string) error {
	for _, found := range phoneNumber.FindAllString(reason, -1) {
		digits := 0
		for _, c := range found {
			if c >= '0' && c <= '9' {
				digits++
			}
		}
		if digits >= fewestDigits && digits <= mostDigits {
			return refuse(errNumberInReason)
		}
	}
	return nil
}
