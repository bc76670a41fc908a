package numbers

import (
	"slices"
	"strings"
	"testing"

	"github.com/nyaruka/phonenumbers"

	"dispatcher/config"
)

// What the settings take for a country is what numbers can be read for.
func TestTheCountriesOfTheSettingsAreThoseOfNumbers(t *testing.T) {
	t.Parallel()
	var known []string
	for region := range phonenumbers.GetSupportedRegions() {
		known = append(known, strings.ToLower(region))
	}
	slices.Sort(known)
	if !slices.Equal(known, config.Countries()) {
		t.Errorf("the settings take %v, numbers know %v", config.Countries(), known)
	}
}
