package pipeline

import (
	"slices"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// This file computes how a message ends from everything that happened to it: what the carriers
// accepted, what they answered and reported later, and what the dispatcher received of that. It
// uses no database, no order of writes and no time. TestAMessageEndsAsTheOracleSays compares it
// with the ledger.
//
//   - An attempt is one submit. Attempts under the same key are one submission: the provider
//     accepts it once.
//   - A submission is accepted if an answer, a look-up or an operator said so, or if a receipt with
//     its key came. It is denied if its provider, a look-up or an operator said that it was not
//     accepted. If an attempt was repeated under its key, a refusal is about one of the attempts
//     only. Otherwise the submission is unknown.
//   - A part is final if the dispatcher can attribute a receipt with delivered or undelivered to
//     it: by its key, or by a reference that it received for this submission. Delivered takes
//     precedence over undelivered, in any order.
//   - A copy of the message is one accepted submission, with the parts that other attempts on the
//     same channel sent before the rest was refused. What a further attempt sent, made because no
//     receipt had come, belongs to no other copy.
//   - A message is delivered if every part of a copy is. It stays accepted if a copy expects no
//     receipts. It is no_receipt if a part of a copy is not final. It is undelivered if all parts
//     are final, or one was certainly not accepted. If there are several copies and none is
//     delivered, it has the state of one of them. An undelivered copy says nothing about an unknown
//     submission: with one, the message may stay accepted or unknown.
//   - A message stays unknown if no submission is accepted and one is unknown: its recipient may
//     have it.
//   - A message is rejected if every submission was denied and the last one as the message's fault.
//     It is failed if its deadline passed and no provider accepted it. It may be either if an
//     earlier submission was rejected late.
//   - It is flagged as possible duplicate if two submissions were accepted. It is never flagged if
//     it was not sent again while its recipient might have it. Two submissions are accepted only on
//     a lane with resend_once, or on a route that goes on without a receipt.

// attemptFacts is everything about one attempt.
type attemptFacts struct {
	Number  int
	Channel string
	First   int   // the first attempt under the same key: the submission
	Parts   []int // that it was to carry
	Further bool  // it was made because no receipt had come of an earlier one

	Taken  []int // parts that the carrier accepted with this submit
	Lost   bool  // another process declared it lost
	Answer *answerFacts
}

// repeats reports whether it repeated an earlier attempt under its key.
func (a *attemptFacts) repeats() bool { return a.First != a.Number }

// answerFacts is what the process that submitted an attempt stored.
type answerFacts struct {
	Outcome provider.Outcome
	Denied  []int // parts that were certainly not accepted
	Named   []int // parts with a reference in the answer
}

// finding is what a look-up or an operator found about a submission.
type finding struct {
	First   int
	Verdict ledger.ResolvedAs // Taken or NotTaken
	Named   []int             // parts with a reference
}

// partReceipt is a receipt of the carrier about one part of a submission.
type partReceipt struct {
	First, Part        int
	ByKey, ByReference bool
	// its attempt was declared lost before the receipt was processed, and its process had stored
	// nothing
	AfterLost bool
	State     provider.ReceiptState
}

// history is everything that happened to one message.
type history struct {
	Attempts []attemptFacts
	Findings []finding
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
	denied  []int // parts that are known not to be accepted
	named   []int // parts whose references are known
	repeats bool  // there was more than one attempt
	lost    bool  // an attempt was declared lost
}

// submissions returns the submissions of a history in order.
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
		for _, v := range h.Findings {
			if v.First == s.first {
				s.named = append(s.named, v.Named...)
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

// known returns the outcome that is known of a submission.
func (h *history) known(s *submission) provider.Outcome {
	if h.provedFirst(s) {
		return provider.Accepted
	}
	stored := provider.Unknown
	for i := range h.Attempts {
		a := &h.Attempts[i]
		if a.First != s.first || a.Answer == nil {
			continue
		}
		switch o := a.Answer.Outcome; {
		case o == provider.Accepted:
			return o
		case o == provider.Rejected, o != provider.Unknown && !s.repeats:
			stored = o // if attempts were repeated, a refusal is about one of them only
		}
	}
	for _, v := range h.Findings {
		switch {
		case v.First != s.first:
		case v.Verdict == ledger.Taken:
			return provider.Accepted
		default:
			stored = provider.Refused
		}
	}
	proved := slices.ContainsFunc(h.Receipts, func(r partReceipt) bool {
		return r.First == s.first && r.ByKey && !slices.Contains(h.answered(s), r.Part)
	})
	if stored == provider.Unknown && proved {
		return provider.Accepted
	}
	return stored
}

// provedFirst reports whether a receipt with our key proved a submission that had been declared
// lost before its process stored anything. What the process stores about its parts is then ignored.
func (h *history) provedFirst(s *submission) bool {
	return slices.ContainsFunc(h.Receipts, func(r partReceipt) bool {
		return r.First == s.first && r.AfterLost && r.ByKey
	})
}

// answered returns the parts of a submission that an answer named: a receipt for one of them proves
// nothing about parts without an answer.
func (h *history) answered(s *submission) (parts []int) {
	for i := range h.Attempts {
		if a := &h.Attempts[i]; a.First == s.first && a.Answer != nil {
			parts = append(parts, a.Answer.Named...)
		}
	}
	return parts
}

// word returns the state of a part's receipts; Pending for none.
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

// ends returns the states in which the message may end.
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
		// reported late
	case slices.ContainsFunc(all, func(s submission) bool { return s.known == provider.Rejected }):
		end = append(end, ledger.Rejected)
	}
	return end
}

// copied returns the state that the receipts of one copy lead to.
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

// flags reports whether the message must be flagged as possible duplicate, and whether it may be.
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

// billed returns how many parts of a submission must be billed at least, and may be at most: those
// that were accepted, and those that nobody denied. When an attempt is declared lost, all of it is
// billed.
func (h *history) billed(s *submission) (least, most int) {
	switch {
	case s.known != provider.Accepted && s.known != provider.Unknown:
		return len(s.taken), len(s.taken)
	case s.lost:
		return len(s.taken), len(s.carried)
	}
	return len(s.taken), len(s.carried) - len(s.denied)
}
