// Package app puts the parts of one dispatcher process together: start order, wiring,
// reload of the routing, and an ordered stop with a deadline.
//
// It decides nothing about messages. The commands run, demo and bench start it.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/console"
	"dispatcher/cmd/dispatcher/internal/consume"
	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/cmd/dispatcher/internal/outage"
	"dispatcher/cmd/dispatcher/internal/receive"
	"dispatcher/cmd/dispatcher/internal/scoring"
	"dispatcher/cmd/dispatcher/internal/steer"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/ledger/migrations"
	"dispatcher/provider/breaker"
	"dispatcher/provider/smpp/smpptest"
	"dispatcher/selector"
)

// Options say how a process is to run. Settings must have been validated.
type Options struct {
	Settings config.Settings
	// Keys are those of the key file: the first makes the draws, the others serve messages
	// that were drawn under them.
	Keys []selector.Key
	// Routing is applied as version 1 when the database has none; nil makes that an error.
	Routing func() (name string, document []byte, err error)
	Log     zerolog.Logger
	Version string
	// OnSubmit hears of every submit that a sandbox carrier reads; may be nil.
	OnSubmit func(channel string, s smpptest.Submit)
	// SteerEvery is how often ramps and health are looked at; 0 is the default.
	SteerEvery time.Duration
	// Sandbox is how sandbox carriers behave; nil answers as a quick carrier does.
	Sandbox *smpptest.Behaviour
}

// App is a running process.
type App struct {
	opts      Options
	log       zerolog.Logger
	outages   *outage.Log
	database  *outage.Probe // looks at PostgreSQL when something failed on it
	readiness readiness
	ledger    *ledger.Ledger
	identity  ledger.Identity
	begin     chan struct{} // closed when this process may take messages
	dispatch  *dispatch.Dispatcher
	admin     *console.Server
	webhooks  *receive.Webhooks
	registry  *prometheus.Registry
	reloader  *reloader
	stopper   stopper

	background context.Context // ended at the beginning of Stop
	cancel     context.CancelFunc
	work       sync.WaitGroup
	failed     chan error // gets the first error that must end the process
	once       sync.Once
	stopErr    error
}

// Start brings a process up: admin server, database, routing, channels, pipeline, publisher,
// consumer. It waits for a database that is away, telling the log why, until ctx ends. On
// an error nothing is left running.
func Start(ctx context.Context, opts Options) (*App, error) {
	a := &App{opts: opts, log: opts.Log, registry: prometheus.NewRegistry(), outages: outage.NewLog(opts.Log), begin: make(chan struct{}), failed: make(chan error, 1)}
	a.readiness.settings, a.readiness.outages, a.readiness.begin = &a.opts.Settings, a.outages, a.begin
	a.background, a.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := a.start(ctx); err != nil {
		return nil, errors.Join(err, a.Stop())
	}
	return a, nil
}

func (a *App) start(ctx context.Context) error {
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	// Registered first, so that it ends last: until then it shows how the rest ends.
	a.stopper.add("admin server", a.stopAdmin)
	if err := a.startAdmin(ctx); err != nil {
		return err // a taken port is found out before the first message is read
	}
	if err := a.openLedger(ctx); err != nil {
		return err
	}
	if err := a.startPublisher(); err != nil {
		return err
	}
	if err := a.openRouting(ctx); err != nil {
		return err
	}
	a.own("pause after crashes", a.pauseAfterCrashes)
	if err := a.startConsumer(); err != nil {
		return err
	}
	a.log.Info().Str("url", a.admin.URL()).Int64("instance", a.ledger.Instance()).Str("version", a.opts.Version).Msg("dispatcher is running")
	return nil
}

// Wait blocks until ctx ends (nil) or a part fails for good.
func (a *App) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.failed:
		return err
	}
}

// Stop ends everything in order, at most within the shutdown timeout: intake first,
// then what is under way, then the outbox, then the database. It is idempotent.
func (a *App) Stop() error {
	a.once.Do(func() {
		a.stopErr = a.stopper.stop(a.opts.Settings.ShutdownTimeout)
		a.cancel()
		a.work.Wait()
	})
	return a.stopErr
}

// URL is where the admin server listens.
func (a *App) URL() string { return a.admin.URL() }

// Webhooks is where providers can call this process.
func (a *App) Webhooks() string { return a.webhooks.URL() }

