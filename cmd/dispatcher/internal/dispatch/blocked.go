package dispatch

import "slices"

// Blocked says to which numbers nothing is sent. The zero value blocks none.
type Blocked struct {
	Prefixes  []string // beginnings of numbers, plus included
	Countries []string // ISO 3166 in lower case
	// Premium tells numbers whose owner earns from what is sent to them; nil blocks none of them. It is called for
	// every message and must be quick.
	Premium func(number string) bool
}

// stops reports whether nothing may be sent there.
func (b *Blocked) stops(to *Destination) bool {
	return len(b.Prefixes) > 0 && beginsWithOne(b.Prefixes, to.Number) ||
		to.Country != "" && slices.Contains(b.Countries, to.Country) ||
		b.Premium != nil && b.Premium(to.Number)
}
