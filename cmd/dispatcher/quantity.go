package main

import (
	"encoding/json"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/report"
)

// quantity is an amount of what a limit counts: a number of messages or segments, or of money the
// micros, which are written as a decimal. The currency stands beside it.
type quantity struct {
	units int64
	money bool
}

// quantityOf is an amount in the unit of a limit.
func quantityOf(l *admission.Limit, units int64) quantity {
	return quantity{units, l.Unit == admission.Money}
}

// String has the same digits in tables, sentences and CSV.
func (q quantity) String() string {
	if q.money {
		return report.Money(q.units)
	}
	return number(q.units)
}

// MarshalJSON writes a number, or of money a text, which keeps every digit in any reader of JSON.
func (q quantity) MarshalJSON() ([]byte, error) {
	if q.money {
		return json.Marshal(q.String())
	}
	return json.Marshal(q.units)
}
