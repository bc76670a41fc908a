package dispatch

import "slices"

// Blocked says to which numbers nothing is sent. The zero value blocks none.
type Blocked struct {
	Prefixes  []string // beginnings of numbers, plus included
	Countries []string // ISO 3166 in lower case
	// CallingCodes are those of these countries, plus included: what stops a number that none of the countries behind
	// such a code is known to have, and that may therefore be one of a blocked country.
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

// stopsCountry errs on the side of the block: no country is good enough where a blocked one is possible.
func (b *Blocked) stopsCountry(to *Destination) bool {
	if to.Country == "" {
		return len(b.CallingCodes) > 0 && beginsWithOne(b.CallingCodes, to.Number)
	}
	return slices.Contains(b.Countries, to.Country)
}
