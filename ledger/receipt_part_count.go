package ledger

import (
	"slices"
	"strings"
	"time"

	"dispatcher/provider"
)

// The receipts of a copy are counted here. There is no I/O.
//
// An attempt has a number of expected receipts: one for each part that was taken or may have been,
// or one for the whole where the provider does not report parts. A copy is delivered when all
// expected receipts say so. If only some have come, it is not enough that these say so: a receipt
// of one part says nothing about the others.

// codeUnsent is the code of a copy with a part that was certainly not taken.
const codeUnsent = "unsent"

// reported is what receipts say.
type reported struct {
	state State
	cause provider.Cause
	code  string
	at    time.Time
}

// partCount is what is known of the parts of a copy.
type partCount struct {
	parts   []part
	missing int  // how many expected receipts have no row
	awaits  bool // missing receipts may still come in time
	cut     bool // a part was certainly not taken, and will not be sent
	// unreported: nothing is known of some part, but no receipt is missing, because none is expected.
	unreported bool
}

// countParts counts the parts of an attempt.
func (s *attemptStatus) countParts() partCount {
	if s.within <= 0 {
		return s.unexpected()
	}
	parts := folded(s.counted(), s.expected)
	return partCount{
		parts: parts, missing: max(s.expected-len(parts), 0), cut: s.cut,
		awaits: slices.ContainsFunc(parts, func(p part) bool { return p.awaited }),
	}
}

// unexpected counts the parts of an attempt that no receipts are expected for. Final receipts still
// count. The parts that its settlement named have no rows.
func (s *attemptStatus) unexpected() partCount {
	expected := s.expected
	if named := strings.Fields(s.reference); expected == 0 && s.outcome == provider.Accepted.String() {
		slices.Sort(named)
		expected = len(slices.Compact(named))
	}
	parts := folded(s.counted(), expected)
	told := slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return !p.final() })
	return partCount{parts: told, cut: s.cut, unreported: len(told) < max(len(parts), expected)}
}

// with adds the parts that another attempt got taken.
func (c partCount) with(more partCount) partCount {
	c.parts = append(slices.Clip(c.parts), more.parts...)
	c.missing += more.missing
	c.awaits, c.cut, c.unreported = c.awaits || more.awaits, c.cut || more.cut, c.unreported || more.unreported
	return c
}

// folded are the parts of an attempt, no more than it has: see withoutWhole and best.
func folded(parts []part, expected int) []part {
	return best(withoutWhole(parts, expected), expected)
}

// best selects one part for each expected receipt, or for each part that the settlement named.
// There are more parts when receipts with our key name other ids than the answer did. Each of these
// is about one of the parts. When one part is expected, or when these receipts are at least as many
// as the parts, the better ones count. Otherwise it is not known which part each is about, and it
// counts for a part that is not final.
func best(parts []part, expected int) []part {
	others := 0
	for i := range parts {
		if parts[i].byKey {
			others++
		}
	}
	if expected == 0 {
		expected = len(parts) - others
	}
	if expected == 0 || len(parts) <= expected {
		return parts
	}
	order := func(p *part) int {
		if expected > 1 && others < expected && p.final() && !p.byKey {
			return rank(Delivered) + 1
		}
		return rank(p.state)
	}
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b part) int { return order(&b) - order(&a) })
	return parts[:expected]
}

// withoutWhole removes the row of a receipt that names no part. When one receipt is expected, it is
// about the whole attempt. When several are, it is about one of the parts, and it is not known
// which: it counts for a part about which nothing else is known.
func withoutWhole(parts []part, expected int) []part {
	at := slices.IndexFunc(parts, func(p part) bool { return p.whole() })
	if at < 0 || len(parts) == 1 {
		return parts
	}
	whole, named := parts[at], slices.Delete(slices.Clone(parts), at, at+1)
	if expected == 0 {
		for i := range named {
			if !named[i].byKey {
				expected++
			}
		}
	}
	switch {
	case expected > 1 && expected > len(named):
		return parts
	case expected > 1:
		return named
	}
	for i := range named {
		if better(whole.state, named[i].state) {
			named[i] = whole
		}
	}
	return named
}

// word is what the receipts of all parts say together. It is empty while one of them is awaited,
// and when a part that is not final will get no receipt.
func (c *partCount) word() reported {
	var all reported
	silent, undelivered := c.missing > 0 && !c.awaits, false
	awaited := c.missing > 0 && c.awaits
	for i := range c.parts {
		p := &c.parts[i]
		switch {
		case !p.final() && p.awaited:
			awaited = true
		case !p.final():
			silent = true
		case p.state == string(Undelivered) && !undelivered:
			undelivered, all.cause, all.code = true, p.word.cause, p.word.code
		case !undelivered:
			all.code = p.word.code
		}
		if p.word.at.After(all.at) {
			all.at = p.word.at
		}
	}
	switch {
	case len(c.parts) == 0 || awaited:
		return reported{}
	case silent:
		return reported{state: NoReceipt}
	case c.unreported:
		return reported{}
	case undelivered:
		all.state = Undelivered
	case c.cut:
		all.state, all.code = Undelivered, codeUnsent
	default:
		all.state = Delivered
	}
	return all
}

// better reports whether a receipt of state a replaces one of state b.
func better(a, b string) bool { return rank(a) > rank(b) }

// rank orders what receipts say of a part or of a message, as dispatcher.receipt_rank does for the
// rows of receipts.
func rank[S ~string](state S) int {
	switch string(state) {
	case string(Delivered):
		return 3
	case string(Undelivered):
		return 2
	case string(NoReceipt), provider.Pending.String():
		return 1
	}
	return 0
}

func anyFinal(parts []part) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.final() })
}
