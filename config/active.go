package config

import (
	"math"
	"time"
)

// ActiveLimit bounds the attempts in flight at once. Max 0 is no bound.
type ActiveLimit struct {
	Max int64
	// Until is "submit" or "receipt". With "submit" an attempt counts until its submit is answered,
	// with "receipt" until a final receipt comes or Hold is over.
	Until string
	// Hold is the longest time that a slot is kept: after an accepted submit for the receipt, and
	// after a throttled one for the retry. 0 keeps none.
	Hold time.Duration
}

// UntilReceipt reports whether an attempt holds its slot until a receipt comes.
func (a *ActiveLimit) UntilReceipt() bool { return a.Until == untilReceipt }

// readActive reads the bound on attempts in flight.
func readActive(v value) ActiveLimit {
	a := ActiveLimit{Until: untilSubmit}
	f, ok := v.fields(activePart)
	if !ok {
		return a
	}
	if most, ok := f.need("max", "max: 500"); ok {
		a.Max = most.integer(1, math.MaxInt32)
	}
	if until, ok := f.get("until"); ok {
		a.Until, _ = until.word("until", untils)
	}
	a.Hold = holdOf(a.Until)
	if hold, ok := f.get("hold"); ok {
		a.Hold = readHold(hold, a.Until)
	}
	return a
}

func readHold(v value, until string) time.Duration {
	hold, ok := v.duration(0, day)
	switch {
	case !ok:
	case hold == 0 && until == untilReceipt:
		v.fail("some receipts never arrive, so a slot that is kept for one must be freed after " +
			"some time; write for example hold: 10m")
	case hold > 0 && hold < time.Second:
		v.fail("%s is out of bounds; choose 0, or a duration from %s to %s", hold, time.Second, day)
	}
	return hold
}

// holdOf is the default of Hold.
func holdOf(until string) time.Duration {
	if until == untilReceipt {
		return defaultHold
	}
	return 0
}