// Ledger gives commands access to the figures.
func (a *App) Ledger() *ledger.Ledger { return a.ledger }

// Registry holds the process's metrics.
func (a *App) Registry() *prometheus.Registry { return a.registry }

// firstPause and longestPause bound the pauses between tries to reach the database.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
)

// openLedger migrates and connects. A database that is away is waited for; a wrong
// password or an unusable URL is an error.
func (a *App) openLedger(ctx context.Context) error {
	s := &a.opts.Settings
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	err = a.withRetry(ctx, func() error { return migrations.Migrate(ctx, s.PostgresURL) })
	if err != nil {
		return fmt.Errorf("database schema: %w", err)
	}
	a.ledger, err = ledger.Connect(ctx, ledger.Config{
		URL: s.PostgresURL, MaxConns: s.PostgresMaxConns, Region: s.Region, Host: host, Version: a.opts.Version,
		Tracer: newRoundTrips(a.registry),
	})
	if err != nil {
		return err
	}
	a.stopper.add("database", func(ctx context.Context) error {
		defer a.ledger.Close()
		return a.ledger.Leave(ctx)
	})
	err = a.withRetry(ctx, func() error { return a.ledger.Register(ctx) })
	if err != nil {
		return err
	}
	err = a.withRetry(ctx, func() (err error) {
		a.identity, err = a.ledger.TakeIdentity(ctx)
		return err
	})
	if err != nil {
		return err
	}
	a.readiness.ping.Store(new(a.ledger.Ping))
	a.watchDatabase()
	return a.withRetry(ctx, func() error { return a.warnOfDurability(ctx) })
}

// withRetry repeats an operation of the database for as long as its error says that waiting may help.
func (a *App) withRetry(ctx context.Context, try func() error) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := try()
		if err == nil || !ledger.Unavailable(err) || ctx.Err() != nil {
			a.outages.Up(postgres, "start")
			return err
		}
		a.outages.Down(outage.Report{
			What: postgres, Reporter: "start", Err: err,
			Sentence: "PostgreSQL (DISPATCHER_POSTGRES_URL) cannot be used yet, trying again: " + PostgresTrouble(&a.opts.Settings, err).Error(),
		})
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// openRouting loads the current routing, applies the first one if there is none,
// connects its channels and starts the pipeline.
func (a *App) openRouting(ctx context.Context) error {
	metrics := dispatch.NewMetrics(a.registry)
	breakers := newBreakerMetrics(a.registry)
	sandbox := &carriers{behaviour: sandboxBehaviour(), onSubmit: a.opts.OnSubmit}
	if a.opts.Sandbox != nil {
		sandbox.behaviour = *a.opts.Sandbox
	}
	a.stopper.add("sandbox carriers", func(context.Context) error { sandbox.close(); return nil })
	desk, err := a.startReceipts(a.trouble)
	if err != nil {
		return err
	}
	s := &a.opts.Settings
	a.reloader = &reloader{
		ledger: a.ledger, log: a.log, report: a.trouble, first: a.opts.Routing,
		connections: connections{connector: connector{
			secrets: s.Secrets(), log: a.log, outages: a.outages, breaker: breakers.set, sandbox: sandbox, receipt: desk.Take, proof: desk.Keep,
			callback: a.callback, sendTimeout: s.SendTimeout,
		}},
	}
	intake, err := a.startInbound(a.reloader.directory.Load, a.trouble)
	if err != nil {
		return err
	}
	a.reloader.connections.connector.inbound = intake.Take
	if err := a.openWebhooks(ctx, &a.reloader.hearers, booker{receipts: desk, inbound: intake}); err != nil {
		return err
	}
	scorer, err := scoring.New(scoring.Config{Registry: a.registry})
	if err != nil {
		return err
	}
	a.stopper.add("scoring functions", func(context.Context) error { scorer.Close(); return nil })
	a.dispatch, err = dispatch.New(dispatch.Config{
		Ledger: a.ledger, Keys: a.opts.Keys, Scorer: scorer, Reload: a.reloader.reload,
		MaxUnsettled: s.MaxUnsettled, SendTimeout: s.SendTimeout, DeadAfter: s.DeadAfter,
		Region: s.Region, StateInterval: s.StateInterval, WindowRetention: s.WindowRetention,
		Metrics: metrics, Trouble: a.trouble, Begin: a.begin,
	})
	if err != nil {
		return err
	}
	a.reloader.apply = a.dispatch.Apply
	a.stopper.add("pipeline", a.dispatch.Stop)
	if err := a.dispatch.Beat(ctx); err != nil {
		return err
	}
	if err := a.reloader.begin(ctx); err != nil {
		return err
	}
	a.readiness.reloader.Store(a.reloader)
	a.readiness.ready.Store(new(a.dispatch.Ready))
	a.serveWebhooks()
	a.own("due rows", func(ctx context.Context) error { a.dispatch.Run(ctx); return nil })
	a.own("routing watch", func(ctx context.Context) error { a.reloader.watch(ctx); return nil })
	a.own("channel mending", func(ctx context.Context) error { a.reloader.mend(ctx); return nil })
	return a.startSteer(a.trouble)
}

