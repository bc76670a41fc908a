package publish

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestARoundFitsOneBatchAndTakesAtLeastOneRecord(t *testing.T) {
	t.Parallel()
	of := func(sizes ...int) (records []*kgo.Record) {
		for _, n := range sizes {
			records = append(records, &kgo.Record{Value: make([]byte, n)})
		}
		return records
	}
	for _, c := range []struct {
		records []*kgo.Record
		want    int
	}{
		{of(1, 2, 3), 3},
		{of(maxRound/2, maxRound/2-2*overhead, 1), 2},
		{of(maxRound, 1), 1},
		{of(maxRound+1, 1), 1},
		{[]*kgo.Record{{Headers: []kgo.RecordHeader{{Key: "k", Value: make([]byte, maxRound-200)}}}, {Value: make([]byte, 200)}}, 1},
	} {
		if got := fit(c.records); got != c.want {
			t.Errorf("%d records fit, want %d", got, c.want)
		}
	}
}
