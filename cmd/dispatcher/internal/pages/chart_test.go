package pages

import (
	"fmt"
	"slices"
	"testing"

	"dispatcher/ledger"
)

// TestTheChartAddsUpTheChannelsThatAreNotAmongTheBusiest: it has six colours.
func TestTheChartAddsUpTheChannelsThatAreNotAmongTheBusiest(t *testing.T) {
	t.Parallel()
	var channels []string
	var counts []ledger.Throughput
	for i := range 9 {
		channels = append(channels, fmt.Sprint("c", i))
		counts = append(counts, ledger.Throughput{Channel: channels[i], Attempts: int64(i)})
	}
	got, names := charted(counts, channels)
	if want := []string{"c4", "c5", "c6", "c7", "c8", others}; !slices.Equal(names, want) {
		t.Errorf("got series %v, want %v", names, want)
	}
	sums := map[string]int64{}
	for _, c := range got {
		sums[c.Channel] += c.Attempts
	}
	if sums[others] != 0+1+2+3 || sums["c8"] != 8 || counts[0].Channel != "c0" {
		t.Errorf("got %v, and %v before", sums, counts)
	}
	if _, names := charted(counts[:6], channels[:6]); !slices.Equal(names, channels[:6]) {
		t.Errorf("six channels: got series %v", names)
	}
}
