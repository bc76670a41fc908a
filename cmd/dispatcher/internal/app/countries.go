package app

import (
	"strings"
	"sync"

	"github.com/nyaruka/phonenumbers"
)

// countries finds the region of a number. A region is decided by the number's first
// digits, so answers are kept by prefix: parsing takes 20 us, remembering a tenth of one.
type countries struct {
	mu    sync.RWMutex
	known map[string]string // guarded by mu; by the first countryDigits characters
}

// countryDigits tell apart all regions that share a calling code, such as those of +1 and +44;
// maxCountries bounds the memory.
const (
	countryDigits = 9
	maxCountries  = 100_000
)

func newCountries() *countries { return &countries{known: map[string]string{}} }

func (c *countries) of(number string) string {
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
