package pipeline

import (
	"slices"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// This file says how a message ends, from everything that happened to it: what the carriers took,
// what they answered and told later, and what the dispatcher was told of it and by whom. It knows
// no database, no order of writing and no time. TestAMessageEndsAsTheOracleSays compares it with
// the ledger.
//
//   - An attempt is one submit. Attempts under the same key are one submission: the provider takes
//     it once.
//   - A submission is accepted when an answer, a lookup or an operator said so, or when a receipt
//     came that carried its key. It is denied when its provider, a lookup or an operator said that
//     it was not taken. Where attempts repeat one under its key, a refusal is about one of them
//     only. Otherwise it is unknown.
//   - A part has a last word when a receipt said delivered or undelivered that the dispatcher can
//     attribute: by its key, or by a reference that it was told for this submission. Delivered is
//     better than undelivered, in whatever order they come.
//   - A copy of the message is one accepted submission, with the parts that other attempts on the
//     same channel got taken before the rest was refused. What a further attempt got taken, made
//     because no receipt had come, belongs to no other copy.
//   - A message is delivered when every part of a copy is. It stays accepted when no receipts are
//     to come for a copy, has no receipt when a part of a copy has no last word, and is
//     undelivered when all parts have theirs, or one was certainly not taken. Where there are
//     several copies and none is delivered, it is as one of them. An undelivered copy says nothing
//     about a submission that is unknown: beside that the message may stay accepted, or unknown.
//   - A message is unknown, for good, when no submission is accepted and one is unknown: somebody
//     may have it.
//   - A message is rejected when every submission was denied and the last one as the message's
//     fault, and failed when its deadline passed and nobody took it. It may be either when an
//     earlier one was rejected late.
//   - It is flagged as possible duplicate whenever two submissions were taken, and never when it
//     was not sent again while somebody might have it. Two submissions are taken only where its
//     lane resends once, or its route goes on without a receipt.

// attemptFacts is everything about one attempt.
type attemptFacts struct {
	Number  int
	Channel string
	First   int   // the first attempt under the same key: the submission
	Parts   []int // that it was to carry
	Further bool  // it was made because no receipt had come of an earlier one

	Taken  []int // parts that the carrier has taken with this submit
	Lost   bool  // another process took it for lost
	Answer *answerFacts
}

// repeats reports whether it repeated an earlier attempt under its key.
func (a *attemptFacts) repeats() bool { return a.First != a.Number }

// answerFacts is what the process that submitted an attempt wrote down.
type answerFacts struct {
	Outcome provider.Outcome
	Denied  []int // parts that were certainly not taken
	Named   []int // parts whose references it named
}

// hearing is what a lookup or an operator told of a submission.
type hearing struct {
	First   int
	Verdict ledger.ResolvedAs // Taken or NotTaken
	Named   []int             // parts whose references were told
}

// partReceipt is a receipt of the carrier about one part of a submission.
type partReceipt struct {
	First, Part        int
	ByKey, ByReference bool
	// its attempt had been taken for lost when it was looked at, and its owner had said nothing
	AfterLost bool
	State     provider.ReceiptState
}

// history is all that happened to one message.
type history struct {
	Attempts []attemptFacts
	Hearings []hearing
	Receipts []partReceipt
	Expects  map[string]bool // channels that send receipts
	Lane     decide.Lane
}

// submission is what is known of the attempts under one key.
type submission struct {
	first   int
	further bool
	channel string
	known   provider.Outcome // Accepted, Unknown, or that of a denial
	carried []int
	taken   []int // by the carrier
	denied  []int // parts that are known not to be taken
	named   []int // parts whose references are known
	repeats bool  // there was more than one attempt
	lost    bool  // an attempt was taken for lost
}

// submissions are those of a history in order.
func (h *history) submissions() []submission {
	var all []submission
	for i := range h.Attempts {
		a := &h.Attempts[i]
		if !a.repeats() {
			all = append(all, submission{
				first: a.First, further: a.Further, channel: a.Channel, carried: a.Parts,
			})
		}
		s := &all[slices.IndexFunc(all, func(s submission) bool { return s.first == a.First })]
		s.repeats = s.repeats || a.repeats()
		s.taken = append(s.taken, a.Taken...)
		s.lost = s.lost || a.Lost
		if a.Answer != nil {
			s.named = append(s.named, a.Answer.Named...)
			if !s.repeats {
				s.denied = a.Answer.Denied
			}
		}
	}
	for i := range all {
		s := &all[i]
		for _, heard := range h.Hearings {
			if heard.First == s.first {
				s.named = append(s.named, heard.Named...)
			}
		}
		for _, r := range h.Receipts {
			if r.First == s.first && r.ByKey && r.ByReference {
				s.named = append(s.named, r.Part)
			}
		}
		s.known = h.known(s)
		if s.repeats || h.provedFirst(s) {
			s.denied = nil
		}
	}
	return all
}

// known is what is known of a submission.
func (h *history) known(s *submission) provider.Outcome {
	if h.provedFirst(s) {
		return provider.Accepted
	}
	said := provider.Unknown
	for i := range h.Attempts {
		a := &h.Attempts[i]
		if a.First != s.first || a.Answer == nil {
			continue
		}
		switch o := a.Answer.Outcome; {
		case o == provider.Accepted:
			return o
		case o == provider.Rejected, o != provider.Unknown && !s.repeats:
			said = o // where attempts were repeated, a refusal is about one of them only
		}
	}
	for _, heard := range h.Hearings {
		switch {
		case heard.First != s.first:
		case heard.Verdict == ledger.Taken:
			return provider.Accepted
		default:
			said = provider.Refused
		}
	}
	proved := slices.ContainsFunc(h.Receipts, func(r partReceipt) bool {
		return r.First == s.first && r.ByKey && !slices.Contains(h.answered(s), r.Part)
	})
	if said == provider.Unknown && proved {
		return provider.Accepted
	}
	return said
}

// provedFirst reports whether a receipt with our key proved a submission that had been taken for
// lost before its owner said anything. What the owner says of its parts comes too late then.
func (h *history) provedFirst(s *submission) bool {
	return slices.ContainsFunc(h.Receipts, func(r partReceipt) bool {
		return r.First == s.first && r.AfterLost && r.ByKey
	})
}

// answered are the parts of a submission that an answer named: a receipt about one of them says
// nothing new about those that had no answer.
func (h *history) answered(s *submission) (parts []int) {
	for i := range h.Attempts {
		if a := &h.Attempts[i]; a.First == s.first && a.Answer != nil {
			parts = append(parts, a.Answer.Named...)
		}
	}
	return parts
}

// word is what receipts said of a part of a submission; Pending for nothing.
func (h *history) word(s *submission, part int) provider.ReceiptState {
	best := provider.Pending
	for _, r := range h.Receipts {
		if r.First != s.first || r.Part != part || !r.ByKey && !slices.Contains(s.named, part) {
			continue
		}
		if r.State == provider.Delivered || r.State == provider.Undelivered &&
			best == provider.Pending {
			best = r.State
		}
	}
	return best
}

// ends are the states in which the message may end.
func (h *history) ends() []ledger.State {
	all := h.submissions()
	var copies []ledger.State
	open := false
	for i := range all {
		switch s := &all[i]; s.known {
		case provider.Accepted:
			copies = append(copies, h.copied(all, s))
		case provider.Unknown:
			open = true
		case provider.Rejected, provider.Refused, provider.Throttled:
		}
	}
	end := []ledger.State{ledger.Failed}
	switch {
	case slices.Contains(copies, ledger.Delivered):
		return []ledger.State{ledger.Delivered}
	case len(copies) > 0 && open && slices.Contains(copies, ledger.Undelivered):
		end = append(copies, ledger.Accepted, ledger.Unknown)
	case len(copies) > 0:
		end = copies
	case open:
		return []ledger.State{ledger.Unknown}
	case len(all) > 0 && all[len(all)-1].known == provider.Rejected:
		end = []ledger.State{ledger.Rejected}
		// told late
	case slices.ContainsFunc(all, func(s submission) bool { return s.known == provider.Rejected }):
		end = append(end, ledger.Rejected)
	}
	return end
}

// copied is what the receipts of one copy come to.
func (h *history) copied(all []submission, s *submission) ledger.State {
	missing, failed := false, false
	count := func(of *submission, parts []int) {
		for _, part := range parts {
			switch h.word(of, part) {
			case provider.Pending:
				missing = true
			case provider.Undelivered:
				failed = true
			case provider.Delivered:
			}
		}
	}
	for i := range all {
		if other := &all[i]; !other.further &&
			(other.known == provider.Refused || other.known == provider.Throttled) {
			count(other, other.taken) // before the rest was refused
		}
	}
	for _, part := range s.carried {
		if slices.Contains(s.denied, part) {
			failed = true
		} else {
			count(s, []int{part})
		}
	}
	switch {
	case missing && !h.Expects[s.channel]:
		return ledger.Accepted
	case missing:
		return ledger.NoReceipt
	case failed:
		return ledger.Undelivered
	}
	return ledger.Delivered
}

// flags says whether the message must be flagged as possible duplicate, and whether it may be.
func (h *history) flags() (must, may bool) {
	all := h.submissions()
	for i := range all {
		for j := range i {
			for _, part := range all[i].taken {
				must = must || slices.Contains(all[j].taken, part)
			}
		}
	}
	further := slices.ContainsFunc(all, func(s submission) bool { return s.further })
	return must, further || h.Lane.ResendOnce()
}

// billed is how many parts must be on the bill of a submission at least, and may be at most: those
// that were taken, and those that nobody said were not. Whoever takes an attempt for lost books all
// of it.
func (h *history) billed(s *submission) (least, most int) {
	switch {
	case s.known != provider.Accepted && s.known != provider.Unknown:
		return len(s.taken), len(s.taken)
	case s.lost:
		return len(s.taken), len(s.carried)
	}
	return len(s.taken), len(s.carried) - len(s.denied)
}