// startSteer lets ramps and effective weights move. It needs nothing but the database, and is
// stopped before the pipeline: no weight moves under a process that is leaving.
func (a *App) startSteer(trouble func(where string, err error)) error {
	s, err := steer.New(steer.Config{
		Ledger: a.ledger, NewRouting: NewRouting, Every: cmp.Or(a.opts.SteerEvery, steer.DefaultEvery), SendTimeout: a.opts.Settings.SendTimeout,
		Registry: a.registry, Log: a.log, Trouble: trouble,
	})
	if err != nil {
		return err
	}
	a.own("steering", func(ctx context.Context) error { s.Run(ctx); return nil })
	return nil
}

// own runs a part in the background. Its step in the stop order ends it and waits for it.
func (a *App) own(name string, run func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(a.background)
	done := make(chan struct{})
	a.work.Go(func() {
		defer close(done)
		if err := run(ctx); err != nil && ctx.Err() == nil {
			select {
			case a.failed <- fmt.Errorf("%s: %w", name, err):
			default:
			}
		}
	})
	a.stopper.add(name, func(stop context.Context) error {
		cancel()
		select {
		case <-done:
			return nil
		case <-stop.Done():
			return stop.Err()
		}
	})
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
	var lanes []consume.Lane
	for _, lane := range a.reloader.lanes() {
		lanes = append(lanes, consume.Lane{Name: lane.Name, Topics: lane.Topics})
	}
	c, err := consume.New(consume.Config{
		Client: client, Group: s.KafkaGroup, ClientID: "dispatcher", Instance: a.memberName(), Lanes: lanes, AllowUnknown: s.AllowUnknownFields,
		Batch: min(s.Batch, a.dispatch.Batch()), Handle: a.dispatch.Handle, Paused: a.dispatch.Paused, Log: a.log, Outages: a.outages,
		Hooks: newKafkaMetrics(a.registry).hooks, Rewrite: region.Rewrite,
	})
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

func (a *App) startAdmin(ctx context.Context) error {
	var err error
	a.admin, err = console.Listen(ctx, console.Config{
		Address: a.opts.Settings.Listen, Registry: a.registry, Ready: a.readiness.checks, Version: a.opts.Version,
	})
	if err != nil {
		return err
	}
	a.log.Info().Str("url", a.admin.URL()).Msg("admin server is listening")
	a.own("readiness", func(ctx context.Context) error { a.readiness.run(ctx); return nil })
	return nil
}

// adminPatience bounds the end of the admin server, whatever it is asked for at that moment.
const adminPatience = time.Second

func (a *App) stopAdmin(ctx context.Context) error {
	if a.admin == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, adminPatience)
	defer cancel()
	return a.admin.Close(ctx)
}

// breakerMetrics shows the state of each channel's breaker: 0 closed, 1 half-open, 2 open.
type breakerMetrics struct{ state *prometheus.GaugeVec }

func newBreakerMetrics(registry prometheus.Registerer) *breakerMetrics {
	m := &breakerMetrics{prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "dispatcher", Subsystem: "provider", Name: "breaker_state",
		Help: "State of a channel's breaker: 0 closed, 1 half-open, 2 open.",
	}, []string{"channel"})}
	registry.MustRegister(m.state)
	return m
}

func (m *breakerMetrics) set(channel string, to breaker.State) {
	m.state.WithLabelValues(channel).Set(float64(to))
}
