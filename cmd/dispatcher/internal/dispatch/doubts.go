package dispatch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"dispatcher/ledger"
	"dispatcher/provider"
)

const (
	doubtInterval = time.Second
	// doubtBatch is how many doubts are looked at together, doubtAskers how many providers are asked at once, and
	// doubtLease how long no other instance looks at them.
	doubtBatch, doubtAskers = 64, 8
	doubtLease              = 30 * time.Second
)

// codeLookup is that of an attempt about which the provider was asked afterwards.
const codeLookup = "lookup"

// clearDoubts tries to learn what became of submissions that nobody answered, and ends the search for those
// whose time is over.
func (d *Dispatcher) clearDoubts(ctx context.Context) error {
	doubts, err := d.cfg.Ledger.Doubts(ctx, doubtBatch, doubtLease)
	if err != nil {
		return fmt.Errorf("look for doubts: %w", err)
	}
	var wg sync.WaitGroup
	tokens := make(chan struct{}, doubtAskers)
	for i := range doubts {
		wg.Go(func() {
			tokens <- struct{}{}
			defer func() { <-tokens }()
			if err := d.clear(ctx, &doubts[i]); err != nil && ctx.Err() == nil {
				d.trouble("doubts", err)
			}
		})
	}
	wg.Wait()
	return nil
}

// clear takes one doubt a step further.
func (d *Dispatcher) clear(ctx context.Context, o *ledger.OpenDoubt) error {
	now := d.now()
	switch {
	case o.Message.State == ledger.Sending && o.Message.Attempts > 0 && o.Step == ledger.SameKey: // it is being repeated just now
		return d.cfg.Ledger.PutOff(ctx, o.Message.Seq, o.Key, now.Add(firstLookup))
	case !now.Before(o.Until):
		return d.conclude(ctx, o, now)
	case o.Step == ledger.Lookup:
		return d.lookUp(ctx, o)
	}
	return d.cfg.Ledger.PutOff(ctx, o.Message.Seq, o.Key, o.Until)
}

// lookUp asks the provider.
func (d *Dispatcher) lookUp(ctx context.Context, o *ledger.OpenDoubt) error {
	var found provider.Finding
	if finder, ok := d.channel(o.Attempt.Channel).(provider.Finder); ok {
		found = finder.Find(ctx, o.Key)
	}
	now := d.now()
	switch found.Known {
	case provider.Taken:
		j := Judge(o, ledger.Taken, codeLookup, found.Reference, now)
		j.Settlement.Await = d.awaits(o.Attempt.Channel)
		return d.pass(ctx, j)
	case provider.NotTaken:
		return d.pass(ctx, Judge(o, ledger.NotTaken, codeLookup, "", now))
	case provider.Unanswered:
	}
	return d.cfg.Ledger.PutOff(ctx, o.Message.Seq, o.Key, earlier(now.Add(pauseOfLookup(o.Asked)), o.Until))
}

// Judge settles a doubt with a truth that was found out late: Taken under the provider's reference, NotTaken, or
// FinalWord when nobody will know. code says who found out. It is pure.
func Judge(o *ledger.OpenDoubt, verdict ledger.Verdict, code, reference string, now time.Time) *ledger.Judgement {
	f := orphan(&o.Message, &o.Attempt, &Lane{})
	f.repeatUntil = time.Time{}
	var s ledger.Settlement
	switch verdict {
	case ledger.Taken:
		s = settle(f, &provider.Result{Outcome: provider.Accepted, Code: code, Reference: reference}, now)
	case ledger.NotTaken:
		s = settle(f, &provider.Result{Outcome: provider.Refused, Code: code}, now)
	case ledger.FinalWord, ledger.Resent:
		s = ledger.Settlement{
			Seq: f.seq, ID: f.submission.ID, Attempt: o.Last, Outcome: provider.Unknown, PossibleDuplicate: f.duplicate,
			State: ledger.Unknown, Reason: reasonAmbiguous,
		}
	}
	n := statusOfSettlement(f, &s, now)
	s.Notice = &n
	return &ledger.Judgement{Seq: f.seq, Key: o.Key, Verdict: verdict, Settlement: s}
}

// conclude ends a search that found nothing.
func (d *Dispatcher) conclude(ctx context.Context, o *ledger.OpenDoubt, now time.Time) error {
	f := d.orphan(&o.Message, &o.Attempt)
	s := ledger.Settlement{Seq: f.seq, ID: f.submission.ID, Attempt: o.Last, Outcome: provider.Unknown, PossibleDuplicate: f.duplicate}
	f.search.resendOnce = f.search.resendOnce && f.expires.After(now)
	verdict := giveUp(f, false, &s)
	n := statusOfSettlement(f, &s, now)
	s.Notice = &n
	return d.pass(ctx, &ledger.Judgement{Seq: f.seq, Key: o.Key, Verdict: verdict, Settlement: s})
}

// pass writes a judgement down.
func (d *Dispatcher) pass(ctx context.Context, j *ledger.Judgement) error {
	ended, err := d.cfg.Ledger.Judge(ctx, j)
	if err != nil {
		return fmt.Errorf("end a doubt: %w", err)
	}
	if ended {
		d.cfg.Metrics.doubts.WithLabelValues(string(j.Verdict)).Inc()
	}
	if ended && j.Settlement.State == ledger.Retry {
		d.backlog.Store(true)
		d.wake()
	}
	return nil
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

// awaits is how long receipts of a channel are expected now.
func (d *Dispatcher) awaits(name string) time.Duration {
	routing := d.routing.Load()
	if at := routing.channel(name); at >= 0 && d.promises(name).Receipts {
		return routing.Channels[at].AwaitReceipts
	}
	return 0
}

// promises are what the provider of a channel promises; nothing when this process does not know it.
func (d *Dispatcher) promises(name string) provider.Capabilities {
	if capable, ok := d.channel(name).(provider.Capable); ok {
		return capable.Capabilities()
	}
	return provider.Capabilities{}
}
