package report

import (
	"slices"
	"strings"

	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/config"
	"dispatcher/ledger"
)

// countryOf is the country of a recorded message's number: empty when no country is known to have such numbers, and nil
// when the record shows no number.
func countryOf(m *ledger.Message, known *numbers.Countries) *string {
	to := dispatch.DestinationOf(m, known.Of)
	if to.Number == "" {
		return nil
	}
	return &to.Country
}

// goesByCountries reports whether anything in a document does: a block, a route's match, a price or a rule about senders.
func goesByCountries(doc *config.Routing) bool {
	return doc != nil && (len(doc.Blocked.Countries) > 0 ||
		slices.ContainsFunc(doc.Routes, func(r config.Route) bool { return len(r.Match.Countries) > 0 }) ||
		slices.ContainsFunc(doc.Channels, func(c config.Channel) bool {
			return slices.ContainsFunc(c.Price.Lists, func(l config.PriceList) bool { return len(l.Countries) > 0 }) ||
				slices.ContainsFunc(c.Senders.Rules, func(r config.SenderRule) bool { return len(r.Countries) > 0 })
		}))
}

// country tells which country the number was taken for, where that matters.
func (t *teller) country() {
	if sentence := countrySentence(t.story, t.doc); sentence != "" {
		t.say("%s", sentence)
	}
}

// wholeWorld is the region of numbers that are of no country in particular, such as those of +979.
const wholeWorld = "001"

// countrySentence is empty where the document does not go by countries, or the number is not known.
func countrySentence(s *Story, doc *config.Routing) string {
	blocked := s.Reason == string(envelope.BlockedNumber)
	switch {
	case s.Country == nil || !blocked && !goesByCountries(doc):
		return ""
	case *s.Country == wholeWorld:
		return "Its number is one of the whole world, so no rule or price of a country fits it."
	case *s.Country != "":
		return "Its number is one of " + strings.ToUpper(*s.Country) + "."
	}
	return noCountry + blockSentence(blocked, doc) + "."
}

const noCountry = "Its number has no country that is known, so no rule or price of a country fits it"

// blockSentence tells what blocked countries mean for a number without a country. Such a number may be blocked for something
// else, its beginning or that it is a premium one, so it tells the rule, and nothing where no country is blocked. The document
// of a blocked message is not always known.
func blockSentence(blocked bool, doc *config.Routing) string {
	switch {
	case doc != nil && len(doc.Blocked.Countries) == 0:
		return ""
	case blocked:
		return "; as far as countries go, it is blocked if the main country of its calling code is"
	}
	return "; as far as countries go, only a block of the main country of its calling code would stop it"
}
