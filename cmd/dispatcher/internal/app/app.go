// Package app connects the parts of one dispatcher process: start order, wiring, reload of the
// routing, and an ordered stop with a deadline.
//
// It decides nothing about messages. The commands run, demo and bench start it.
package app

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/console"
	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/cmd/dispatcher/internal/outage"
	"dispatcher/cmd/dispatcher/internal/pipeline"
	"dispatcher/cmd/dispatcher/internal/receive"
	"dispatcher/cmd/dispatcher/internal/tracing"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/provider/smpp/smpptest"
	"dispatcher/selector"
)

// Options configure a process. Settings must have been validated.
type Options struct {
	Settings config.Settings
	// Keys are the keys of the key file: the first makes new draws, the others serve messages that
	// were drawn under them.
	Keys []selector.Key
	// Routing returns the document to apply as version 1 when the database has none; nil makes that an
	// error.
	Routing func() (name string, document []byte, err error)
	Log     zerolog.Logger
	Version string
	// OnSubmit is called for every submit that a sandbox carrier reads; may be nil.
	OnSubmit func(channel string, s smpptest.Submit)
	// SteerEvery is the interval between checks of ramps and health; 0 is the default.
	SteerEvery time.Duration
	// ReadWebhooksEvery is the interval between reads of Settings.StatusWebhooksFile; 0 is the
	// default.
	ReadWebhooksEvery time.Duration
	// DaysClosed is called at the start and whenever this process has closed or corrected a business
	// day. If it returns again or an error, it is called once more later. It may be nil.
	DaysClosed func(ctx context.Context, l *ledger.Ledger) (again bool, err error)
	// Handler returns what the admin server serves besides metrics and health, once the database is
	// there. closing ends the streams that would keep the server from stopping. intake counts the
	// messages that the handler takes. Handler may be nil.
	Handler func(
		l *ledger.Ledger, intake *kafka.IntakeMetrics,
	) (handler http.Handler, closing func(), err error)
	// Sandbox is how sandbox carriers behave; nil is embedded.QuickCarrier.
	Sandbox *smpptest.Behaviour
	// Tracer records traces; nil is what the OTEL_* environment asks for.
	Tracer *tracing.Tracer
}

// App is a running process.
type App struct {
	opts      Options
	log       zerolog.Logger
	outages   *outage.Log
	database  *outage.Probe // checks PostgreSQL after a failure
	readiness readiness
	ledger    *ledger.Ledger
	identity  ledger.Identity
	begin     chan struct{} // closed when this process may take messages
	dispatch  *pipeline.Dispatcher
	admin     *console.Server
	handler   atomic.Pointer[http.Handler] // of Options.Handler; nil until the database is there
	closing   func()                       // ends its streams; nil until handler is set
	webhooks  *receive.Webhooks
	registry  *prometheus.Registry
	reloader  *reloader
	tracer    *tracing.Tracer // nil when no traces are asked for
	stopper   stopper

	background context.Context // ends at the beginning of Stop
	cancel     context.CancelFunc
	work       sync.WaitGroup
	failed     chan error // gets the first error that must end the process
	once       sync.Once
	stopErr    error
}

// Start starts a process: admin server, database, routing, channels, pipeline, publisher, consumer.
// It waits for a database that is away until ctx ends, and logs why. On an error nothing is left
// running.
func Start(ctx context.Context, opts Options) (*App, error) {
	a := &App{
		opts:     opts,
		log:      opts.Log,
		registry: prometheus.NewRegistry(),
		outages:  outage.NewLog(opts.Log),
		begin:    make(chan struct{}),
		failed:   make(chan error, 1),
	}
	a.readiness.settings, a.readiness.outages = &a.opts.Settings, a.outages
	a.readiness.begin = a.begin
	a.background, a.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := a.start(ctx); err != nil {
		return nil, errors.Join(err, a.Stop())
	}
	return a, nil
}

func (a *App) start(ctx context.Context) error {
	if err := a.startTraces(ctx); err != nil {
		return err
	}
	a.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newBuildInfo(a.opts.Version), newConsumerGauges(a.readiness.lanes),
		newReadyGauge(a.readiness.checks))
	// Added before all other parts but the traces, so that it still answers while they stop.
	a.stopper.add("admin server", a.stopAdmin)
	if err := a.startAdmin(ctx); err != nil {
		return err // a port in use is noticed before the first message is read
	}
	if err := a.openLedger(ctx); err != nil {
		return err
	}
	if err := a.startHandler(); err != nil {
		return err
	}
	a.keepDays()
	a.checkInvariants()
	if err := a.seal(); err != nil {
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
	a.own("pending cancellations", a.carryOutPending)
	if err := a.startControl(); err != nil {
		return err
	}
	if err := a.startStatusWebhooks(); err != nil {
		return err
	}
	a.log.Info().
		Str("url", a.admin.URL()).
		Int64("instance", a.ledger.Instances.ID()).
		Str("version", a.opts.Version).
		Msg("dispatcher is running")
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

// Stop stops everything in order, within the shutdown timeout: intake first, then the attempts in
// flight, then the outbox, then the database. It is idempotent.
func (a *App) Stop() error {
	a.once.Do(func() {
		a.stopErr = a.stopper.stop(a.opts.Settings.ShutdownTimeout)
		a.cancel()
		a.work.Wait()
	})
	return a.stopErr
}

// URL is the address of the admin server.
func (a *App) URL() string { return a.admin.URL() }

// Ledger returns the ledger, so that commands can read figures.
func (a *App) Ledger() *ledger.Ledger { return a.ledger }

func (a *App) startAdmin(ctx context.Context) error {
	var err error
	a.admin, err = console.Listen(ctx, console.Config{
		Address: a.opts.Settings.Listen, Registry: a.registry, Ready: a.readiness.checks,
		Version: a.opts.Version, Handler: a.late(),
	})
	if err != nil {
		return err
	}
	a.log.Info().Str("url", a.admin.URL()).Msg("admin server is listening")
	a.ownLoop("readiness", a.readiness.run)
	return nil
}

// late returns a function that returns the handler once it exists; nil if there will be none.
func (a *App) late() func() http.Handler {
	if a.opts.Handler == nil {
		return nil
	}
	return func() http.Handler {
		if h := a.handler.Load(); h != nil {
			return *h
		}
		return nil
	}
}

func (a *App) startHandler() error {
	metrics := kafka.NewIntakeMetrics(a.registry)
	if a.opts.Handler == nil {
		return nil
	}
	handler, closing, err := a.opts.Handler(a.ledger, metrics)
	if err != nil {
		return err
	}
	a.closing = closing
	a.handler.Store(&handler)
	return nil
}

// adminTimeout bounds the stop of the admin server: slow requests are cut off.
const adminTimeout = time.Second

func (a *App) stopAdmin(ctx context.Context) error {
	if a.admin == nil {
		return nil
	}
	if a.closing != nil {
		a.closing()
	}
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	return a.admin.Close(ctx)
}
