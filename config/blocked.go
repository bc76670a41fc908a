package config

import "strings"

// Blocked says to which numbers nothing is sent, on any route. The zero value blocks none.
type Blocked struct {
	Prefixes  []string // beginnings of numbers, plus included
	Countries []string // ISO 3166 in lower case
	Premium   bool     // numbers whose owner is paid by the caller
}

func readBlocked(v value) Blocked {
	f, ok := v.fields("prefixes", "prefix", "countries", "country", "premium")
	if !ok {
		return Blocked{}
	}
	b := Blocked{
		Prefixes:  readWords(f, "prefixes", "prefix", checkPrefix),
		Countries: readWords(f, "countries", "country", checkCountry),
	}
	for i, c := range b.Countries {
		b.Countries[i] = strings.ToLower(c)
	}
	if premium, ok := f.get("premium"); ok {
		b.Premium = premium.flag()
	}
	return b
}
