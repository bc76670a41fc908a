package pipeline

import (
	"slices"
	"testing"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/selector"
)

var verifyKeys = []selector.Key{{3}, {2}, {1}}

// turnedRound is a routing with the weights of the only route in opposite order.
func turnedRound(t testing.TB, r *decide.Routing) *decide.Routing {
	t.Helper()
	next := *r
	next.Routes = slices.Clone(r.Routes)
	table := r.Routes[0].Table
	entries := make([]selector.Entry, table.Len())
	for i := range entries {
		entries[i] = selector.Entry{Name: table.Entry(i).Name, Weight: table.Entry(len(entries) - 1 - i).Weight}
	}
	var err error
	if next.Routes[0].Table, err = selector.NewTable(entries); err != nil {
		t.Fatal(err)
	}
	return &next
}
