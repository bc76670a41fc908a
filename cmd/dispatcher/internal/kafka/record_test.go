package kafka

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/ledger"
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
		{of(maxBatch/2, maxBatch/2-2*overhead, 1), 2},
		{of(maxBatch, 1), 1},
		{of(maxBatch+1, 1), 1},
		{[]*kgo.Record{
			{Headers: []kgo.RecordHeader{{Key: "k", Value: make([]byte, maxBatch-200)}}},
			{Value: make([]byte, 200)},
		}, 1},
	} {
		if got := fit(c.records); got != c.want {
			t.Errorf("%d records fit, want %d", got, c.want)
		}
	}
}

// TestAWaveHoldsOneNoticeOfAKeyAndTheNextOnesFollow: there are as few waves as the order of each
// key allows, and no notice is missing.
func TestAWaveHoldsOneNoticeOfAKeyAndTheNextOnesFollow(t *testing.T) {
	t.Parallel()
	of := func(kind ledger.NoticeKind, names ...string) (notices []ledger.Notice) {
		for _, name := range names {
			notices = append(notices,
				ledger.Notice{Kind: kind, Key: name[:len(name)-1], Value: []byte(name)})
		}
		return notices
	}
	for _, c := range []struct {
		name    string
		notices []ledger.Notice
		want    [][]string
	}{
		{"nothing", nil, nil},
		{
			"keys of one notice each leave together", of(ledger.Status, "a1", "b1", "c1"),
			[][]string{{"a1", "b1", "c1"}},
		},
		{
			"two of each key are two waves", of(ledger.Status, "a1", "a2", "b1", "b2", "c1", "c2"),
			[][]string{{"a1", "b1", "c1"}, {"a2", "b2", "c2"}},
		},
		{
			"a key that has more waits alone", of(ledger.InboundNotice, "a1", "b1", "a2", "a3", "b2"),
			[][]string{{"a1", "b1"}, {"a2", "b2"}, {"a3"}},
		},
		{
			"what has no key has no order", of(ledger.Status, "1", "2", "a1", "3"),
			[][]string{{"1", "2", "a1", "3"}},
		},
		{
			"dead letters have none either", of(ledger.Letter, "a1", "a2", "a3"),
			[][]string{{"a1", "a2", "a3"}},
		},
		{
			"and do not delay an event of their key",
			append(of(ledger.Letter, "a1", "a2"), of(ledger.Status, "a3", "a4")...),
			[][]string{{"a1", "a2", "a3"}, {"a4"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got [][]string
			for _, wave := range waves(c.notices) {
				var names []string
				for _, n := range wave {
					names = append(names, string(n.Value))
				}
				got = append(got, names)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
