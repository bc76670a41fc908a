package decide

import (
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
)

// Destination is where a message goes, as far as prices and rules about senders ask.
type Destination struct {
	Number  string // E.164 with its plus; it must not be shown
	Country string // ISO 3166 region in lower case; empty when nobody asks, or nobody knows
	Network string // MCC and MNC, as the message's label says; empty without one
}

// destination works out where a message goes. The country is looked up where something goes by it.
func (r *Routing) destination(m *envelope.Message) Destination {
	to := Destination{Number: m.To}
	if label, ok := m.Labels[networkLabel]; ok {
		to.Network = network(label.String())
	}
	if r.Country != nil && r.asksCountry() {
		to.Country = r.Country(m.To)
	}
	return to
}

// DestinationOf is where a recorded message goes. country may be nil, and then none is known. The
// number is empty when the record is damaged.
func DestinationOf(m *ledger.Message, country func(number string) string) Destination {
	msg, problem := envelope.Decode(m.Envelope, true)
	if problem != nil {
		return Destination{}
	}
	to := Destination{Number: msg.To}
	if label, ok := msg.Labels[networkLabel]; ok {
		to.Network = network(label.String())
	}
	if country != nil {
		to.Country = country(msg.To)
	}
	return to
}

// Whether anything but the match of a route goes by countries, as far as that was looked up.
type countryUse uint8

const (
	useUnknown countryUse = iota
	unused
	used
)

// asksCountry reports whether a price, a rule about senders or a block goes by countries.
func (r *Routing) asksCountry() bool {
	if r.countries == useUnknown {
		return r.lookForCountries() == used // not prepared: an explanation, or a test
	}
	return r.countries == used
}

func (r *Routing) lookForCountries() countryUse {
	if len(r.Blocked.Countries) > 0 {
		return used
	}
	for i := range r.Channels {
		if r.Channels[i].Price.byCountry() || r.Channels[i].Senders.ByCountry() {
			return used
		}
	}
	return unused
}
