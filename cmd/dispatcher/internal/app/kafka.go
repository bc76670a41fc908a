package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kprom"

	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/config"
	"dispatcher/ledger"
)

// Connection returns the settings of the connection to the brokers.
func Connection(s *config.Settings) kafka.Connection {
	c := kafka.Connection{
		Brokers: s.KafkaBrokers, Mechanism: s.KafkaSASLMechanism, User: s.KafkaSASLUser,
		Password: s.KafkaSASLPassword,
	}
	if s.KafkaTLS {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.KafkaCA}
	}
	return c
}

// kafkaOptions are the options of all clients of this process.
func (a *App) kafkaOptions() ([]kgo.Opt, error) {
	options, err := Connection(&a.opts.Settings).Options()
	return append(options, kgo.WithLogger(kafkaLog{a.log})), err
}

// kafkaMetrics are the metrics of a lane's client, with the lane as label.
func (a *App) kafkaMetrics(lane string) []kgo.Hook {
	labelled := prometheus.WrapRegistererWith(prometheus.Labels{"lane": lane}, a.registry)
	return []kgo.Hook{kprom.NewMetrics("dispatcher_kafka", kprom.Registerer(namedWell{labelled}))}
}

// namedWell drops gauges of the client whose names end like those of counters, which Prometheus
// advises against. The consumer's lag tells more than the buffered records.
type namedWell struct{ prometheus.Registerer }

// MustRegister registers the other collectors.
func (n namedWell) MustRegister(all ...prometheus.Collector) {
	n.Registerer.MustRegister(slices.DeleteFunc(all, func(c prometheus.Collector) bool {
		gauge, ok := c.(prometheus.GaugeFunc)
		return ok && strings.Contains(gauge.Desc().String(), `_records_total"`)
	})...)
}

func (a *App) startConsumer() error {
	client, err := a.kafkaOptions()
	if err != nil {
		return err
	}
	s := &a.opts.Settings
	region, err := numbers.ParseRegion(s.DefaultRegion)
	if err != nil {
		return fmt.Errorf("%s_DEFAULT_REGION %w", config.Prefix, err)
	}
	var lanes []kafka.Lane
	for _, lane := range a.reloader.lanes() {
		lanes = append(lanes, kafka.Lane{Name: lane.Name, Topics: lane.Topics})
	}
	cfg := kafka.ConsumerConfig{
		Client: client, Group: s.KafkaGroup, ClientID: "dispatcher", Instance: a.memberName(),
		Lanes: lanes, AllowUnknown: s.AllowUnknownFields,
		Rewrite: region.Rewrite, Batch: min(s.Batch, a.dispatch.Batch()),
		Handle: a.dispatch.Handle, Paused: a.dispatch.Paused,
		Log: a.log, Outages: a.outages, Hooks: a.kafkaMetrics,
	}
	a.traced(&cfg)
	c, err := kafka.NewConsumer(cfg)
	if err != nil {
		return err
	}
	a.readiness.consumer.Store(c)
	a.own("consumer", func(ctx context.Context) error {
		if !a.mayBegin(ctx) {
			return nil
		}
		return c.Run(ctx)
	})
	return nil
}

// startPublisher starts to publish the outbox. It starts before the pipeline and so stops after it,
// so that the last outcomes are published too. Events that are not published in time stay in the
// outbox for another instance.
func (a *App) startPublisher() error {
	s := &a.opts.Settings
	client, err := a.kafkaOptions()
	if err != nil {
		return err
	}
	p, err := kafka.NewPublisher(kafka.PublisherConfig{
		Client: client, Compression: s.KafkaCompression, Outbox: a.ledger.Outbox,
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

// outboxTimeout is how long a stop waits for the last events to be published.
const outboxTimeout = time.Second

// awaitOutbox waits until the outbox is empty: after the last process has stopped, no process would
// publish how its messages ended. Events that are not published in time are kept.
func (a *App) awaitOutbox(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, outboxTimeout)
	defer cancel()
	for {
		waiting, _, err := a.ledger.Outbox.Unpublished(ctx)
		if err != nil || waiting == 0 {
			return nil // without the database nothing can be published
		}
		if !ledger.Pause(ctx, 20*time.Millisecond) {
			return nil
		}
	}
}
