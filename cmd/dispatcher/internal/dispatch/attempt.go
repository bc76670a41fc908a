package dispatch

import (
	"hash/fnv"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// attempt is one attempt as it was decided: what is to be submitted, and all that the step after
// its outcome depends on.
type attempt struct {
	seq        int64
	channel    string
	submission provider.Submission
	release    admission.Release // by the database's clock
	express    bool              // of the lane that goes before all others

	// hold is how long its channel keeps the active slot of an answered attempt for a retry and,
	// when untilReceipt is set, for the receipt.
	hold         time.Duration
	untilReceipt bool
	// await is how long after the answer receipts are expected for what was accepted; 0 when none
	// come.
	await   time.Duration
	refunds []ledger.Refund // its whole price, for each limit in money that it was taken from

	produced time.Time
	expires  time.Time
	segments int
	price    int64
	taken    int // parts of the message that earlier attempts got accepted

	lane, tenant, route string
	metadata            map[string]string
	pinned              string
	duplicate           bool
	mayBeTaken          bool // an earlier attempt may have been taken
	holdThrottled       bool

	// search is what to do when nobody answers. repeatUntil is set when this attempt repeats, under
	// the same key, one that nobody answered.
	search      search
	repeatUntil time.Time
}

// newAttempt is the attempt that was decided upon for a task.
func newAttempt(t *task, d *decision) attempt {
	a, ch := &d.Attempt, d.channel
	f := attempt{
		seq: t.row.Seq, channel: a.Channel, release: d.release, express: t.lane.Order == 0,
		hold: ch.Active.Hold, untilReceipt: ch.Active.UntilReceipt(), await: ch.AwaitReceipts,
		refunds: d.refunds, produced: t.produced, expires: t.row.ExpiresAt,
		segments: a.Segments, price: a.PriceMicros,
		lane: t.row.Lane, tenant: t.row.Tenant, route: t.row.Plan.Route, metadata: t.msg.Metadata,
		pinned: t.row.Pinned, duplicate: t.row.PossibleDuplicate, mayBeTaken: t.row.MayBeTaken,
		holdThrottled: t.route.HoldThrottled, search: searchOf(&t.lane),
	}
	f.submission = provider.Submission{
		ID: t.row.ID, Attempt: a.Number,
		To: t.msg.To, Text: t.textOn(ch),
		Reference: concatReference(t.row.ID),
		Validity:  t.row.ExpiresAt,
	}
	// There is a sender, or the message would not have gone to this channel.
	f.submission.From, _ = t.sender(ch)
	f.submission.OwnSender = t.msg.From != "" && f.submission.From == t.msg.From &&
		!ch.Senders.Gives(t.msg.From)
	if t.row.Pinned == a.Channel {
		f.submission.Parts, f.submission.Cut = t.row.PartsLeft, t.row.PartsCut
		f.submission.Key, f.repeatUntil = t.row.SameKey, t.row.SameKeyUntil
	}
	if len(f.submission.Parts) > 0 {
		f.taken = t.segments(ch) - len(f.submission.Parts)
	}
	return f
}

// recordedAttempt is what the ledger knows of an attempt.
func recordedAttempt(m *ledger.Message, a *ledger.Attempt, lane *Lane) *attempt {
	f := &attempt{
		seq: m.Seq, channel: a.Channel,
		submission: provider.Submission{
			ID: m.ID, Attempt: a.Number, Parts: m.PartsLeft, Cut: m.PartsCut, Key: m.SameKey,
		},
		expires: m.ExpiresAt, segments: a.Segments, price: a.PriceMicros,
		lane: m.Lane, tenant: m.Tenant, route: m.Plan.Route,
		pinned: m.Pinned, duplicate: m.PossibleDuplicate, mayBeTaken: a.Reason == ledger.ByResend,
		search: searchOf(lane), repeatUntil: m.SameKeyUntil,
	}
	if msg, problem := envelope.Decode(m.Envelope, true); problem == nil {
		f.metadata = msg.Metadata
	}
	return f
}

// repeats reports whether the attempt repeats one that nobody answered, under its key.
func (f *attempt) repeats() bool { return !f.repeatUntil.IsZero() }

// inform tells the attempt what its provider offers when nobody answers, and under which settings
// of the channel it was claimed. reach is how long after its claim it may still leave.
func (f *attempt) inform(
	can provider.Capabilities, account string, claimed time.Time, reach time.Duration,
) {
	s := &f.search
	s.can, s.account, s.begun, s.reach = can, account, claimed, reach
}

func searchOf(lane *Lane) search {
	return search{steps: lane.Clarify, within: lane.ClarifyFor, resendOnce: lane.ResendOnce}
}

// concatReference derives the concatenation reference from the message id, so that
// parts sent in different attempts still join on the handset.
func concatReference(id string) uint16 {
	h := fnv.New32a()
	h.Write([]byte(id))
	sum := h.Sum32()
	return uint16(sum>>16) ^ uint16(sum)
}
