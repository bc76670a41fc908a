package receive

import (
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
)

// status is the event of a message that a receipt, or the want of one, brings to a state. Its
// metadata is that of the stored envelope, which was read once before; one that cannot be read any
// more is told without.
func status(c *ledger.Closing) *ledger.Notice {
	message, problem := envelope.Decode(c.Envelope, true)
	if problem != nil {
		message.Metadata = nil
	}
	event := envelope.Status{
		ID: c.ID, State: string(c.State), At: c.At, Lane: c.Lane, Tenant: c.Tenant, Route: c.Route,
		Channel: c.Channel, Attempt: c.Attempt, Cause: string(c.Cause), Code: c.Code,
		Reference: c.Reference,
		Segments:  c.Segments, PossibleDuplicate: c.PossibleDuplicate, Metadata: message.Metadata,
	}
	return &ledger.Notice{Kind: ledger.Status, Key: c.ID, Value: envelope.AppendStatus(make([]byte,
		0, 256), event)}
}

// tally counts the messages of one transaction by the state that they come to.
type tally struct{ states map[ledger.State]int }

// tell is the ledger.Tell of the transaction.
func (t *tally) tell(c *ledger.Closing) *ledger.Notice {
	if t.states == nil {
		t.states = map[ledger.State]int{}
	}
	t.states[c.State]++
	return status(c)
}
