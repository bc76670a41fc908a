package control

import (
	"errors"

	"dispatcher/cmd/dispatcher/internal/numbers"
)

var errNumberInReason = errors.New("the reason has a phone number, which finance and the history " +
	"would show: nothing was changed; name the message's id, the tenant or the ticket instead")

// CheckReason refuses the reason of a change if it has a phone number. Whoever may read the history
// or the views of schema audit can read reasons, and must see no number.
func CheckReason(reason string) error {
	if numbers.In(reason) {
		return refuse(errNumberInReason)
	}
	return nil
}
