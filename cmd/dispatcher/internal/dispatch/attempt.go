package dispatch

import (
	"hash/fnv"
	"time"

	"dispatcher/admission"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// attempt is an attempt between its claim and its settlement: durable, counted in
// every limit, and on its way to one channel.
type openAttempt struct {
	claim      *claimed // set by inflight
	slots      *slots   // that it holds one of
	load       *load    // of its channel, in which it counts until it is answered
	express    bool     // it overtakes others in its worker's queue
	seq        int64
	channel    string
	submission provider.Submission

	// claimed is this process's clock, with its monotonic reading, before the claim
	// began. After claimed + Config.SendTimeout no byte may leave any more, because
	// another instance may by then have declared the attempt lost.
	claimed time.Time
	// place is when it may leave by the database's clock, leave and latest the same by this
	// process's: not before leave, and before latest unless that is zero. See launch.
	place         admission.Release
	leave, latest time.Time
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

// newOpenAttempt is the attempt that was decided upon for a task; claimed is when its claim began.
func newOpenAttempt(t *task, d *decision, claimed time.Time) *openAttempt {
	a, ch := &d.Attempt, d.channel
	f := &openAttempt{
		place: d.release, refunds: d.refunds,
		hold: ch.Active.Hold, untilReceipt: ch.Active.UntilReceipt(), await: ch.AwaitReceipts,
		express: t.lane.Order == 0,
		seq:     t.row.Seq, channel: a.Channel, claimed: claimed,
		produced: t.produced, expires: t.row.ExpiresAt, segments: a.Segments, price: a.PriceMicros,
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
	f.submission.From, _ = t.sender(ch) // it has one, or the message would not have gone there
	f.submission.OwnSender = t.msg.From != "" && f.submission.From == t.msg.From && !ch.Senders.Gives(t.msg.From)
	if t.row.Pinned == a.Channel {
		f.submission.Parts, f.submission.Cut = t.row.PartsLeft, t.row.PartsCut
		f.submission.Key, f.repeatUntil = t.row.SameKey, t.row.SameKeyUntil
	}
	if len(f.submission.Parts) > 0 {
		f.taken = t.segments(ch) - len(f.submission.Parts)
	}
	return f
}

// repeats reports whether the attempt repeats one that nobody answered, under its key.
func (f *openAttempt) repeats() bool { return !f.repeatUntil.IsZero() }

func searchOf(lane *Lane) search {
	return search{steps: lane.Clarify, within: lane.ClarifyFor, resendOnce: lane.ResendOnce}
}

// answer hands on what came of the attempt, which no longer counts as under way on its channel.
func (f *openAttempt) answer(to chan<- answered, result *provider.Result) {
	f.load.release()
	to <- answered{attempt: f, result: *result}
}

// late reports whether its place has passed.
func (f *openAttempt) late(now time.Time) bool { return !f.latest.IsZero() && !now.Before(f.latest) }

// concatReference derives the concatenation reference from the message id, so that
// parts sent in different attempts still join on the handset.
func concatReference(id string) uint16 {
	h := fnv.New32a()
	h.Write([]byte(id))
	sum := h.Sum32()
	return uint16(sum>>16) ^ uint16(sum)
}
