// Package publish is the way out to Kafka: it takes notices from the ledger's outbox
// and produces them to the status topic, the topic of dead letters and that of inbound messages, at
// least once, and in order for each key but on the topic of dead letters.
//
// What a notice says is decided where the state changes, in packages dispatch and inbound; that only
// one process publishes at a time is the ledger's work.
package publish

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/outage"
	"dispatcher/ledger"
)

// Outbox hands notices over in order; see ledger.Ledger.Publish. The notices of a call
// whose send fails are handed over again. Messages of subscribers come out of PublishInbound.
type Outbox interface {
	Publish(ctx context.Context, limit int, send func(context.Context, []ledger.Notice) error) (int, error)
	PublishInbound(ctx context.Context, limit int, send func(context.Context, []ledger.Notice) error) (int, error)
}

var _ Outbox = (*ledger.Ledger)(nil)

// Config is what a Publisher needs.
type Config struct {
	Client       []kgo.Opt // reaches the brokers
	Compression  string    // see function Compression
	Outbox       Outbox
	StatusTopic  string
	DeadTopic    string
	InboundTopic string
	Log          zerolog.Logger
	// Outages is told when Kafka or a topic cannot be written to; nil tells Log.
	Outages *outage.Log
	// Trouble is told when the outbox cannot be read; nil tells Log. It must not block.
	Trouble func(where string, err error)
}

// Validate reports the first field that is missing.
func (c *Config) Validate() error {
	switch {
	case c.Outbox == nil:
		return errors.New("publish: Outbox is required")
	case c.StatusTopic == "" || c.DeadTopic == "" || c.InboundTopic == "":
		return errors.New("publish: StatusTopic, DeadTopic and InboundTopic are required")
	}
	return nil
}

// Timing of the loop. An idle publisher looks as often as a reader of the status topic
// may be kept waiting; one that fails backs off.
const (
	idlePause    = 25 * time.Millisecond
	idleHeard    = 500 * time.Millisecond // nobody waits for a message of a subscriber that closely
	flowPause    = 125 * time.Millisecond // while there is something: larger rounds, fewer round trips
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	batch        = 5000 // notices in one round, more or less
	// batchHeard is that for messages of subscribers. Those of one number leave one after the other, and one that sends without end
	// must not hold the others up for long.
	batchHeard = 200
)

// Publisher moves notices from the outbox to Kafka.
type Publisher struct {
	cfg     Config
	notices flow // status events and dead letters
	heard   flow // messages of subscribers
}

// flow is one way out. Each has a client of its own, so that neither waits for what the other cannot get rid of.
type flow struct {
	what    string // that flows here, in sentences
	topics  string
	client  *kgo.Client // owned by run
	publish func(ctx context.Context, limit int, send func(context.Context, []ledger.Notice) error) (int, error)
	most    int           // notices in one round, more or less
	idle    time.Duration // between two looks when there was nothing
	away    string        // what of Kafka keeps the latest round back; empty when nothing does
}

// New returns a Publisher that has not touched the network yet. Run must be called: it
// closes the client.
func New(cfg Config) (*Publisher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Outages == nil {
		cfg.Outages = outage.NewLog(cfg.Log)
	}
	if cfg.Trouble == nil {
		cfg.Trouble = func(where string, err error) {
			cfg.Outages.Fault(outage.Report{What: where, Reporter: where, Err: err, Sentence: "trying again"})
		}
	}
	p := &Publisher{
		cfg: cfg,
		notices: flow{
			what: "status events and dead letters", topics: cfg.StatusTopic + " or " + cfg.DeadTopic,
			publish: cfg.Outbox.Publish, most: batch, idle: idlePause,
		},
		heard: flow{what: "inbound messages", topics: cfg.InboundTopic, publish: cfg.Outbox.PublishInbound, most: batchHeard, idle: idleHeard},
	}
	for _, f := range []*flow{&p.notices, &p.heard} {
		if err := p.connect(f); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Run publishes until ctx ends. A broker or a database that is away is reported and waited for;
// neither delays the return.
func (p *Publisher) Run(ctx context.Context) error {
	var flows sync.WaitGroup
	for _, f := range []*flow{&p.notices, &p.heard} {
		flows.Go(func() {
			defer func() { f.client.Close() }() // the one that it has then
			p.run(ctx, f)
		})
	}
	flows.Wait()
	return nil
}

// run publishes what flows one way.
func (p *Publisher) run(ctx context.Context, f *flow) {
	var refused error // by Kafka, in the round that goes on
	send := func(ctx context.Context, notices []ledger.Notice) error {
		refused = p.send(ctx, f, notices)
		return refused
	}
	pause := firstPause
	for ctx.Err() == nil {
		refused = nil
		n, err := f.publish(ctx, f.most, send)
		if refused == nil && n > 0 {
			p.works(f)
		}
		switch {
		case err != nil && ctx.Err() == nil:
			p.report(f, refused, err)
			p.mend(f, err)
			sleep(ctx, pause)
			pause = min(2*pause, longestPause)
		case n == 0:
			sleep(ctx, f.idle)
			pause = firstPause
		case n < f.most:
			sleep(ctx, flowPause)
			pause = firstPause
		default:
			pause = firstPause
		}
	}
}

func sleep(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
