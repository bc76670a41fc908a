package inbound

import (
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
)

// keywords are the names of changes in the records of inbound messages and in metrics.
var keywords = map[ledger.Change]string{
	ledger.NoChange: "", ledger.OptOut: "stop",
	ledger.OptIn: "start",
}

// react makes the record of a message, and says what the message changes. The key of the record is
// the sender's number, so that the messages of one subscriber stay in order.
func (d *Directory) react(m *ledger.Subscribed) ledger.Reaction {
	owner := d.owner(m.Channel, m.To)
	change := owner.change(m)
	record := envelope.Inbound{
		ID: m.ID, Channel: m.Channel, From: m.From, To: m.To, Text: m.Text, ReceivedAt: m.At,
		Tenant: owner.tenant, Parts: m.Parts, Missing: m.Missing, Keyword: keywords[change],
	}
	return ledger.Reaction{
		Key: m.From, Value: envelope.AppendInbound(nil, &record), Change: change,
		Tenant: owner.tenant,
	}
}
