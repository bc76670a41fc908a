package envelope

import (
	"strconv"
	"time"
)

// Inbound is one message of a subscriber on the topic of inbound messages. Its form is
// docs/schema/inbound.schema.json; the record's key is the subscriber's number.
type Inbound struct {
	// ID is ours and unique; a record that is published twice has the same ID.
	ID string
	// Channel is the channel that the message came through.
	Channel string
	// From is the subscriber and To our number, as the channel gives them.
	From, To string
	Text     string
	// ReceivedAt is when its first part arrived, by the clock of the receiving process.
	ReceivedAt time.Time

	// The rest is left out when empty, zero or false.

	// Tenant owns the number that it was sent to.
	Tenant string
	// Parts is how many parts it was sent in; 1 is left out.
	Parts int
	// Missing are the numbers, from 0, of parts that did not arrive. Their texts are missing, too.
	Missing []int
	// Keyword is stop or start when the message changed the tenant's opt-out list.
	Keyword string
}

// AppendInbound writes the message as JSON. There, numbers of parts start at 1.
func AppendInbound(dst []byte, m *Inbound) []byte {
	o := object{buf: append(dst, '{'), open: true}
	o.text("id", m.ID)
	o.text("channel", m.Channel)
	o.text("from", m.From)
	o.text("to", m.To)
	o.text("text", m.Text)
	o.optional("tenant", m.Tenant)
	o.key("received_at")
	o.buf = append(appendTime(append(o.buf, '"'), m.ReceivedAt), '"')
	if m.Parts > 1 {
		o.count("parts", m.Parts)
	}
	if len(m.Missing) > 0 {
		o.key("incomplete")
		o.buf = append(o.buf, "true"...)
		o.begin("missing", '[')
		for _, part := range m.Missing {
			o.comma()
			o.buf = strconv.AppendInt(o.buf, int64(part)+1, 10)
		}
		o.end(']')
	}
	o.optional("keyword", m.Keyword)
	return append(o.buf, '}')
}
