package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

const (
	ambiguityInterval = time.Second
	// ambiguityBatch is how many ambiguities are looked at together, ambiguityAskers how many
	// providers are asked at once, and ambiguityLease how long no other instance looks at them.
	ambiguityBatch, ambiguityAskers = 64, 8
	ambiguityLease                  = 30 * time.Second
)

// CodeOperator is that of an attempt about which an operator said what became of it, and CodeLookup
// of one about which the provider was asked afterwards: nobody answered either.
const (
	CodeOperator = "operator"
	CodeLookup   = "lookup"
)

// codeRepeated is that of an attempt that turned out to be the same submission as an earlier one
// that was answered.
const codeRepeated = "same_key"

// resolveAmbiguities tries to learn what became of submissions that nobody answered, and ends the
// search for those whose time is over.
func (d *Dispatcher) resolveAmbiguities(ctx context.Context) error {
	due, err := d.cfg.Ledger.DueAmbiguities(ctx, ambiguityBatch, ambiguityLease)
	if err != nil {
		return fmt.Errorf("look for ambiguities: %w", err)
	}
	var wg sync.WaitGroup
	tokens := make(chan struct{}, ambiguityAskers)
	for i := range due {
		wg.Go(func() {
			tokens <- struct{}{}
			defer func() { <-tokens }()
			if err := d.clear(ctx, &due[i]); err != nil && ctx.Err() == nil {
				d.trouble("doubts", err)
			}
		})
	}
	wg.Wait()
	return nil
}

// clear takes one ambiguity a step further.
func (d *Dispatcher) clear(ctx context.Context, o *ledger.OpenAmbiguity) error {
	now := d.now()
	switch {
	case o.Repeats() && o.Message.State == ledger.Sending: // its answer may be the truth
		return d.cfg.Ledger.Postpone(ctx, o.Message.Seq, o.Key, now.Add(firstLookup))
	case o.Answered():
		return d.pass(ctx, answeredLate(o, now))
	case !now.Before(o.Until):
		return d.conclude(ctx, o, now)
	case o.Step == ledger.Lookup && d.account(o.Attempt.Channel) == o.Account:
		return d.lookUp(ctx, o)
	}
	return d.cfg.Ledger.Postpone(ctx, o.Message.Seq, o.Key, o.Until)
}

// lookUp asks the provider.
func (d *Dispatcher) lookUp(ctx context.Context, o *ledger.OpenAmbiguity) error {
	var found provider.LookupResult
	if finder, ok := d.channel(o.Attempt.Channel).(provider.Finder); ok {
		found = finder.Find(ctx, o.Key)
	}
	now := d.now()
	switch found.State {
	case provider.Taken:
		return d.pass(ctx, Resolve(o, ledger.Taken, CodeLookup, found.Reference, now))
	case provider.NotTaken:
		return d.pass(ctx, Resolve(o, ledger.NotTaken, CodeLookup, "", now))
	case provider.Unanswered:
	}
	return d.cfg.Ledger.Postpone(ctx, o.Message.Seq, o.Key, earlier(now.Add(pauseOfLookup(o.Asked)), o.Until))
}

// answeredLate ends an ambiguity whose first attempt was answered late, or proved by a receipt. Who
// wrote that down took the message on, unless further attempts under the key had been made: then
// the latest stands for all of them.
func answeredLate(o *ledger.OpenAmbiguity, now time.Time) *ledger.Resolution {
	verdict := ledger.NotTaken
	if o.Answer == provider.Accepted.String() {
		verdict = ledger.Taken
	}
	if o.Attempt.Number == o.First || o.Settled {
		return &ledger.Resolution{Seq: o.Message.Seq, Key: o.Key, As: verdict}
	}
	j := Resolve(o, verdict, codeRepeated, "", now)
	if verdict != ledger.Taken {
		return j
	}
	if o.Receipt != ledger.Delivered && o.Receipt != ledger.Undelivered {
		return j
	}
	j.Settlement.Await = 0 // they have come, for the first attempt
	f := orphan(&o.Message, &o.Attempt, &Lane{})
	j.Settlement.Notice = nil // what the receipt said is the news
	s := ledger.Settlement{ID: o.Message.ID, Attempt: o.Attempt.Number, State: o.Receipt}
	n := statusOfSettlement(f, &s, now)
	j.Move = &ledger.Move{State: o.Receipt, Notice: &n}
	return j
}

// Resolve ends an ambiguity with what was found out late: Taken under the provider's reference,
// NotTaken, or Unresolved when nobody will know. code says who found out. Its receipts are awaited
// from then on, for as long as those of its channel were when it was sent. Whether the message goes
// on, and how, is decided as for any answer. It is pure.
func Resolve(o *ledger.OpenAmbiguity, verdict ledger.ResolvedAs, code, reference string, now time.Time) *ledger.Resolution {
	f := orphan(&o.Message, &o.Attempt, &Lane{})
	f.repeatUntil, f.await = time.Time{}, o.Await
	j := &ledger.Resolution{Seq: f.seq, Key: o.Key, As: verdict}
	switch verdict {
	case ledger.Taken:
		f.duplicate = false                                     // the ledger adds the flag to the event where the message keeps it
		all := strings.TrimSpace(o.Reference + " " + reference) // of its parts, those that were known among them
		j.Settlement = truth(f, &provider.Result{Outcome: provider.Accepted, Code: code, Reference: all}, now)
	case ledger.NotTaken:
		j.Settlement = truth(f, &provider.Result{Outcome: provider.Refused, Code: code}, now)
		if o.Repeats() { // it waits to be submitted to the same channel again; a settlement leaves such a row alone
			s := j.Settlement
			j.Move = &ledger.Move{State: s.State, Reason: s.Reason, Tried: s.Tried, Notice: s.Notice}
		}
	case ledger.Unresolved, ledger.Resent:
		s := unresolved(o, f)
		s.State, s.Reason = ledger.Unknown, reasonAmbiguous
		j.Move = moved(f, s, now)
	}
	return j
}

