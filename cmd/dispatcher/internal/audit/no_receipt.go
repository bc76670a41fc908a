package audit

import (
	"fmt"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// withoutReceipt checks an attempt that was made because no receipt had come: the route has
// no_receipt under the version of the claim, an attempt before was accepted, its time for a receipt
// was over, and no receipt had come. The time of a late answer is not recorded.
func (c *check) withoutReceipt(t *decide.Task, i int) {
	stored := &c.record.Attempts[i]
	if t.Route.NoReceipt == nil {
		c.differs(stored.Number, whatReason, string(stored.Reason),
			"none: route "+t.Route.Name+" does not go on without a receipt")
		return
	}
	var taken time.Time
	replaced := false
	for j := range i {
		a := &c.record.Attempts[j]
		replaced = replaced || late(a)
		if a.Outcome != "accepted" {
			continue
		}
		if a.SettledAt.After(taken) {
			taken = a.SettledAt
		}
		if (a.Receipt == "delivered" || a.Receipt == "undelivered") &&
			a.ReceiptAt.Before(stored.ClaimedAt.Add(-ledger.LateCommit)) {
			c.differs(stored.Number, whatReason, string(stored.Reason), fmt.Sprintf(
				"none: attempt %d was %s at %s", a.Number, a.Receipt,
				a.ReceiptAt.Format(time.RFC3339Nano)))
		}
	}
	over := taken.Add(t.Route.NoReceipt.After)
	switch {
	case replaced:
	case taken.IsZero():
		c.differs(stored.Number, whatReason, string(stored.Reason),
			"none: no attempt before was accepted")
	case stored.ClaimedAt.Before(over.Add(-clockTolerance)):
		c.differs(stored.Number, whatTime, stored.ClaimedAt.Format(time.RFC3339Nano),
			"no receipt by "+over.Format(time.RFC3339Nano))
	}
}
