package decide

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// Attempt is one attempt as it was decided: what to submit, and everything that the step after its
// outcome depends on.
type Attempt struct {
	Seq        int64
	Channel    string
	Submission provider.Submission
	Release    admission.Release // by the database's clock
	FirstLane  bool              // of the lane that goes before all others

	// hold is how long the channel keeps the active slot after the answer: for a retry and, when
	// untilReceipt is set, for the receipt.
	hold         time.Duration
	untilReceipt bool
	// Await is how long after the answer a receipt is expected for what was accepted; 0 when the
	// provider sends none.
	Await   time.Duration
	refunds []ledger.Refund // its whole price, for each limit in money that was charged

	// Since is from when the delay of the first submit is measured: the record's timestamp, or when
	// a row that came due was received; the message's send_at if that is later. The time for which
	// the message was held does not count.
	Since    time.Time
	Expires  time.Time
	Segments int
	Price    int64
	taken    int // parts of the message that were accepted in earlier attempts

	Lane, tenant, route string
	metadata            map[string]string
	Traceparent         string // of the message; empty unless it is traced
	pinned              string
	duplicate           bool
	mayBeTaken          bool // an earlier attempt may have been taken
	// further says that an earlier attempt of the message was accepted, see ledger.ByNoReceipt.
	further bool
	// goesOn is how long after acceptance the message is sent on if no receipt has come; 0 for never.
	goesOn        time.Duration
	holdThrottled bool

	// Search is what to do when nobody answers. RepeatUntil is set when this attempt repeats, under
	// the same key, an attempt that nobody answered.
	Search      search
	RepeatUntil time.Time
}

// newAttempt builds the attempt from the decision about a task.
func newAttempt(t *Task, d *decision) Attempt {
	a, ch := &d.Attempt, d.channel
	attempt := Attempt{
		Seq: t.Row.Seq, Channel: a.Channel, Release: d.release, FirstLane: t.Lane.Order == 0,
		hold: ch.Active.Hold, untilReceipt: ch.Active.UntilReceipt(), Await: ch.AwaitReceipts,
		refunds: d.refunds, Since: t.since, Expires: t.Row.ExpiresAt,
		Segments: a.Segments, Price: a.PriceMicros,
		Lane: t.Row.Lane, tenant: t.Row.Tenant, route: t.Row.Plan.Route, metadata: t.msg.Metadata,
		Traceparent: t.msg.Traceparent,
		pinned:      t.Row.Pinned, duplicate: t.Row.PossibleDuplicate, mayBeTaken: t.Row.MayBeTaken,
		holdThrottled: t.Route.HoldThrottled, Search: searchOf(&t.Lane),
		further: t.was == ledger.Accepted, goesOn: t.goesOn(ch),
	}
	attempt.Submission = provider.Submission{
		ID: t.Row.ID, Attempt: a.Number,
		To: t.msg.To, Text: t.textOn(ch),
		Reference: concatReference(t.Row.ID),
		Validity:  t.Row.ExpiresAt,
	}
	// A channel without a usable sender is excluded, so a sender exists here.
	attempt.Submission.From, _ = t.sender(ch)
	attempt.Submission.OwnSender = t.msg.From != "" && attempt.Submission.From == t.msg.From &&
		!ch.Senders.Gives(t.msg.From)
	if t.Row.Pinned == a.Channel {
		attempt.Submission.Parts, attempt.Submission.Cut = t.Row.PartsLeft, t.Row.PartsCut
		attempt.Submission.Key, attempt.RepeatUntil = t.Row.SameKey, t.Row.SameKeyUntil
	}
	if len(attempt.Submission.Parts) > 0 {
		attempt.taken = t.segments(ch) - len(attempt.Submission.Parts)
	}
	return attempt
}

// RecordedAttempt rebuilds an attempt from its rows in the ledger.
func RecordedAttempt(m *ledger.Message, a *ledger.Attempt, lane *Lane) *Attempt {
	attempt := &Attempt{
		Seq: m.Seq, Channel: a.Channel,
		Submission: provider.Submission{
			ID: m.ID, Attempt: a.Number, Parts: m.PartsLeft, Cut: m.PartsCut, Key: m.SameKey,
		},
		Expires: m.ExpiresAt, Segments: a.Segments, Price: a.PriceMicros,
		Lane: m.Lane, tenant: m.Tenant, route: m.Plan.Route,
		pinned: m.Pinned, duplicate: m.PossibleDuplicate, mayBeTaken: a.Reason == ledger.ByResend,
		further: a.Reason == ledger.ByNoReceipt,
		Search:  searchOf(lane), RepeatUntil: m.SameKeyUntil,
	}
	if msg, problem := envelope.Decode(m.Envelope, true); problem == nil {
		attempt.metadata, attempt.Traceparent = msg.Metadata, msg.Traceparent
	}
	return attempt
}

// Repeats reports whether the attempt repeats, under its key, an attempt that nobody answered.
func (a *Attempt) Repeats() bool { return !a.RepeatUntil.IsZero() }

// Inform records what the provider offers when nobody answers, and the account and time of the
// claim. reach is how long after its claim the attempt may still leave.
func (a *Attempt) Inform(
	can provider.Capabilities, account string, claimed time.Time, reach time.Duration,
) {
	s := &a.Search
	s.Can, s.account, s.Begun, s.reach = can, account, claimed, reach
}

func searchOf(lane *Lane) search {
	return search{steps: lane.Clarify, within: lane.ClarifyFor, resendOnce: lane.ResendOnce()}
}

// concatReference derives the concatenation reference from the message id, so that parts sent in
// different attempts still join on the handset.
func concatReference(id string) uint16 {
	h := fnv.New32a()
	h.Write([]byte(id))
	sum := h.Sum32()
	return uint16(sum>>16) ^ uint16(sum)
}

// setExpectedReceipts sets how many receipts are expected for an attempt, and whether parts of its
// message will certainly never arrive. For an answered attempt the answer tells both. For an
// unanswered one they follow from the result, or else from what was submitted and from whether the
// provider sends a receipt per part. One part with one reference is the ledger's default and sets
// nothing.
func setExpectedReceipts(a *Attempt, res *provider.Result, s *ledger.Settlement) {
	switch {
	case len(res.Parts) > 0:
		s.Receipts = expectedReceipts(res.Parts)
		s.CutShort = s.Outcome == provider.Unknown && slices.ContainsFunc(res.Parts, certainlyNot)
	case s.Outcome == provider.Unknown:
		s.Receipts = cmp.Or(res.Receipts, a.receipts())
	case s.Outcome == provider.Accepted && a.Segments > 1:
		s.Receipts = 1
	}
}

// expectedReceipts counts one receipt for each part that was taken or may have been. Parts with the
// same id share one.
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

// certainlyNot reports whether the provider certainly does not have the part.
func certainlyNot(p provider.Part) bool {
	return p.Outcome != provider.Accepted && p.Outcome != provider.Unknown
}

// receipts is how many are expected for an attempt that was taken whole, when the answer does not
// say how many parts it had.
func (a *Attempt) receipts() int {
	switch {
	case !a.Search.Can.PartReceipts:
		return 1
	case len(a.Submission.Parts) > 0:
		return len(a.Submission.Parts)
	}
	return max(a.Segments, 1)
}
