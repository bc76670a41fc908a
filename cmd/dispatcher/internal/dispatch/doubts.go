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
		return d.judge(ctx, o, ledger.Taken, &provider.Result{Outcome: provider.Accepted, Code: "lookup", Reference: found.Reference}, now)
	case provider.NotTaken:
		return d.judge(ctx, o, ledger.NotTaken, &provider.Result{Outcome: provider.Refused, Code: "lookup"}, now)
	case provider.Unanswered:
	}
	return d.cfg.Ledger.PutOff(ctx, o.Message.Seq, o.Key, earlier(now.Add(pauseOfLookup(o.Asked)), o.Until))
}

// judge settles the attempt with a truth that was found out late.
func (d *Dispatcher) judge(ctx context.Context, o *ledger.OpenDoubt, verdict ledger.Verdict, truth *provider.Result, now time.Time) error {
	f := d.orphan(&o.Message, &o.Attempt)
	s := settle(f, truth, now)
	s.Doubt = nil // Judge ends it
	n := statusOfSettlement(f, &s, now)
	s.Notice = &n
	return d.pass(ctx, &ledger.Judgement{Seq: o.Message.Seq, Key: o.Key, Verdict: verdict, Settlement: s})
}

// conclude ends a search that found nothing.
func (d *Dispatcher) conclude(ctx context.Context, o *ledger.OpenDoubt, now time.Time) error {
	f := d.orphan(&o.Message, &o.Attempt)
	s := ledger.Settlement{Seq: o.Message.Seq, ID: o.Message.ID, Attempt: o.Last, Outcome: provider.Unknown, PossibleDuplicate: f.duplicate}
	verdict := giveUp(f, len(o.Message.PartsLeft) > 0, &s)
	if verdict == ledger.Resent && !f.expires.After(now) {
		verdict, s.State, s.Reason, s.PossibleDuplicate, s.Tried = ledger.FinalWord, ledger.Unknown, reasonAmbiguous, f.duplicate, false
	}
	n := statusOfSettlement(f, &s, now)
	s.Notice = &n
	return d.pass(ctx, &ledger.Judgement{Seq: o.Message.Seq, Key: o.Key, Verdict: verdict, Settlement: s})
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

// promises are what the provider of a channel promises; nothing when this process does not know it.
func (d *Dispatcher) promises(name string) provider.Capabilities {
	if capable, ok := d.channel(name).(provider.Capable); ok {
		return capable.Capabilities()
	}
	return provider.Capabilities{}
}