// truth is the settlement of a late answer, with its event.
func truth(f *openAttempt, res *provider.Result, now time.Time) *ledger.Settlement {
	s := settle(f, res, now)
	s.Ambiguity = nil                 // the resolution ends it
	s.Receipts, s.CutShort = 0, false // who found out knows no more of its parts than was known
	n := statusOfSettlement(f, &s, now)
	s.Notice = &n
	return &s
}

// unresolved is the settlement of an attempt of which nothing became known.
func unresolved(o *ledger.OpenAmbiguity, f *openAttempt) *ledger.Settlement {
	return &ledger.Settlement{
		Seq: f.seq, ID: f.submission.ID, Attempt: o.Attempt.Number, Outcome: provider.Unknown, PossibleDuplicate: f.duplicate,
	}
}

// moved is where a message goes without anything having become known, with its event.
func moved(f *openAttempt, s *ledger.Settlement, now time.Time) *ledger.Move {
	n := statusOfSettlement(f, s, now)
	return &ledger.Move{State: s.State, Reason: s.Reason, PossibleDuplicate: s.PossibleDuplicate, Tried: s.Tried, Notice: &n}
}

// conclude ends a search that found nothing, unless a receipt has come that nobody has looked at.
func (d *Dispatcher) conclude(ctx context.Context, o *ledger.OpenAmbiguity, now time.Time) error {
	f := d.orphan(&o.Message, &o.Attempt, o.OpenedAt)
	if d.lookForReceipts(ctx, f); f.search.received {
		return d.cfg.Ledger.Postpone(ctx, o.Message.Seq, o.Key, now.Add(receiptLook))
	}
	s := unresolved(o, f)
	verdict := giveUp(f, o.Partly, s, now)
	return d.pass(ctx, &ledger.Resolution{Seq: f.seq, Key: o.Key, As: verdict, Move: moved(f, s, now)})
}

// pass writes a judgement down.
func (d *Dispatcher) pass(ctx context.Context, j *ledger.Resolution) error {
	ended, err := d.cfg.Ledger.Resolve(ctx, j)
	if err != nil {
		return fmt.Errorf("end an ambiguity: %w", err)
	}
	if !ended {
		return nil
	}
	d.cfg.Metrics.doubts.WithLabelValues(string(j.As)).Inc()
	if j.Settlement != nil && j.Settlement.State == ledger.Retry || j.Move != nil && j.Move.State == ledger.Retry {
		d.backlog.Store(true)
		d.wake()
	}
	return nil
}

// inform tells a search what the channel offers and under which settings; begun is when the attempt
// was claimed.
func (d *Dispatcher) inform(s *search, channel string, begun time.Time) {
	s.can, _ = d.promises(channel)
	s.account, s.begun, s.reach = d.account(channel), begun, d.cfg.SendTimeout+recoveryMargin
}

// lookForReceipts tells the searches of attempts that nobody answered whether a receipt with our key
// has come. Without it a lane that resends would send once more what was taken.
func (d *Dispatcher) lookForReceipts(ctx context.Context, unanswered ...*openAttempt) {
	var seqs []int64
	for _, f := range unanswered {
		if f.search.can.Receipts && f.search.can.KeyInReceipt {
			seqs = append(seqs, f.seq)
		}
	}
	if seqs == nil {
		return
	}
	err := withTimeout(ctx, func(ctx context.Context) error {
		proved, err := d.cfg.Ledger.ReceivedWithKey(ctx, seqs)
		for _, f := range unanswered {
			f.search.received = slices.Contains(proved, f.seq)
		}
		return err
	})
	if err != nil { // the receipt is looked at later, and may come too late to stop a resend
		d.trouble("receipts", err)
	}
}

// account stands for the settings of a channel; empty for one that the routing does not have.
func (d *Dispatcher) account(name string) string {
	routing := d.routing.Load()
	if at := routing.channel(name); at >= 0 {
		return routing.Channels[at].Account
	}
	return ""
}

// channel is the connected channel of that name; nil when this process has none.
func (d *Dispatcher) channel(name string) provider.Channel {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if w := d.workers[name]; w != nil {
		return w.channel
	}
	return nil
}

// awaits is how long receipts of a channel are expected now. Where this process does not know what
// its provider promises they may come: for as long as the routing says, or, when that does not have
// the channel any more, as where nothing is said.
func (d *Dispatcher) awaits(name string) time.Duration {
	if can, known := d.promises(name); known && !can.Receipts {
		return 0
	}
	routing := d.routing.Load()
	if at := routing.channel(name); at >= 0 {
		return routing.Channels[at].AwaitReceipts
	}
	return ledger.UnsaidAwait
}

// promises are what the provider of a channel promises; false when this process does not know it,
// because it has no such channel or cannot use its settings.
func (d *Dispatcher) promises(name string) (can provider.Capabilities, known bool) {
	if capable, ok := d.channel(name).(provider.Capable); ok {
		return capable.Capabilities(), true
	}
	return provider.Capabilities{}, false
}
