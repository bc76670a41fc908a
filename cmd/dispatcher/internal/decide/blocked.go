package decide

import (
	"slices"

	"dispatcher/config"
)

// Blocked says to which numbers nothing is sent. The zero value blocks none.
type Blocked struct {
	config.Blocked
	// CallingCodes are those of which one of these countries is the main one, plus included: what
	// stops a number that none of the countries behind such a code is known to have. In practice
	// that is a new range of the main country.
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
