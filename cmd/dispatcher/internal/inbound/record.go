package inbound

import (
	"context"
	"time"

	"dispatcher/ledger"
)

// recordAll records all queued entries, batch by batch.
func (i *Intake) recordAll(ctx context.Context) {
	for {
		batch := i.queue.next()
		if len(batch) == 0 {
			return
		}
		i.recordBatch(ctx, batch)
	}
}

// recordBatch records some entries and answers their callers. It goes on when ctx ends, because the
// outcome of a cancelled write would not be known.
func (i *Intake) recordBatch(ctx context.Context, batch []*entry) {
	err := i.withRetry(context.WithoutCancel(ctx), batch)
	if ledger.Unstorable(err) && len(batch) > 1 {
		for _, e := range batch { // one that the database cannot store must not stop the others
			i.recordBatch(ctx, []*entry{e})
		}
		return
	}
	if err != nil && !ledger.Unstorable(err) {
		i.queue.pause(time.Now().Add(awayPause))
	}
	for _, e := range batch {
		e.done <- err
	}
}

// withRetry repeats a write for up to recordTimeout while the database is unavailable. The messages
// keep their ids, so a message that was recorded although no answer came is not recorded twice.
func (i *Intake) withRetry(ctx context.Context, batch []*entry) error {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	var in []ledger.Inbound
	for _, e := range batch {
		in = append(in, e.in...)
	}
	return ledger.Repeat(ctx, firstPause, longestPause, func() error {
		err := i.try(func(react func(*ledger.Subscribed) ledger.Reaction) (ledger.InboxResult, error) {
			return i.cfg.Store.Record(ctx, in, react)
		})
		if err != nil {
			i.cfg.Trouble("inbound", err)
		}
		return err
	})
}

// try makes one write under the directory in force and counts its results.
func (i *Intake) try(
	record func(react func(*ledger.Subscribed) ledger.Reaction) (ledger.InboxResult, error),
) error {
	directory, began := i.cfg.Directory(), time.Now()
	var labels []messageLabels
	recorded, err := record(func(m *ledger.Subscribed) ledger.Reaction {
		r := directory.react(m)
		labels = append(labels, newMessageLabels(m, &r))
		return r
	})
	if err == nil {
		i.metrics.recorded(&recorded, labels, time.Since(began))
	}
	return err
}

// recordIncomplete records messages that still lack parts after partTimeout.
func (i *Intake) recordIncomplete(ctx context.Context) {
	for ctx.Err() == nil {
		abandoned := 0
		err := i.try(func(react func(*ledger.Subscribed) ledger.Reaction) (ledger.InboxResult, error) {
			ctx, cancel := context.WithTimeout(ctx, recordTimeout)
			defer cancel()
			recorded, err := i.cfg.Store.RecordIncomplete(ctx, partTimeout, maxBatch, react)
			abandoned = recorded.Abandoned
			return recorded, err
		})
		if err != nil && ctx.Err() == nil {
			i.cfg.Trouble("inbound parts", err)
		}
		if err != nil || abandoned == 0 {
			return
		}
	}
}

func (i *Intake) forget(ctx context.Context) {
	forgetting, cancel := context.WithTimeout(ctx, forgetTimeout)
	defer cancel()
	if _, err := i.cfg.Store.Forget(forgetting); err != nil && ctx.Err() == nil {
		i.cfg.Trouble("inbound memory", err)
	}
}
