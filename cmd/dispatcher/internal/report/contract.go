package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"dispatcher/admission"
	"dispatcher/config"
	"dispatcher/ledger"
)

// Contract compares what a channel billed in a month of its contract with the commitment and the
// cap. Amounts are in Unit, money in micros of Currency. Scripts rely on the JSON names.
type Contract struct {
	Channel  string    `json:"channel"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Unit     string    `json:"unit"`
	Currency string    `json:"currency"` // empty unless the unit is money
	ToDate   int64     `json:"to_date"`
	// Forecast is ToDate, continued at the same pace until the end of the month.
	Forecast   int64  `json:"forecast"`
	Commitment *int64 `json:"commitment"` // null for none
	Cap        *int64 `json:"cap"`
	// NotCounted is what was billed in other currencies.
	NotCounted []MoveCost `json:"not_counted"`
	// Warning has all Warnings.
	Warning  string   `json:"warning"`
	Warnings []string `json:"warnings"`
}

// paceAfter is how much of a month must be over before its forecast can cause a warning.
const paceAfter = 24 * time.Hour

// capWarning is the part of a cap, in percent, that causes a warning.
const capWarning = 80

// ContractMonth is the contract month that contains an instant. A contract month begins at midnight
// in zone, on the day of the calendar month whose number is begins.
func ContractMonth(at time.Time, zone *time.Location, begins int) (from, to time.Time) {
	year, month, day := at.In(zone).Date()
	if day < begins {
		month--
	}
	begin := func(month time.Month) time.Time {
		noon := time.Date(year, month, begins, 12, 0, 0, 0, zone) // a day may have no midnight
		return admission.Day.Start(noon, zone).In(zone)
	}
	return begin(month), begin(month + 1)
}

// NewContract compares a channel's contract with what the channel billed, according to the rows,
// from the beginning of the month until now.
func NewContract(c *config.Channel, from, to, now time.Time, rows []ledger.DailyRow) Contract {
	toDate := Billed(c, rows)
	r := Contract{
		Channel: c.Name, From: from.UTC(), To: to.UTC(), Unit: c.Contract.Unit.String(),
		ToDate: toDate, Forecast: toDate, NotCounted: []MoveCost{}, Warnings: []string{},
	}
	if c.Contract.Unit == admission.Money {
		r.Currency, r.NotCounted = c.Price.Currency, notCounted(c, rows)
	}
	passed := now.Sub(from)
	if passed > 0 && now.Before(to) {
		r.Forecast = int64(math.Round(float64(toDate) * to.Sub(from).Hours() / passed.Hours()))
	}
	if most := c.Contract.Cap; most > 0 {
		r.Cap = &most
		switch {
		case toDate > most:
			r.warn("the cap is exceeded")
		case float64(toDate) >= float64(most)*capWarning/100:
			r.warn("%d %% of the cap is used", int(float64(toDate)/float64(most)*100))
		}
		if r.Forecast > most && toDate <= most && passed > paceAfter {
			r.warn("the cap will be exceeded at this pace")
		}
	}
	if least := c.Contract.Commitment; least > 0 {
		r.Commitment = &least
		switch {
		case r.Forecast >= least || passed <= paceAfter:
		case now.Before(to):
			r.warn("the commitment will be missed at this pace")
		default:
			r.warn("the commitment was missed")
		}
	}
	for _, other := range r.NotCounted {
		r.warn("%s is not counted", Amount(other.CostMicros, other.Currency))
	}
	return r
}

// warn adds a warning.
func (c *Contract) warn(text string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(text, args...))
	c.Warning = strings.Join(c.Warnings, "; ")
}

// notCounted sums what a channel billed in other currencies than that of its contract.
func notCounted(c *config.Channel, rows []ledger.DailyRow) []MoveCost {
	sums := map[string]int64{}
	for i := range rows {
		r := &rows[i]
		if r.Channel == c.Name && r.CostMicros != 0 && r.Currency != c.Price.Currency {
			sums[r.Currency] += r.CostMicros
		}
	}
	out := []MoveCost{}
	for _, currency := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, MoveCost{Currency: currency, CostMicros: sums[currency]})
	}
	return out
}

// Billed is what a channel billed according to the rows, in the unit of its contract.
func Billed(c *config.Channel, rows []ledger.DailyRow) (sum int64) {
	for i := range rows {
		r := &rows[i]
		if r.Channel != c.Name {
			continue
		}
		switch c.Contract.Unit {
		case admission.Messages:
			sum += r.Accepted
		case admission.Segments:
			sum += r.Segments
		case admission.Money:
			if r.Currency == c.Price.Currency {
				sum += r.CostMicros
			}
		}
	}
	return sum
}
