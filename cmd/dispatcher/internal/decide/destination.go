package decide

import (
	"slices"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
)

// Destination is where a message goes, as far as prices and rules about senders ask.
type Destination struct {
	Number  string // E.164 with its plus; it must not be shown
	Country string // ISO 3166 region in lower case; empty when nobody asks, or nobody knows
	Network string // MCC and MNC, as the message's label says; empty without one
}

// destination works out where a message goes. The country is looked up where something depends on
// it.
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

// Whether anything but the match of a route depends on countries, as far as that was looked up.
type countryUse uint8

const (
	useUnknown countryUse = iota
	unused
	used
)

// asksCountry reports whether a price, a rule about senders, quiet hours, a block or a list of what
// is allowed depends on countries.
func (r *Routing) asksCountry() bool {
	if r.countries == useUnknown {
		return r.lookForCountries() == used // not prepared: an explanation, or a test
	}
	return r.countries == used
}

func (r *Routing) lookForCountries() countryUse {
	if len(r.Blocked.Countries) > 0 || r.Allowed.Any() {
		return used
	}
	for i := range r.Routes {
		if r.Routes[i].AllowedCountries != nil {
			return used
		}
		if quiet := r.Routes[i].Quiet; quiet != nil && quiet.ByRecipient {
			return used
		}
	}
	for i := range r.Channels {
		if r.Channels[i].Price.byCountry() || r.Channels[i].Senders.ByCountry() {
			return used
		}
	}
	return unused
}

// refuses reports whether a channel may not carry the message's sender.
func (t *Task) refuses(ch *Channel) bool {
	_, ok := t.sender(ch)
	return !ok
}

// replaces reports whether a channel puts a sender of its own in the place of the message's.
func (t *Task) replaces(ch *Channel) bool {
	sender, ok := t.sender(ch)
	return ok && t.msg.From != "" && sender != t.msg.From
}

// sender is what a channel puts on the message in place of a sender; false when it may not carry
// it.
func (t *Task) sender(ch *Channel) (sender string, ok bool) {
	return ch.Senders.For(t.msg.From, t.to.Country)
}

// excludes is why nothing may be sent to the number of a task, on whatever route; nil when it may.
func (r *Routing) excludes(t *Task) *envelope.Problem {
	switch {
	case r.Blocked.stops(&t.to):
		return &envelope.Problem{
			Code: envelope.BlockedNumber, Detail: "nothing is sent to such numbers",
		}
	case r.Allowed.Any() && !r.Allowed.Allows(t.Row.Tenant, t.to.Country):
		return countryNotAllowed()
	}
	return nil
}

func countryNotAllowed() *envelope.Problem {
	return &envelope.Problem{
		Code:   envelope.CountryNotAllowed,
		Detail: "the country of its number is none of those that are allowed",
	}
}

// Blocked says to which numbers nothing is sent. The zero value blocks none.
type Blocked struct {
	config.Blocked
	// CallingCodes are the calling codes, with a plus, whose main country is one of the blocked
	// ones. They stop a number of such a code that belongs to no known country. In practice it is
	// from a new range of the main country.
	CallingCodes []string
	// IsPremium tells numbers whose owner is paid for what is sent to them. It is called for every
	// message when Premium is set, and must be quick.
	IsPremium func(number string) bool
}

// stops reports whether nothing may be sent there.
func (b *Blocked) stops(to *Destination) bool {
	return len(b.Prefixes) > 0 && beginsWithOne(b.Prefixes, to.Number) ||
		b.stopsCountry(to) ||
		b.Premium && b.IsPremium(to.Number)
}

// stopsCountry takes a number without a country for one of the main country of its calling code. To
// take it for one of any country behind that code would end messages to new ranges of the United
// States for the sake of an island.
func (b *Blocked) stopsCountry(to *Destination) bool {
	if to.Country == "" {
		return len(b.CallingCodes) > 0 && beginsWithOne(b.CallingCodes, to.Number)
	}
	return slices.Contains(b.Countries, to.Country)
}
