package pipeline

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
	"dispatcher/provider"
)

const (
	ambiguityInterval = time.Second
	// ambiguityBatch is how many ambiguities are handled together, ambiguityAskers how many providers
	// are asked at once, and ambiguityLease how long no other instance takes them.
	ambiguityBatch, ambiguityAskers = 64, 8
	ambiguityLease                  = 30 * time.Second
)

// resolveAmbiguities tries to find out what became of submissions that nobody answered, and ends
// the searches whose time is over.
func (d *Dispatcher) resolveAmbiguities(ctx context.Context) error {
	due, err := d.cfg.Ledger.Ambiguities.Due(ctx, ambiguityBatch, ambiguityLease)
	if err != nil {
		return fmt.Errorf("look for ambiguities: %w", err)
	}
	var wg sync.WaitGroup
	tokens := make(chan struct{}, ambiguityAskers)
	for i := range due {
		wg.Go(func() {
			tokens <- struct{}{}
			defer func() { <-tokens }()
			if err := d.nextStep(ctx, &due[i]); err != nil && ctx.Err() == nil {
				d.trouble("ambiguities", err)
			}
		})
	}
	wg.Wait()
	return nil
}

// nextStep takes the next step for one ambiguity.
func (d *Dispatcher) nextStep(ctx context.Context, o *ledger.OpenAmbiguity) error {
	now := d.now()
	switch {
	case o.Repeats() && o.Message.State == ledger.Sending: // the answer may settle it
		first := now.Add(decide.FirstLookup)
		return d.cfg.Ledger.Ambiguities.Postpone(ctx, o.Message.Seq, o.Key, first)
	case o.Answered():
		return d.resolve(ctx, decide.AnsweredLate(o, now))
	case !now.Before(o.Until):
		return d.endSearch(ctx, o, now)
	case o.Step == ledger.Lookup && o.Account != "" && d.account(o.Attempt.Channel) == o.Account:
		return d.lookUp(ctx, o)
	}
	return d.cfg.Ledger.Ambiguities.Postpone(ctx, o.Message.Seq, o.Key, o.Until)
}

// lookUp asks the provider about the submission.
func (d *Dispatcher) lookUp(ctx context.Context, o *ledger.OpenAmbiguity) error {
	var found provider.LookupResult
	if finder, ok := d.channel(o.Attempt.Channel).(provider.Finder); ok {
		found = finder.Find(ctx, o.Key)
	}
	now := d.now()
	switch found.State {
	case provider.Taken:
		return d.resolve(ctx, decide.Resolve(o, ledger.Taken, decide.CodeLookup, found.Reference, now))
	case provider.NotTaken:
		return d.resolve(ctx, decide.Resolve(o, ledger.NotTaken, decide.CodeLookup, "", now))
	case provider.LookupRejected:
		return d.resolve(ctx, decide.ResolveRejected(o, found.Code, now))
	case provider.Unanswered:
	}
	return d.cfg.Ledger.Ambiguities.Postpone(
		ctx, o.Message.Seq, o.Key, decide.Earlier(now.Add(decide.PauseOfLookup(o.Asked)), o.Until),
	)
}

// resolve stores a resolution.
func (d *Dispatcher) resolve(ctx context.Context, r *ledger.Resolution) error {
	ended, err := d.cfg.Ledger.Ambiguities.Resolve(ctx, r)
	if err != nil {
		return fmt.Errorf("end an ambiguity: %w", err)
	}
	if !ended {
		return nil
	}
	d.cfg.Metrics.ambiguities.WithLabelValues(string(r.As)).Inc()
	if r.Settlement != nil && r.Settlement.State == ledger.Retry ||
		r.Move != nil && r.Move.State == ledger.Retry {
		d.backlog.Store(true)
		d.wake()
	}
	return nil
}

// endSearch ends a search that found nothing, unless a receipt has come and is not processed yet.
func (d *Dispatcher) endSearch(ctx context.Context, o *ledger.OpenAmbiguity, now time.Time) error {
	a := d.recorded(&o.Message, &o.Attempt, o.OpenedAt, d.cfg.Keys[0].ID())
	if err := d.lookForReceipts(ctx, a); err != nil {
		return err
	}
	if a.Search.Received {
		next := now.Add(decide.ReceiptLook)
		return d.cfg.Ledger.Ambiguities.Postpone(ctx, o.Message.Seq, o.Key, next)
	}
	return d.resolve(ctx, decide.EndSearch(o, a, now))
}

// lookForReceipts marks those unanswered attempts for which a receipt with our key has come.
// Without this, a lane that resends would repeat a message that the provider has taken.
func (d *Dispatcher) lookForReceipts(ctx context.Context, unanswered ...*decide.Attempt) error {
	var seqs []int64
	for _, a := range unanswered {
		if a.Search.Can.Receipts && a.Search.Can.KeyInReceipt {
			seqs = append(seqs, a.Seq)
		}
	}
	if seqs == nil {
		return nil
	}
	return withTimeout(ctx, func(ctx context.Context) error {
		proved, err := d.cfg.Ledger.Receipts.WithKey(ctx, seqs)
		for _, a := range unanswered {
			a.Search.Received = slices.Contains(proved, a.Seq)
		}
		if err != nil {
			return fmt.Errorf("look for receipts: %w", err)
		}
		return nil
	})
}

// account identifies the settings of a channel; empty when the routing does not have the channel.
func (d *Dispatcher) account(name string) string {
	routing := d.routing.Load()
	if at := routing.Channel(name); at >= 0 {
		return routing.Channels[at].Account
	}
	return ""
}

// accountAt is the account that a channel had at a time; empty when it may have been another one
// than now. Then the provider is neither asked about a submission of that time, nor is it repeated.
func (d *Dispatcher) accountAt(name string, at time.Time) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if since, known := d.since[name]; !known || at.Before(since) {
		return ""
	}
	return d.account(name)
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

// awaits is how long receipts of a channel are expected now. When this process does not know the
// provider's capabilities, it assumes that receipts may come, for the time that the routing says,
// or the default when the routing no longer has the channel.
func (d *Dispatcher) awaits(name string) time.Duration {
	if can, known := d.capabilities(name); known && !can.Receipts {
		return 0
	}
	routing := d.routing.Load()
	if at := routing.Channel(name); at >= 0 {
		return routing.Channels[at].AwaitReceipts
	}
	return ledger.UnsaidAwait
}

// capabilities returns what a channel's provider offers; known is false when this process has no
// such channel or cannot use its settings.
func (d *Dispatcher) capabilities(name string) (can provider.Capabilities, known bool) {
	if capable, ok := d.channel(name).(provider.Capable); ok {
		return capable.Capabilities(), true
	}
	return provider.Capabilities{}, false
}
