package smpp

import (
	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

var _ provider.Capable = (*Client)(nil)

// Capabilities implements provider.Capable.
func (c *Client) Capabilities() provider.Capabilities { return c.cfg.Capabilities() }

// Capabilities are what the SMSC promises as the channel is set up. SMPP recognises no second submission: an SMSC that
// gets one sends it. It can neither be asked for a submission by our key: query_sm needs its own message_id,
// which a submission that was never answered does not have. Each part is a submission of its own, but for text that travels as
// message_payload; a text in tables of its own never does.
func (c Config) Capabilities() provider.Capabilities {
	c = c.withDefaults()
	return provider.Capabilities{
		KeyInReceipt:    c.ReceiptKeyTLV != 0,
		PartReceipts:    c.LongMessages != MessagePayload || !c.Tables.None(),
		Receipts:        c.RegisteredDelivery&pdu.ReceiptMask == pdu.ReceiptFinal || c.QueryAfter > 0,
		LongestValidity: c.LongestValidity,
		Batch:           1,
	}
}
