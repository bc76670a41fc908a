package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/console"
	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/config"
	"dispatcher/provider"
	"dispatcher/provider/smpp"
)

// closeTimeout bounds the close of the channels.
const closeTimeout = 5 * time.Second

//go:embed floor.sql
var floorSchema string

const dropFloor = `drop schema floor cascade`

// ServeFloor runs the floor with the settings and the routing document of the dispatcher until ctx
// ends. It creates the schema floor in the database and drops it at the end.
func ServeFloor(ctx context.Context, s config.Settings, log zerolog.Logger) (err error) {
	doc, err := readRouting(s.RoutingFile)
	if err != nil {
		return err
	}
	pool, err := openFloor(ctx, s.PostgresURL, awaitsReceipts(doc))
	if err != nil {
		return err
	}
	defer pool.Close()
	defer func() {
		_, dropErr := pool.Exec(context.WithoutCancel(ctx), dropFloor)
		err = errors.Join(err, dropErr)
	}()
	running, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	floor := NewFloor(pool, fail)
	names, channels, err := connect(doc, floor)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll(channels)) }()
	if err := floor.Use(ctx, names, channels); err != nil {
		return err
	}
	admin, err := console.Listen(ctx,
		console.Config{Address: s.Listen, Registry: prometheus.NewRegistry()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, admin.Close(context.WithoutCancel(ctx))) }()
	log.Info().Str("url", admin.URL()).Msg("floor is running")
	err = serve(running, &s, doc, floor, log)
	if ctx.Err() == nil { // it ended without being asked to
		err = errors.Join(err, context.Cause(running))
	}
	return err
}

func awaitsReceipts(doc *config.Routing) bool {
	return slices.ContainsFunc(doc.Channels, func(c config.Channel) bool { return !c.Receipts.None })
}

// openFloor connects and creates the schema; receipts says whether any will come. Query plans are
// generic and use indexes from the start: plans for empty tables would read the growing tables in
// full.
func openFloor(ctx context.Context, url string, receipts bool) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = floorBatches + 2 // one more each for receipts and status events
	maps.Copy(cfg.ConnConfig.RuntimeParams, map[string]string{
		"enable_seqscan": "off", "jit": "off", "plan_cache_mode": "force_generic_plan",
	})
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	schema := floorSchema
	if receipts {
		schema += indexOutcomes
	}
	if _, err := pool.Exec(ctx, schema); err != nil {
		pool.Close()
		return nil, fmt.Errorf("floor: make the schema: %w", err)
	}
	return pool, nil
}

func readRouting(path string) (*config.Routing, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return config.ParseRouting(path, raw)
}

// connect opens every channel of the document and waits until it is bound. Where receipts are
// expected, the floor gets them.
func connect(
	doc *config.Routing, floor *Floor,
) (names []string, channels []provider.Channel, err error) {
	for _, c := range doc.Channels {
		cfg, err := smpp.ParseSettings(c.Settings, os.ReadFile)
		if err != nil {
			return nil, nil, errors.Join(err, closeAll(channels))
		}
		if !c.Receipts.None {
			cfg.OnReceipt = func(r provider.Receipt, answer func(taken bool)) {
				floor.Receive(c.Name, r, answer)
			}
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

// serve reads the document's lanes, stores receipts and publishes status events, like the
// dispatcher.
func serve(
	ctx context.Context, s *config.Settings, doc *config.Routing, floor *Floor, log zerolog.Logger,
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
		Batch:  floorBatches * floorBatch,
		Handle: floor.Handle, Paused: func(string) bool { return false }, Log: log,
	})
	if err != nil {
		return err
	}
	publisher, err := kafka.NewPublisher(kafka.PublisherConfig{
		Client: client, Compression: s.KafkaCompression, Outbox: &floorOutbox{pool: floor.pool},
		StatusTopic: s.StatusTopic, DeadTopic: s.DeadTopic, InboundTopic: s.InboundTopic, Log: log,
	})
	if err != nil {
		return err
	}
	others, stop := context.WithCancel(ctx)
	var loops sync.WaitGroup
	published := make(chan error, 1)
	loops.Go(func() { published <- publisher.Run(others) })
	loops.Go(func() { floor.StoreReceipts(others) })
	err = consumer.Run(ctx)
	floor.Close()
	stop()
	loops.Wait()
	if err = errors.Join(err, <-published); err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	return nil
}
