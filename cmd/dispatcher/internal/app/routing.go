package app

import (
	"fmt"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/steer"
	"dispatcher/config"
	"dispatcher/ledger"
)

// NewRouting turns a document into the form that the ledger applies. expect is the version that the
// change is based on, nil for none. before is the routing of that version with its effects, nil to
// read it again. Weights lowered by health weighting stay lowered; see config.KeepEffects.
func NewRouting(
	document *config.Document, before *config.Routing, author, reason string, expect *int64,
) ledger.NewRouting {
	doc := document.Routing
	return ledger.NewRouting{
		Expect: expect, Author: author, Reason: reason, Document: string(document.Text),
		Channels: Specs(doc), Limits: doc.Limits, Zone: doc.Timezone,
		Routes: decide.RouteSpecs(doc),
		Effects: func(current ledger.RoutingVersion) []byte {
			if before != nil && expect != nil && current.Version == *expect {
				return config.KeepEffects(before, doc).Encode()
			}
			return keptEffects(&current, doc)
		},
		EndsRamp: func(r *ledger.Ramp) string { return steer.Departure(r, doc) },
	}
}

// keptEffects are the effects of the current version that remain under a new document; none when
// the current version cannot be read, because no instance uses it then.
func keptEffects(current *ledger.RoutingVersion, doc *config.Routing) []byte {
	_, before, err := config.ParseVersion(current.Version, current.Document, current.Effects)
	if err != nil {
		return nil
	}
	return config.KeepEffects(before, doc).Encode()
}

// Specs are the limits of the document's channels in the form of the ledger.
func Specs(doc *config.Routing) []ledger.ChannelSpec {
	specs := make([]ledger.ChannelSpec, len(doc.Channels))
	for i, c := range doc.Channels {
		specs[i] = ledger.ChannelSpec{Name: c.Name, ActiveMax: c.Active.Max, Limits: c.Limits}
	}
	return specs
}

// maxSummary bounds the changes in one line of the log.
const maxSummary = 8

// summary lists the changes between two routings for the log. config.Diff hides settings that may
// be secret.
func summary(before, after *config.Routing) []string {
	changes := config.Diff(before, after)
	var out []string
	for _, c := range changes[:min(len(changes), maxSummary)] {
		switch {
		case c.From == "":
			out = append(out, fmt.Sprintf("%s added: %s", c.Path, c.To))
		case c.To == "":
			out = append(out, fmt.Sprintf("%s removed: %s", c.Path, c.From))
		default:
			out = append(out, fmt.Sprintf("%s: %s -> %s", c.Path, c.From, c.To))
		}
	}
	if more := len(changes) - maxSummary; more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return out
}
