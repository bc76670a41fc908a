package ledger

import (
	"slices"
	"strings"
)

// expectArrays are the parameters of expectReceipts, one element for each part that a receipt is
// expected for, or for the whole attempt when its provider gave no reference, and one with part 0
// for each that was denied by its id; nil without any.
func expectArrays(order []*Settlement) []any {
	var seq, await []int64
	var attempt, part []int16
	var reference []string
	for _, s := range order {
		if s.Await <= 0 {
			continue
		}
		number := int16(0)
		add := func(name string) {
			number++
			seq, attempt, reference = append(seq, s.Seq), append(attempt, int16(s.Attempt)), append(reference, name)
			part, await = append(part, number), append(await, s.Await.Microseconds())
		}
		for _, one := range names(s.Reference) {
			add(one)
		}
		if number == 0 && s.State == Accepted {
			add(wholeRow("", s.Seq, s.Attempt).reference) // only a receipt with our key can find it
		}
		for _, one := range names(s.Denied) {
			seq, attempt, reference = append(seq, s.Seq), append(attempt, int16(s.Attempt)), append(reference, one) //nolint:gosec // The column is a smallint.
			part, await = append(part, 0), append(await, s.Await.Microseconds())
		}
	}
	if seq == nil {
		return nil
	}
	return []any{seq, attempt, reference, part, await}
}

// names are the references of a settlement that a receipt can be found by.
func names(reference string) []string {
	return slices.DeleteFunc(strings.Fields(storable(reference)), func(one string) bool { return len(one) > maxReference })
}
