package status

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/report"
)

// Quantity is an amount of what a limit counts: messages, segments, or money in micros of a
// currency that is stored elsewhere. Money is written as a decimal.
type Quantity struct {
	Units int64
	Money bool
}

// QuantityOf is an amount in the unit of a limit.
func QuantityOf(l *admission.Limit, units int64) Quantity {
	return Quantity{units, l.Unit == admission.Money}
}

// String writes a number, or money as a decimal. Tables, sentences and CSV all use it.
func (q Quantity) String() string {
	if q.Money {
		return report.Money(q.Units)
	}
	return strconv.FormatInt(q.Units, 10)
}

// MarshalJSON writes a number, or money as a string, so that no JSON reader loses digits.
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
