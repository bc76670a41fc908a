package inbound

import (
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
)

// keywords are the words for changes on the topic of inbound messages and in metrics.
var keywords = map[ledger.Change]string{
	ledger.NoChange: "", ledger.OptOut: "stop",
	ledger.OptIn: "start",
}

// react composes the record of a message and says what it changes. The key is the sender's number,
// so that what one subscriber sends stays in order.
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
