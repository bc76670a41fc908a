package status

import (
	"testing"

	"dispatcher/ledger"
)

// TestTheRateIsComparedWithLimitsOnMessages: it counts attempts, and a limit on segments or money
// of a lower number would look like the tightest, and so would the average of a day.
func TestTheRateIsComparedWithLimitsOnMessages(t *testing.T) {
	t.Parallel()
	doc := parsed(t, `channels:
  a: {provider: sandbox, limits: [{window: 1s, max: 50}, {window: 1m, max: 1200},
    {window: 1d, max: 9000},
    {window: 1s, max: 10, unit: segments},
    {window: 1d, max: "5.00", unit: money, currency: GBP}], price: {currency: GBP, default: "0.01"}}
  b: {provider: sandbox, limits: [{window: 1s, max: 10, unit: segments}]}
  c: {provider: sandbox}
routes:
  - {name: default, match: {}, weights: {a: 50, b: 30, c: 20}}
`)
	s := statusOf(doc, &ledger.Present{Now: noon})
	if got := s.Channels[0].Limit; got == nil || *got != 20 {
		t.Errorf("got %+v, want a limit of 20 messages a second", s.Channels[0])
	}
	for _, c := range s.Channels[1:] {
		if c.Limit != nil {
			t.Errorf("%s has the limit %v, want none", c.Name, *c.Limit)
		}
	}
}
