package kafka

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

// Outbox passes notices, in order, to the function send; see ledger.Outbox. Notices of a call whose
// send fails are passed again. Inbound messages come from PublishInbound.
type Outbox interface {
	Publish(ctx context.Context, limit int, send sendFunc) (int, error)
	PublishInbound(ctx context.Context, limit int, send sendFunc) (int, error)
}

// sendFunc publishes notices and returns nil once all are acknowledged.
type sendFunc = func(context.Context, []ledger.Notice) error

var _ Outbox = (*ledger.Outbox)(nil)

// PublisherConfig is what a Publisher needs.
type PublisherConfig struct {
	Client       []kgo.Opt // reaches the brokers
	Compression  string    // see function Compression
	Outbox       Outbox
	StatusTopic  string
	DeadTopic    string
	InboundTopic string
	Log          zerolog.Logger
	// Outages gets reports when Kafka or a topic cannot be written to; nil sends them to Log.
	Outages *outage.Log
	// Trouble is called when the outbox cannot be read; nil logs to Log. It must not block.
	Trouble func(where string, err error)
}

// Validate reports the first field that is missing.
func (c *PublisherConfig) Validate() error {
	switch {
	case c.Outbox == nil:
		return errors.New("publisher: Outbox is required")
	case c.StatusTopic == "" || c.DeadTopic == "" || c.InboundTopic == "":
		return errors.New("publisher: StatusTopic, DeadTopic and InboundTopic are required")
	}
	return nil
}

// Timing of the loop: how often an idle publisher checks an outbox, and the pauses after failures.
const (
	idlePause    = 25 * time.Millisecond
	inboundPause = 500 * time.Millisecond // inbound messages are less urgent than status events
	flowPause    = 125 * time.Millisecond // while there are some: larger rounds, fewer round trips
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	roundSize    = 5000 // notices in one round, approximately
	// inboundRoundSize is smaller: the messages of one subscriber are sent one after the other, and a
	// subscriber who sends without end must not delay the others for long.
	inboundRoundSize = 200
)

// Publisher moves notices from the outboxes to Kafka: at least once, and in order for each key,
// except on the topic of dead letters. The ledger ensures that one process publishes at a time.
type Publisher struct {
	cfg     PublisherConfig
	notices flow // status events and dead letters
	inbound flow // messages of subscribers
}

// flow is one outbox with its Kafka client. Each has a client of its own, so that neither waits for
// a topic of the other.
type flow struct {
	what    string // name of the notices, for log sentences
	topics  string
	client  *kgo.Client // owned by run
	publish func(ctx context.Context, limit int, send sendFunc) (int, error)
	most    int           // notices in one round, approximately
	idle    time.Duration // pause between two checks of an empty outbox
	away    string        // the part of Kafka at which the latest round failed; empty when it did not
}

// NewPublisher returns a Publisher that has not touched the network yet. Run must be called: it
// closes the clients.
func NewPublisher(cfg PublisherConfig) (*Publisher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Outages == nil {
		cfg.Outages = outage.NewLog(cfg.Log)
	}
	if cfg.Trouble == nil {
		cfg.Trouble = func(where string, err error) {
			cfg.Outages.Fault(outage.Report{
				What: where, Reporter: where, Err: err, Sentence: "trying again",
			})
		}
	}
	p := &Publisher{
		cfg: cfg,
		notices: flow{
			what:    "status events and dead letters",
			topics:  cfg.StatusTopic + " or " + cfg.DeadTopic,
			publish: cfg.Outbox.Publish, most: roundSize, idle: idlePause,
		},
		inbound: flow{
			what: "inbound messages", topics: cfg.InboundTopic,
			publish: cfg.Outbox.PublishInbound, most: inboundRoundSize, idle: inboundPause,
		},
	}
	for _, f := range []*flow{&p.notices, &p.inbound} {
		if err := p.connect(f); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Run publishes until ctx ends. It reports and waits for a broker or a database that is away;
// neither delays its return.
func (p *Publisher) Run(ctx context.Context) error {
	var flows sync.WaitGroup
	for _, f := range []*flow{&p.notices, &p.inbound} {
		flows.Go(func() {
			defer func() { f.client.Close() }() // run may replace the client
			p.run(ctx, f)
		})
	}
	flows.Wait()
	return nil
}

// run publishes one outbox.
func (p *Publisher) run(ctx context.Context, f *flow) {
	backoff := firstPause
	for ctx.Err() == nil {
		n, err := p.round(ctx, f)
		pause := time.Duration(0)
		switch {
		case err != nil:
			pause, backoff = backoff, min(2*backoff, longestPause)
		case n == 0:
			pause, backoff = f.idle, firstPause
		case n < f.most:
			pause, backoff = flowPause, firstPause
		default:
			backoff = firstPause
		}
		ledger.Pause(ctx, pause)
	}
}

// round publishes what is in the outbox, reports failures, and returns how many notices were
// published.
func (p *Publisher) round(ctx context.Context, f *flow) (int, error) {
	var refused error // by Kafka
	n, err := f.publish(ctx, f.most, func(ctx context.Context, notices []ledger.Notice) error {
		refused = p.send(ctx, f, notices)
		return refused
	})
	if refused == nil && n > 0 {
		p.works(f)
	}
	if err != nil && ctx.Err() == nil {
		p.report(f, refused, err)
		p.reconnect(f, err)
	}
	return n, err
}
