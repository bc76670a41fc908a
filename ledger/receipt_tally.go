package ledger

import (
	"slices"
	"strings"
	"time"

	"dispatcher/provider"
)

// What the parts of a copy come to together is counted here, without a database.
//
// An attempt owes receipts: one for each part that was taken or may have been, or one for all where
// the provider does not tell parts apart. A copy is delivered when all that are owed say so, and
// not when those are that happened to come: the receipt of one part says nothing about the others.

// codeUnsent is that of a copy of which a part certainly was not taken.
const codeUnsent = "unsent"

// word is what receipts say.
type reported struct {
	state State
	cause provider.Cause
	code  string
	at    time.Time
}

// tally is what is known of the parts of a copy.
type partCount struct {
	parts   []part
	missing int  // receipts that are owed and for which there is no row
	awaits  bool // they may come in time
	cut     bool // a part certainly was not taken, and will not be
	// nothing is to be told of a part, nor is it missing: no receipts are expected of its attempt
	mute bool
}

// tally counts the parts of an attempt.
func (t *attemptStatus) tally() partCount {
	if t.within <= 0 {
		return t.unexpected()
	}
	parts := folded(t.counted(), t.owed)
	return partCount{
		parts: parts, missing: max(t.owed-len(parts), 0), cut: t.cut,
		awaits: slices.ContainsFunc(parts, func(p part) bool { return p.awaited }),
	}
}

// unexpected counts the parts of an attempt of which no receipts are expected: those with a last
// word count all the same. There is no row for the parts that its settlement named.
func (t *attemptStatus) unexpected() partCount {
	owed := t.owed
	if named := strings.Fields(t.reference); owed == 0 && t.outcome == provider.Accepted.String() {
		slices.Sort(named)
		owed = len(slices.Compact(named))
	}
	parts := folded(t.counted(), owed)
	told := slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return !p.final() })
	return partCount{parts: told, cut: t.cut, mute: len(told) < max(len(parts), owed)}
}

// with adds the parts that another attempt got taken.
func (c partCount) with(more partCount) partCount {
	c.parts = append(slices.Clip(c.parts), more.parts...)
	c.missing += more.missing
	c.awaits, c.cut, c.mute = c.awaits || more.awaits, c.cut || more.cut, c.mute || more.mute
	return c
}

// folded are the parts of an attempt, at most as many as it has: see withoutWhole and best.
func folded(parts []part, owed int) []part {
	return best(withoutWhole(parts, owed), owed)
}

// best are as many of the parts as receipts are owed, or as the settlement named. There are more
// when receipts with our key name parts otherwise than the answer did. Such a receipt is about one
// of the parts. Where there is one part, or where they tell of as many parts as there are, the
// better word counts. Else nobody knows which part it is about, and it stands for one that has no
// last word.
func best(parts []part, owed int) []part {
	others := 0
	for i := range parts {
		if parts[i].byKey {
			others++
		}
	}
	if owed == 0 {
		owed = len(parts) - others
	}
	if owed == 0 || len(parts) <= owed {
		return parts
	}
	order := func(p *part) int {
		if owed > 1 && others < owed && p.final() && !p.byKey {
			return receiptRank(string(Delivered)) + 1
		}
		return receiptRank(p.state)
	}
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b part) int { return order(&b) - order(&a) })
	return parts[:owed]
}

// withoutWhole are parts without the row of a receipt that named none of them. It is about all of
// an attempt that owes one receipt. Of an attempt that owes several it is about one of them, and
// nobody knows which: it takes the place of a part of which nothing else is known.
func withoutWhole(parts []part, owed int) []part {
	at := slices.IndexFunc(parts, func(p part) bool { return p.whole() })
	if at < 0 || len(parts) == 1 {
		return parts
	}
	whole, named := parts[at], slices.Delete(slices.Clone(parts), at, at+1)
	if owed == 0 {
		for i := range named {
			if !named[i].byKey {
				owed++
			}
		}
	}
	switch {
	case owed > 1 && owed > len(named):
		return parts
	case owed > 1:
		return named
	}
	for i := range named {
		if better(whole.state, named[i].state) {
			named[i] = whole
		}
	}
	return named
}

// word is what the parts come to: empty while one of them is awaited, and where one without a last
// word has none to come.
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
	case c.mute:
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

// rank orders what receipts come to.
func rank(s State) int {
	switch s {
	case Delivered:
		return 3
	case Undelivered:
		return 2
	case NoReceipt:
		return 1
	case Scheduled, Waiting, Retry, Sending, Accepted, Rejected, Failed, Unknown, Dead:
	}
	return 0
}

// better reports whether a receipt of one state replaces one of another, as dispatcher.receipt_rank
// says.
func better(a, b string) bool { return receiptRank(a) > receiptRank(b) }

func receiptRank(state string) int {
	switch state {
	case provider.Delivered.String():
		return 3
	case provider.Undelivered.String():
		return 2
	case provider.Pending.String():
		return 1
	}
	return 0
}

func anyFinal(parts []part) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.final() })
}
