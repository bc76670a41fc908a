package status

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/report"
)

// Quantity is an amount of what a limit counts: a number of messages or segments, or of money the
// micros, which are written as a decimal. The currency stands beside it.
type Quantity struct {
	Units int64
	Money bool
}

// QuantityOf is an amount in the unit of a limit.
func QuantityOf(l *admission.Limit, units int64) Quantity {
	return Quantity{units, l.Unit == admission.Money}
}

// String has the same digits in tables, sentences and CSV.
func (q Quantity) String() string {
	if q.Money {
		return report.Money(q.Units)
	}
	return strconv.FormatInt(q.Units, 10)
}

// MarshalJSON writes a number, or of money a text, which keeps every digit in any reader of JSON.
func (q Quantity) MarshalJSON() ([]byte, error) {
	if q.Money {
		return json.Marshal(q.String())
	}
	return json.Marshal(q.Units)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (q *Quantity) UnmarshalJSON(text []byte) error {
	if q.Money = len(text) > 0 && text[0] == '"'; !q.Money {
		return json.Unmarshal(text, &q.Units)
	}
	amount, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64)
	q.Units = int64(math.Round(amount * 1e6))
	return err
}
