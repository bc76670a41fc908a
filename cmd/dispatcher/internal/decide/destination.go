package decide

import (
	"slices"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
)

// Destination is where a message goes, as far as prices and rules about senders depend on it.
type Destination struct {
	Number  string // E.164 with its plus; it must not be shown
	Country string // ISO 3166 region in lower case; empty when not needed or not known
	Network string // MCC and MNC, as the message's label says; empty without one
}

// destination works out where a message goes. The country is looked up only where something depends
// on it.
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

// countryUse says whether anything but the match of a route depends on countries.
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

// refuses reports whether a channel may not or cannot carry the message's sender.
func (t *Task) refuses(ch *Channel) bool {
	_, ok := t.sender(ch)
	return !ok
}

// replaces reports whether a channel replaces the message's sender by one of its own.
func (t *Task) replaces(ch *Channel) bool {
	sender, ok := t.sender(ch)
	return ok && t.msg.From != "" && sender != t.msg.From
}

// sender is the sender with which a channel sends the message; false when the channel may not or
// cannot carry the message's sender.
func (t *Task) sender(ch *Channel) (sender string, ok bool) {
	sender, ok = ch.Senders.For(t.msg.From, t.to.Country)
	return sender, ok && (t.anySender || ch.Writes == nil || ch.Writes(sender, t.to.Number))
}

// excludes is why nothing may be sent to the number of a task on any route; nil when it may.
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
	// CallingCodes are the calling codes, with a plus, whose main country is blocked. They stop a
	// number of such a code that belongs to no known country. In practice such a number is from a new
	// range of the main country.
	CallingCodes []string
	// IsPremium reports whether the owner of a number is paid for messages sent to it. It is called
	// for every message when Premium is set, and must be quick.
	IsPremium func(number string) bool
}

// stops reports whether nothing may be sent to a destination.
func (b *Blocked) stops(to *Destination) bool {
	return len(b.Prefixes) > 0 && beginsWithOne(b.Prefixes, to.Number) ||
		b.stopsCountry(to) ||
		b.Premium && b.IsPremium(to.Number)
}

// stopsCountry treats a number without a known country as one of the main country of its calling
// code. If it could be any country of the code, blocking one Caribbean island would also block new
// ranges of the United States.
func (b *Blocked) stopsCountry(to *Destination) bool {
	if to.Country == "" {
		return len(b.CallingCodes) > 0 && beginsWithOne(b.CallingCodes, to.Number)
	}
	return slices.Contains(b.Countries, to.Country)
}
