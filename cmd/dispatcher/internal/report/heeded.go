package report

import "dispatcher/config"

// notHeeded are the keys that a document uses and that pass over a channel after it was drawn, or keep a message from
// being sent.
func notHeeded(doc *config.Routing) []string {
	keys := []string{}
	for i := range doc.Routes {
		if len(doc.Routes[i].PriceCap) > 0 {
			keys = append(keys, "price_cap")
			break
		}
	}
	for i := range doc.Channels {
		if len(doc.Channels[i].Senders.Rules) > 0 {
			keys = append(keys, "senders")
			break
		}
	}
	if b := &doc.Blocked; b.Premium || len(b.Prefixes)+len(b.Countries) > 0 {
		keys = append(keys, "blocked")
	}
	return keys
}
