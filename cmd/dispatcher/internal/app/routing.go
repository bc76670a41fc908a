package app

import (
	"fmt"

	"dispatcher/cmd/dispatcher/internal/steer"
	"dispatcher/config"
	"dispatcher/ledger"
)

// NewRouting makes of a document what the ledger applies. expect is the version that the change is
// based on, nil for none, and before its routing with its effects, nil to read it again. What
// health weighting has lowered stays lowered, see config.KeepEffects.
func NewRouting(document *config.Document, before *config.Routing, author, reason string, expect *int64) ledger.NewRouting {
	doc := document.Routing
	n := ledger.NewRouting{
		Expect: expect, Author: author, Reason: reason, Document: string(document.Text), Channels: Specs(doc), Limits: doc.Limits, Zone: doc.Timezone,
		Routes: make([]ledger.RouteSpec, len(doc.Routes)),
		Effects: func(current ledger.RoutingVersion) []byte {
			if before != nil && expect != nil && current.Version == *expect {
				return config.KeepEffects(before, doc).Encode()
			}
			return keptEffects(&current, doc)
		},
		EndsRamp: func(r *ledger.Ramp) string { return steer.Departure(r, doc) },
	}
	for i := range doc.Routes {
		n.Routes[i] = ledger.RouteSpec{Name: doc.Routes[i].Name, Members: doc.Routes[i].Channels}
	}
	return n
}

// keptEffects are the effects of the current version under a new document; none when the
// current one cannot be read, since then no instance has it in force.
func keptEffects(current *ledger.RoutingVersion, doc *config.Routing) []byte {
	before, err := config.ParseVersion(fmt.Sprintf("routing version %d", current.Version), []byte(current.Document), current.Effects)
	if err != nil {
		return nil
	}
	return config.KeepEffects(before, doc).Encode()
}

// Specs are the bounds of the document's channels as the ledger keeps them.
func Specs(doc *config.Routing) []ledger.ChannelSpec {
	specs := make([]ledger.ChannelSpec, len(doc.Channels))
	for i, c := range doc.Channels {
		specs[i] = ledger.ChannelSpec{Name: c.Name, ActiveMax: c.Active.Max, Limits: c.Limits}
	}
	return specs
}
