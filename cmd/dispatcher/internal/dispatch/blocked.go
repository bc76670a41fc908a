package dispatch

import "slices"

// Blocked says to which numbers nothing is sent. The zero value blocks none.
type Blocked struct {
	Prefixes  []string // beginnings of numbers, plus included
	Countries []string // ISO 3166 in lower case
	// CallingCodes are those of which one of these countries is the main one, plus included: what stops a number that none
	// of the countries behind such a code is known to have. In practice that is a new range of the main country.
	CallingCodes []string
	// Premium tells numbers whose owner earns from what is sent to them; nil blocks none of them. It is called for
	// every message and must be quick.
	Premium func(number string) bool
}

// stops reports whether nothing may be sent there.
func (b *Blocked) stops(to *Destination) bool {
	return len(b.Prefixes) > 0 && beginsWithOne(b.Prefixes, to.Number) ||
		b.stopsCountry(to) ||
		b.Premium != nil && b.Premium(to.Number)
}

// stopsCountry takes a number without a country for one of the main country of its calling code. To take it for one of any
// country behind that code would end messages to new ranges of the United States for the sake of an island.
func (b *Blocked) stopsCountry(to *Destination) bool {
	if to.Country == "" {
		return len(b.CallingCodes) > 0 && beginsWithOne(b.CallingCodes, to.Number)
	}
	return slices.Contains(b.Countries, to.Country)
}
