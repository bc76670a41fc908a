// Package demo shows the dispatcher on one machine without any set-up. It starts a private
// PostgreSQL, a Kafka in this process and three sandbox carriers, publishes messages through a real
// producer, lets the real dispatcher send them, and counts the submits at the carriers.
package demo

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/config"
	"dispatcher/ledger"
)

// Routing is the document of the demo: three sandbox carriers at 25, 15 and 60, without receipts,
// so that the demo measures only sending.
const Routing = `timezone: Europe/London
channels:
  a: {provider: sandbox, capacity: 500, price: {currency: GBP, default: "0.031"}}
  b: {provider: sandbox, capacity: 300, price: {currency: GBP, default: "0.035"}}
  c: {provider: sandbox, capacity: 1000, price: {currency: GBP, default: "0.028"}}
routes:
  - {name: default, match: {}, mode: weighted, weights: {a: 25, b: 15, c: 60}, fallback: load_ratio}
lanes:
  otp: {topics: [sms.otp], ttl: 10m, ambiguous: resend_once}
  transactional: {topics: [sms.transactional], ttl: 24h}
  bulk: {topics: [sms.bulk], ttl: 72h}
`

// RoutingWithReceipts is the first document of "run --embedded": the same carriers, which send a
// receipt for each message.
func RoutingWithReceipts() []byte {
	return []byte(
		strings.ReplaceAll(Routing, "{provider: sandbox,",
			"{provider: sandbox, receipts: {within: 1h},"),
	)
}

// weights are the configured shares of Routing.
var weights = []struct {
	channel string
	share   float64
}{{"a", 0.25}, {"b", 0.15}, {"c", 0.60}}

// Topics are those that Routing reads and those that the dispatcher writes.
func Topics(s *config.Settings) []string {
	return []string{
		"sms.otp",
		"sms.transactional",
		"sms.bulk",
		s.StatusTopic,
		s.DeadTopic,
		s.InboundTopic,
	}
}

// Config is the configuration of a demo.
type Config struct {
	Settings config.Settings
	Messages int
	// Seed determines the messages; together with the folder's draw key it determines every choice.
	Seed uint64
	// Folder keeps the data of both servers.
	Folder string
	// Ports of the private servers; 0 takes free ones.
	KafkaPort, PostgresPort int
	Log                     zerolog.Logger
	Version                 string
	// Step is called with the name of each step, Progress with the number of answered messages. Both
	// may be nil.
	Step     func(what string)
	Progress func(done int)
}

// demo is one run.
type demo struct {
	cfg     Config
	servers *embedded.Servers
	app     *app.App
	submits submitCount
	doc     *config.Routing
	began   time.Time
	before  ledger.Totals // of earlier runs with the folder
	moved   moves         // of earlier runs on the same day
}

// Run runs the demo once. When ctx ends it stops in order and returns ctx's error; messages
// accepted by then stay in the folder.
func Run(ctx context.Context, cfg Config) (result *Result, err error) {
	d := &demo{cfg: cfg, submits: submitCount{seen: map[string]int{}}}
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := d.start(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	d.step("publishing to Kafka and sending")
	if err := d.carry(ctx); err != nil {
		return nil, err
	}
	took := time.Since(began)
	totals, err := d.app.Ledger().Reports.Totals(ctx)
	if err != nil {
		return nil, err
	}
	carried, err := d.carried(ctx)
	if err != nil {
		return nil, err
	}
	return d.result(&totals, carried, took)
}

func (d *demo) step(what string) {
	if d.cfg.Step != nil {
		d.cfg.Step(what)
	}
}

func (d *demo) start(ctx context.Context) (err error) {
	d.step("starting a private PostgreSQL and Kafka")
	d.servers, err = embedded.Start(ctx, embedded.Config{
		Folder: d.cfg.Folder, KafkaPort: d.cfg.KafkaPort, PostgresPort: d.cfg.PostgresPort,
		Topics: Topics(&d.cfg.Settings),
	})
	if err != nil {
		return err
	}
	settings := d.cfg.Settings
	d.servers.Fill(&settings)
	settings.Listen, settings.ReceiptsListen, settings.PublicURL = "127.0.0.1:0", "127.0.0.1:0", ""
	d.step("starting the dispatcher and three sandbox carriers")
	d.app, err = app.Start(ctx, app.Options{
		Settings: settings, Keys: d.servers.Keys, Log: d.cfg.Log, Version: d.cfg.Version,
		OnSubmit: d.submits.add,
		Routing: func() (string, []byte, error) {
			return "the demo's routing", []byte(Routing), nil
		},
	})
	if err != nil {
		return err
	}
	if d.doc, err = config.ParseRouting("the demo's routing", []byte(Routing)); err != nil {
		return err
	}
	d.began = time.Now()
	if d.before, err = d.app.Ledger().Reports.Totals(ctx); err != nil {
		return err
	}
	d.moved, err = d.carried(ctx)
	return err
}

// stop stops the dispatcher, then its servers.
func (d *demo) stop() error {
	var errs []error
	if d.app != nil {
		errs = append(errs, d.app.Stop())
	}
	if d.servers != nil {
		errs = append(errs, d.servers.Stop())
	}
	return errors.Join(errs...)
}

// carry publishes all messages and waits until each has its outcome.
func (d *demo) carry(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	published := make(chan error, 1)
	go func() { published <- d.publish(ctx) }()
	failed := make(chan error, 1)
	go func() { failed <- d.app.Wait(ctx) }()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case err := <-published:
			if err != nil {
				return err
			}
			published = nil
		case err := <-failed:
			if err == nil {
				err = ctx.Err()
			}
			return err
		case <-ticker.C:
			done, err := d.done(ctx)
			if err != nil {
				return err
			}
			if published == nil && done {
				return nil
			}
		}
	}
}

// done reports progress and whether every message has an outcome. It queries the ledger only once
// the carriers have read every message.
func (d *demo) done(ctx context.Context) (bool, error) {
	if d.cfg.Progress != nil {
		d.cfg.Progress(min(int(d.submits.messages.Load()), d.cfg.Messages))
	}
	if int(d.submits.messages.Load()) < d.cfg.Messages {
		return false, nil
	}
	totals, err := d.app.Ledger().Reports.Totals(ctx)
	if err != nil {
		return false, err
	}
	answered := int64(0)
	for state, n := range totals.Messages {
		if state.Final() || state == ledger.Accepted {
			answered += n - d.before.Messages[state]
		}
	}
	return answered >= int64(d.cfg.Messages), nil
}
