package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/console"
	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/ledger/migrations"
	"dispatcher/provider"
	"dispatcher/provider/smpp"
)

// closeTimeout bounds the close of the channels.
const closeTimeout = 5 * time.Second

// ServeFloor runs the floor over the same settings and routing document as the
// dispatcher, until ctx ends.
func ServeFloor(ctx context.Context, s config.Settings, log zerolog.Logger) (err error) {
	doc, err := readRouting(s.RoutingFile)
	if err != nil {
		return err
	}
	if err := migrations.Migrate(ctx, s.PostgresURL); err != nil {
		return err
	}
	l, err := ledger.Connect(ctx,
		ledger.Config{URL: s.PostgresURL, MaxConns: s.PostgresMaxConns, Region: s.Region})
	if err != nil {
		return err
	}
	defer l.Close()
	pool, err := pgxpool.New(ctx, s.PostgresURL)
	if err != nil {
		return err
	}
	defer pool.Close()
	names, channels, err := connect(doc)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(channels)) }()
	admin, err := console.Listen(ctx,
		console.Config{Address: s.Listen, Registry: prometheus.NewRegistry()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, admin.Close(context.WithoutCancel(ctx))) }()
	log.Info().Str("url", admin.URL()).Msg("floor is running")
	return serve(ctx, &s, doc, l, NewFloor(pool, names, channels, s.MaxUnsettled), log)
}

func readRouting(path string) (*config.Routing, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return config.ParseRouting(path, raw)
}

// connect opens every channel of the document and waits until it is bound.
func connect(doc *config.Routing) (names []string, channels []provider.Channel, err error) {
	for _, c := range doc.Channels {
		cfg, err := smpp.ParseSettings(c.Settings, os.ReadFile)
		if err != nil {
			return nil, nil, errors.Join(err, closeAll(channels))
		}
		client, err := smpp.New(cfg)
		if err != nil {
			return nil, nil, errors.Join(err, closeAll(channels))
		}
		names, channels = append(names, c.Name), append(channels, client)
	}
	for _, c := range channels {
		for ok := false; !ok; ok, _ = c.Ready() {
			time.Sleep(10 * time.Millisecond)
		}
	}
	return names, channels, nil
}

func closeAll(channels []provider.Channel) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var errs []error
	for _, c := range channels {
		errs = append(errs, c.Close(ctx))
	}
	return errors.Join(errs...)
}

// serve reads the document's lanes and publishes status events, like the dispatcher.
func serve(
	ctx context.Context, s *config.Settings, doc *config.Routing, l *ledger.Ledger, floor *Floor,
	log zerolog.Logger,
) error {
	client, err := app.Connection(s).Options()
	if err != nil {
		return err
	}
	lanes := make([]kafka.Lane, 0, len(doc.Lanes))
	for _, lane := range doc.Lanes {
		lanes = append(lanes, kafka.Lane{Name: lane.Name, Topics: lane.Topics})
	}
	consumer, err := kafka.NewConsumer(kafka.ConsumerConfig{
		Client: client, Group: s.KafkaGroup, ClientID: "floor", Lanes: lanes,
		Batch:  min(s.Batch, s.MaxUnsettled),
		Handle: floor.Handle, Paused: func(string) bool { return false }, Log: log,
	})
	if err != nil {
		return err
	}
	publisher, err := kafka.NewPublisher(kafka.PublisherConfig{
		Client: client, Compression: s.KafkaCompression, Outbox: l.Outbox,
		StatusTopic: s.StatusTopic, DeadTopic: s.DeadTopic, InboundTopic: s.InboundTopic, Log: log,
	})
	if err != nil {
		return err
	}
	publishing, stop := context.WithCancel(ctx)
	published := make(chan error, 1)
	go func() { published <- publisher.Run(publishing) }()
	err = errors.Join(consumer.Run(ctx), floor.Close())
	stop()
	err = errors.Join(err, <-published)
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	return nil
}
