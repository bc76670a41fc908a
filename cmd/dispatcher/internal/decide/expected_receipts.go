package decide

import (
	"slices"

	"dispatcher/ledger"
	"dispatcher/provider"
)

// owe says how many receipts tell all about an attempt, and whether parts of its message are
// missing for good. Of an attempt that was answered, the answer tells; of one that was not, what
// was submitted and whether the provider tells parts apart. Nothing is said where there is one part
// and one reference: that is what the ledger takes for granted.
func owe(f *Attempt, res *provider.Result, s *ledger.Settlement) {
	switch {
	case len(res.Parts) > 0:
		s.Receipts, s.CutShort = expectedReceipts(res.Parts), s.Outcome == provider.Unknown && slices.ContainsFunc(res.Parts, certainlyNot)
	case s.Outcome == provider.Unknown:
		s.Receipts = f.receipts()
	case s.Outcome == provider.Accepted && f.Segments > 1:
		s.Receipts = 1
	}
}

// expectedReceipts is how many receipts parts have: one for each that was taken or may have been.
// Parts that got the same id share theirs.
func expectedReceipts(parts []provider.Part) int {
	n, named := 0, make([]string, 0, len(parts))
	for i := range parts {
		p := &parts[i]
		switch {
		case certainlyNot(*p), p.Reference != "" && slices.Contains(named, p.Reference):
			continue
		case p.Reference != "":
			named = append(named, p.Reference)
		}
		n++
	}
	return n
}

// certainlyNot reports whether the provider does not have a part for certain.
func certainlyNot(p provider.Part) bool {
	return p.Outcome != provider.Accepted && p.Outcome != provider.Unknown
}

// receipts is how many are expected for an attempt that was taken whole, when the answer does not
// say in how many parts.
func (f *Attempt) receipts() int {
	switch {
	case !f.Search.Can.PartReceipts:
		return 1
	case len(f.Submission.Parts) > 0:
		return len(f.Submission.Parts)
	}
	return max(f.Segments, 1)
}
