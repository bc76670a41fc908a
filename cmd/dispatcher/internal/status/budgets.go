package status

import (
	"cmp"
	"fmt"
	"slices"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
)

// Budgets are the prepaid budgets of the routing in force at one moment.
type Budgets struct {
	Version int64    `json:"version"`
	Budgets []Budget `json:"budgets" nullable:"false"` // the most used first
}

// Budget is one prepaid budget. Scripts rely on its JSON names.
type Budget struct {
	Channel  string `json:"channel"` // empty for a budget over all channels
	Scope    string `json:"scope"`
	Currency string `json:"currency"`
	// Amounts are decimals in whole units of the currency.
	ToppedUp Quantity `json:"topped_up"`
	Used     Quantity `json:"used"`
	Left     Quantity `json:"left"`
	// UsedShare is from 0 to 1; null when nothing was topped up.
	UsedShare *float64        `json:"used_share"`
	Level     admission.Level `json:"level" enum:"unpaid,enough,low,spent"`
	Waiting   int64           `json:"waiting"` // messages that wait for the budget

	Key admission.Key `json:"-"`
}

// NewBudgets lists the budgets. A budget of each tenant is followed by those of the tenants.
func NewBudgets(version int64, doc *config.Routing, present *ledger.Present) *Budgets {
	n := &Counters{present, doc.Timezone}
	out := &Budgets{Version: version, Budgets: n.budgets("", doc.Limits)}
	for i := range doc.Channels {
		out.Budgets = append(out.Budgets, n.budgets(doc.Channels[i].Name, doc.Channels[i].Limits)...)
	}
	slices.SortStableFunc(out.Budgets, func(a, b Budget) int {
		return cmp.Compare(b.share(), a.share())
	})
	return out
}

func (cs *Counters) budgets(channel string, limits []admission.Limit) []Budget {
	out := []Budget{}
	for _, l := range cs.withTenants(channel, limits) {
		if l.Window != admission.Prepaid || l.Scope.Each() {
			continue
		}
		c := cs.Counter(channel, &l)
		b := Budget{
			Channel: channel, Scope: l.Scope.String(), Currency: l.Currency,
			ToppedUp: QuantityOf(&l, c.Limit.Max), Used: QuantityOf(&l, c.Granted),
			Left: QuantityOf(&l, c.Free()), Level: c.Level(),
			Waiting: cs.WaitingFor(l.Key().On(channel)), Key: l.Key(),
		}
		if c.Limit.Max > 0 {
			share := float64(c.Granted) / float64(c.Limit.Max)
			b.UsedShare = &share
		}
		out = append(out, b)
	}
	return out
}

// share is what the list is sorted by. Without a top-up, a budget that messages wait for counts as
// full, and any other as unused.
func (b *Budget) share() float64 {
	switch {
	case b.UsedShare != nil:
		return *b.UsedShare
	case b.Waiting > 0:
		return 1
	}
	return 0
}

// mostBudgets bounds the findings about single budgets.
const mostBudgets = 5

// findBudgets warns of budgets that are low or spent. It reports a budget without a top-up only
// while messages wait for it, because a message with any tenant name creates one.
func findBudgets(budgets []Budget) []Finding {
	var found []Finding
	more := 0
	for i := range budgets {
		one := &budgets[i]
		if one.Level == admission.Enough || one.Level == admission.Unpaid && one.Waiting == 0 {
			continue
		}
		if len(found) == mostBudgets {
			more++
			continue
		}
		found = append(found, Warned("budget "+one.Key.On(one.Channel), one.words(),
			`top it up with "dispatcher budget top-up"`))
	}
	if more > 0 {
		found = append(found, Warned("budgets", fmt.Sprintf("%d more are low or spent", more),
			`see "dispatcher budget list"`))
	}
	return found
}

// words says how much of the budget is used.
func (b *Budget) words() string {
	words := "nothing was topped up"
	if b.UsedShare != nil {
		words = fmt.Sprintf("%s of %s %s are used (%s)", b.Used, b.ToppedUp, b.Currency,
			report.Percent(*b.UsedShare))
	}
	switch b.Waiting {
	case 0:
		return words
	case 1:
		return words + ", and 1 message waits for it"
	}
	return fmt.Sprintf("%s, and %d messages wait for it", words, b.Waiting)
}
