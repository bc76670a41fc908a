package numbers

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nyaruka/phonenumbers"
)

// Countries finds the regions of numbers. A region depends only on a number's first digits and
// never on earlier look-ups, so that an audit finds the same country as the decision did. Answers
// are cached by those digits. It is safe for concurrent use.
type Countries struct {
	mu    sync.RWMutex
	known map[string]string // guarded by mu; by the first countryDigits characters
}

// countryDigits are enough to distinguish all regions that share a calling code, such as those of
// +1 and +44; maxCountries bounds the memory.
const (
	countryDigits = 9
	maxCountries  = 100_000
)

// NewCountries returns a Countries with an empty cache.
func NewCountries() *Countries { return &Countries{known: map[string]string{}} }

// Of is the ISO 3166 region of an E.164 number in lower case; 001 for numbers of no single country,
// such as those of +979, and empty for digits that no region has. It does not check whether the
// number exists.
func (c *Countries) Of(number string) string {
	prefix := number[:min(len(number), countryDigits)]
	c.mu.RLock()
	region, ok := c.known[prefix]
	c.mu.RUnlock()
	if ok {
		return region
	}
	region = regionOf(prefix)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxCountries {
		clear(c.known)
	}
	c.known[prefix] = region
	return region
}

// CallingCode is the calling code of an ISO 3166 region in either case: 44 for gb and for gg; 0 for
// 001, which has several, and for anything that is not a region.
func CallingCode(country string) int {
	return phonenumbers.GetCountryCodeForRegion(strings.ToUpper(country))
}

// MainCallingCodes are the calling codes, with a plus, whose main country is one of these: +44 for
// gb, and none for gg, which shares that code. A country with a code of its own is its main
// country.
func MainCallingCodes(countries []string) []string {
	var codes []string
	for _, country := range countries {
		region := strings.ToUpper(country)
		code := phonenumbers.GetCountryCodeForRegion(region)
		if code != 0 && phonenumbers.GetRegionCodeForCountryCode(code) == region {
			codes = append(codes, "+"+strconv.Itoa(code))
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}
