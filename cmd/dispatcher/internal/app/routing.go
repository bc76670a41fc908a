package app

import (
	"dispatcher/config"
	"dispatcher/ledger"
)

// NewRouting makes of a parsed document what the ledger applies. text is the document as it was
// given, and expect the version that the change is based on, nil for none.
func NewRouting(doc *config.Routing, text []byte, author, reason string, expect *int64) ledger.NewRouting {
	n := ledger.NewRouting{
		Expect: expect, Author: author, Reason: reason, Document: string(text), Channels: Specs(doc),
		Routes: make([]string, len(doc.Routes)),
	}
	for i := range doc.Routes {
		n.Routes[i] = doc.Routes[i].Name
	}
	return n
}

// Specs are the bounds of the document's channels as the ledger keeps them.
func Specs(doc *config.Routing) []ledger.ChannelSpec {
	specs := make([]ledger.ChannelSpec, len(doc.Channels))
	for i, c := range doc.Channels {
		specs[i] = ledger.ChannelSpec{Name: c.Name, ActiveMax: c.Active.Max, Limits: c.Limits}
	}
	return specs
}
