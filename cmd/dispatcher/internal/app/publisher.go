package app

import (
	"context"
	"time"

	"dispatcher/cmd/dispatcher/internal/publish"
)

// startPublisher begins to empty the outbox. It is started before the pipeline and so
// stopped after it: the last outcomes get their chance to leave. What does not leave stays
// in the outbox for another instance.
func (a *App) startPublisher() error {
	s := &a.opts.Settings
	client, err := a.kafkaOptions()
	if err != nil {
		return err
	}
	p, err := publish.New(publish.Config{
		Client: client, Compression: s.KafkaCompression, Outbox: a.ledger,
		StatusTopic: s.StatusTopic, DeadTopic: s.DeadTopic, InboundTopic: s.InboundTopic,
		Outages: a.outages, Trouble: a.trouble,
	})
	if err != nil {
		return err
	}
	a.own("publisher", p.Run)
	a.stopper.add("outbox", a.awaitOutbox)
	return nil
}

// outboxPatience is how long a stop waits for the last events to leave.
const outboxPatience = time.Second

// awaitOutbox waits until the outbox is empty: the process that stops last is the only
// one left to tell how its messages ended. What does not leave in time is no loss.
func (a *App) awaitOutbox(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, outboxPatience)
	defer cancel()
	for {
		waiting, _, err := a.ledger.Unpublished(ctx)
		if err != nil || waiting == 0 {
			return nil // with the database away there is nothing to wait for
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil
		}
	}
}
