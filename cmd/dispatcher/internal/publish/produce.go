package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/outage"
	"dispatcher/ledger"
)

const (
	// deliveryTimeout is when a round is given up that no broker takes, so that the
	// trouble is told. A record that may have been written is not given up: to send it
	// again through another sequence could put it behind its successor.
	deliveryTimeout = 10 * time.Second
	// tellAfter is when a round that waits for acknowledgements is told.
	tellAfter = 15 * time.Second
)

// send produces the notices, in order for each key, and returns nil once every one is acknowledged. After
// ctx has ended it does not wait any longer.
//
// A batch that is refused must not be overtaken by its successor: the client keeps the order when it tries again by itself, but
// goes on with the next batch after an answer that it takes for final. And what is flushed together may leave in pieces: while
// the client asks for the partitions of a topic, or when it is still busy with the flush before. So a wave is acknowledged before
// the next one begins, and within a wave nothing has an order. A wave that is too large for one batch leaves in several, one
// after the other, which bounds what has to be acknowledged within deliveryTimeout.
func (p *Publisher) send(ctx context.Context, f *flow, notices []ledger.Notice) error {
	for _, wave := range waves(notices) {
		records := make([]*kgo.Record, len(wave))
		for i, n := range wave {
			records[i] = p.record(n)
		}
		for len(records) > 0 {
			n := fit(records)
			if err := p.produce(ctx, f, records[:n]); err != nil {
				return err
			}
			records = records[n:]
		}
	}
	return nil
}

// produce sends records that fit one batch and returns the first failure among them, or one that has to be mended.
func (p *Publisher) produce(ctx context.Context, f *flow, records []*kgo.Record) error {
	slow := time.AfterFunc(tellAfter, func() {
		p.cfg.Outages.Down(outage.Report{
			What: kafka, Reporter: f.what, Err: context.DeadlineExceeded,
			Sentence: "Kafka does not acknowledge " + f.what + "; they wait in the outbox: check that its brokers run and have enough replicas in sync",
		})
	})
	defer slow.Stop()
	answers := make(chan error, len(records)) // one per record, nil when acknowledged
	for _, record := range records {
		f.client.Produce(ctx, record, func(r *kgo.Record, err error) {
			if err != nil {
				err = fmt.Errorf("produce to %s: %w", r.Topic, err)
			}
			answers <- err
		})
	}
	if err := f.client.Flush(ctx); err != nil {
		return err
	}
	var failure error
	for range records {
		if err := <-answers; err != nil && (failure == nil || errors.Is(err, kerr.UnknownTopicID)) {
			failure = err
		}
	}
	return failure
}
