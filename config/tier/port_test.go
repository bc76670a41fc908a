package tier_test

import (
	"testing"

	"dispatcher/config/tier"
)

// TestNoPortIsGivenTwice, also when nothing listens there.
func TestNoPortIsGivenTwice(t *testing.T) {
	t.Parallel()
	given := map[int]bool{}
	for range 200 { // two by chance would be likely
		port := tier.FreePort(t)
		if given[port] || given[port+1] {
			t.Errorf("port %d was given twice", port)
		}
		given[port], given[port+1] = true, true
	}
}
