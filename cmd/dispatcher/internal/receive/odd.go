package receive

import (
	"errors"
	"fmt"

	"dispatcher/ledger"
)

// mostOdd is how many odd receipts of one batch the log names. A carrier whose ids have another
// form than its answers makes all of them odd.
const mostOdd = 5

// tellOdd logs receipts that say something else than the books do, with channel and provider's id.
func (d *Batcher) tellOdd(odd []ledger.Discrepancy) {
	for i := range odd[:min(len(odd), mostOdd)] {
		d.cfg.Trouble("receipts", oddity(&odd[i]))
	}
	if more := len(odd) - mostOdd; more > 0 {
		d.cfg.Trouble("receipts", fmt.Errorf("%d more receipts of the same batch contradict the "+
			"books or name other ids; docs/receipts.md says how to find them", more))
	}
}

// oddity is a sentence about an odd receipt. Ids are quoted: a carrier writes what it likes into
// them.
func oddity(o *ledger.Discrepancy) error {
	switch o.Kind {
	case ledger.DeliveredThoughDenied:
		return fmt.Errorf("channel %s says that %s was delivered, and had answered that it did "+
			"not take it: the message may be on its bill; "+
			"\"dispatcher ambiguous list\" shows it", o.Channel, submission(o))
	case ledger.ReferenceOfAnother:
		return fmt.Errorf("channel %s sends a receipt for its id %q with our reference of another "+
			"message: nothing of it is booked", o.Channel, o.Reference)
	case ledger.UnderAnotherID:
		return fmt.Errorf("channel %s names a message %q in its answer and %q in its receipt: our "+
			"reference tells that they are the same, and it is booked; "+
			"see receipt_id in docs/smpp.md", o.Channel, o.Answered, o.Reference)
	}
	return errors.New("a receipt contradicts the books")
}

// submission names what a receipt is about.
func submission(o *ledger.Discrepancy) string {
	switch {
	case o.Reference != "":
		return fmt.Sprintf("its id %q", o.Reference)
	case o.Answered != "":
		return fmt.Sprintf("its id %q", o.Answered)
	}
	return "a message without an id"
}
