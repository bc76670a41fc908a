package numbers

import (
	"slices"
	"strings"
	"testing"

	"github.com/nyaruka/phonenumbers"

	"dispatcher/config"
)

// The countries that the settings accept are those that numbers are read for.
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

func TestCallingCodesOfCountries(t *testing.T) {
	t.Parallel()
	for country, want := range map[string]int{
		"gb": 44, "GB": 44, "gg": 44, "us": 1, "fi": 358, "001": 0, "xx": 0, "": 0,
	} {
		if got := CallingCode(country); got != want {
			t.Errorf("%q has the calling code %d, want %d", country, got, want)
		}
	}
}
