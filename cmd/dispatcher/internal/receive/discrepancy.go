package receive

import (
	"errors"
	"fmt"

	"dispatcher/ledger"
)

// mostDiscrepancies bounds the discrepancies of one batch that are logged. A provider that uses
// another form of id in receipts than in answers makes every receipt one.
const mostDiscrepancies = 5

// logDiscrepancies logs receipts that contradict the ledger, with channel and provider's id.
func (b *Batcher) logDiscrepancies(odd []ledger.Discrepancy) {
	for i := range odd[:min(len(odd), mostDiscrepancies)] {
		b.cfg.Trouble("receipts", describe(&odd[i]))
	}
	if more := len(odd) - mostDiscrepancies; more > 0 {
		b.cfg.Trouble("receipts", fmt.Errorf("%d more receipts of the same batch contradict the "+
			"records or name other ids; docs/receipts.md says how to find them", more))
	}
}

// describe writes a discrepancy as an error. Ids are quoted, because a provider can put anything
// into them.
func describe(d *ledger.Discrepancy) error {
	switch d.Kind {
	case ledger.DeliveredThoughDenied:
		return fmt.Errorf("channel %s says that %s was delivered, and had answered that it did "+
			"not take it: the message may be on its bill; "+
			"\"dispatcher ambiguous list\" shows it", d.Channel, submission(d))
	case ledger.ReferenceOfAnother:
		return fmt.Errorf("channel %s sends a receipt for its id %q with our reference of another "+
			"message: nothing of it is recorded", d.Channel, d.Reference)
	case ledger.UnderAnotherID:
		return fmt.Errorf("channel %s names a message %q in its answer and %q in its receipt: our "+
			"reference tells that they are the same, and it is recorded; "+
			"see receipt_id in docs/smpp.md", d.Channel, d.Answered, d.Reference)
	}
	return errors.New("a receipt contradicts the ledger")
}

// submission names the submission that a receipt is about.
func submission(d *ledger.Discrepancy) string {
	switch {
	case d.Reference != "":
		return fmt.Sprintf("its id %q", d.Reference)
	case d.Answered != "":
		return fmt.Sprintf("its id %q", d.Answered)
	}
	return "a message without an id"
}
