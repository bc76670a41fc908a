package report

import (
	"dispatcher/ledger"
	"dispatcher/provider"
)

// causes say why a message was not delivered.
var causes = map[provider.Cause]string{
	provider.Expired:       "its validity ended before the handset could be reached",
	provider.UnknownNumber: "nobody has this number",
	provider.Absent:        "the handset was off or out of reach",
	provider.NotMobile:     "the number takes no SMS",
	provider.Blocked:       "the recipient or the operator bars messages",
	provider.Spam:          "a filter took it for spam",
	provider.OptedOut:      "the recipient told the provider to stop",
	provider.BadSender:     "the sender id is not allowed there",
	provider.NoCredit:      "the account has no money or is suspended",
	provider.Deleted:       "it was cancelled or deleted",
	provider.NetworkError:  "there was no route, or a fault at the operator",
}

// contradicted tells what receipts say of an attempt otherwise than its answer did.
func (t *teller) contradicted(a *Attempt) {
	switch {
	case a.ContradictedAt != nil && len(a.ReceiptReferences) > 0:
		t.say("A receipt of %s for %s says all the same, %s, that it was delivered: it may be on the bill of %s, and is not on the books.",
			a.Channel, some(a.ReceiptReferences), t.at(*a.ContradictedAt), a.Channel)
	case a.ContradictedAt != nil:
		t.say("A receipt of %s says all the same, %s, that it was delivered: it may be on the bill of %s, and is not on the books.",
			a.Channel, t.at(*a.ContradictedAt), a.Channel)
	case len(a.ReceiptReferences) > 0 && a.Reference != "" && a.Outcome == outcomeAccepted:
		t.say("Its receipts name it %s.", some(a.ReceiptReferences))
	}
}

// receipt tells what the receipts said that brought the message to its state.
func (t *teller) receipt() {
	after, why := "", ""
	for i := range t.record.Attempts {
		a := &t.record.Attempts[i]
		if a.Receipt != t.record.Message.State {
			continue
		}
		after, why = "", ""
		if d := a.ReceiptAt.Sub(a.SettledAt); !a.ReceiptAt.IsZero() && d > 0 {
			after = " " + span(d) + " later"
		}
		if because := causes[a.Cause]; because != "" {
			why = ": " + because
		}
		why += code(a.ReceiptCode)
	}
	switch t.record.Message.State { //nolint:exhaustive // It is asked about these alone.
	case ledger.Delivered:
		t.say("Its delivery was confirmed%s.", after)
	case ledger.Undelivered:
		t.say("The provider reported%s that it cannot be delivered%s.", after, why)
	case ledger.NoReceipt:
		t.say("No receipt came in time, so nobody knows whether it was delivered.")
	}
}
