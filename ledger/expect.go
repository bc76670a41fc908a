package ledger

import "strings"

// expectArrays are the parameters of expectReceipts, one element for each part that a receipt is expected for;
// nil without any.
func expectArrays(order []*Settlement) []any {
	var seq, await []int64
	var attempt, part []int16
	var reference []string
	for _, s := range order {
		if s.Await <= 0 {
			continue
		}
		number := int16(0)
		for one := range strings.SplitSeq(storable(s.Reference), " ") {
			if one == "" || len(one) > maxReference {
				continue
			}
			number++
			seq, attempt, reference = append(seq, s.Seq), append(attempt, int16(s.Attempt)), append(reference, one)
			part, await = append(part, number), append(await, s.Await.Microseconds())
		}
	}
	if seq == nil {
		return nil
	}
	return []any{seq, attempt, reference, part, await}
}
