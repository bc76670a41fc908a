package app

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/cmd/dispatcher/internal/inbound"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/cmd/dispatcher/internal/pipeline"
	"dispatcher/cmd/dispatcher/internal/receive"
	"dispatcher/cmd/dispatcher/internal/scoring"
	"dispatcher/cmd/dispatcher/internal/steer"
	"dispatcher/config"
	"dispatcher/ledger"
)

// openRouting loads the current routing, applies the first one if there is none, connects its
// channels and starts the pipeline.
func (a *App) openRouting(ctx context.Context) error {
	metrics := pipeline.NewMetrics(a.registry)
	breakers := newBreakerMetrics(a.registry)
	sandbox := &embedded.Carriers{Behaviour: a.opts.Sandbox, OnSubmit: a.opts.OnSubmit}
	a.stopper.add("sandbox carriers", func(context.Context) error { sandbox.Close(); return nil })
	built := make(chan struct{}) // closed when a.dispatch is set
	batcher, err := a.startReceipts(built)
	if err != nil {
		return err
	}
	s := &a.opts.Settings
	a.reloader = &reloader{
		versions: a.ledger.Routing, log: a.log, report: a.trouble, first: a.opts.Routing,
		file: s.RoutingFile,
		connections: connections{connector: connector{
			secrets: s.Secrets(), log: a.log, outages: a.outages, breakers: breakers,
			sandbox: sandbox, receipt: batcher.Take, proof: batcher.Keep,
			reported: a.ledger.Receipts.Reported,
			callback: a.callback, sendTimeout: s.SendTimeout,
		}},
	}
	intake, err := a.startInbound()
	if err != nil {
		return err
	}
	a.reloader.connections.connector.inbound = intake.Take
	if err := a.openWebhooks(ctx, contentStore{receipts: batcher, inbound: intake}); err != nil {
		return err
	}
	scorer, err := scoring.New(scoring.Config{Registry: a.registry})
	if err != nil {
		return err
	}
	a.stopper.add("scoring functions", func(context.Context) error { scorer.Close(); return nil })
	arrivals := &steer.Arrivals{}
	a.dispatch, err = pipeline.New(pipeline.Config{
		Ledger: a.ledger, Keys: a.opts.Keys, Scorer: scorer, Reload: a.reloader.reload,
		MaxUnsettled: s.MaxUnsettled, SendTimeout: s.SendTimeout, DeadAfter: s.DeadAfter,
		Region: s.Region, StateInterval: s.StateInterval, WindowRetention: s.WindowRetention,
		Metrics: metrics, Trouble: a.trouble, Begin: a.begin, Describe: a.describe(breakers),
		Tracer: a.tracer, Received: arrivals.Add,
	})
	if err != nil {
		return err
	}
	close(built)
	a.reloader.apply = a.dispatch.Apply
	a.stopper.add("pipeline", a.dispatch.Stop)
	err = a.withRetry(ctx, func() error { return a.dispatch.Beat(ctx) })
	if err != nil {
		return err
	}
	if err := a.reloader.begin(ctx); err != nil {
		return err
	}
	a.readiness.reloader.Store(a.reloader)
	a.readiness.ready.Store(new(a.dispatch.Unready))
	a.serveWebhooks()
	a.ownLoop("due rows", a.dispatch.Run)
	a.ownLoop("routing watch", a.reloader.watch)
	a.ownLoop("channel retries", a.reloader.retryTroubles)
	return a.startSteer(arrivals)
}

// startSteer starts ramps and health weighting. It stops before the pipeline, so that a stopping
// process changes no weights.
func (a *App) startSteer(arrivals *steer.Arrivals) error {
	s, err := steer.New(steer.Config{
		Ledger: a.ledger, NewRouting: NewRouting, Awaits: Awaits,
		Every:       cmp.Or(a.opts.SteerEvery, steer.DefaultEvery),
		SendTimeout: a.opts.Settings.SendTimeout,
		Registry:    a.registry, Log: a.log, Trouble: a.trouble, Arrivals: arrivals,
	})
	if err != nil {
		return err
	}
	a.ownLoop("steering", s.Run)
	return nil
}

// startReceipts starts, once the pipeline is built, to store receipts and to close attempts whose
// receipt did not come. It stops after the channels have closed.
func (a *App) startReceipts(built <-chan struct{}) (*receive.Batcher, error) {
	references, err := pipeline.NewReferences(a.opts.Keys)
	if err != nil {
		return nil, err
	}
	batcher, err := receive.New(receive.Config{
		Store: a.ledger.Receipts, Open: references.Open,
		Freed:   func(slots int) { a.dispatch.Freed(slots) },
		Trouble: a.trouble, Registry: a.registry, Tracer: a.tracer,
	})
	if err != nil {
		return nil, err
	}
	a.ownLoop("receipts", func(ctx context.Context) {
		select {
		case <-built:
		case <-ctx.Done():
		}
		batcher.Run(ctx)
	})
	return batcher, nil
}

// startInbound starts to store messages of subscribers, with the directory of the current routing.
// It stops after the channels have closed.
func (a *App) startInbound() (*inbound.Intake, error) {
	region, err := numbers.ParseRegion(a.opts.Settings.DefaultRegion)
	if err != nil {
		return nil, fmt.Errorf("%s_DEFAULT_REGION %w", config.Prefix, err)
	}
	intake, err := inbound.New(inbound.Config{
		Store: a.ledger.Inbox, Directory: a.reloader.directory.Load, E164: region.E164,
		Registry: a.registry, Trouble: a.trouble,
	})
	if err != nil {
		return nil, err
	}
	a.ownLoop("inbound messages", intake.Run)
	return intake, nil
}

// describe adds the state of breakers and consumers to the state of this process.
func (a *App) describe(breakers *breakerMetrics) func(*ledger.InstanceState, time.Time) {
	return func(s *ledger.InstanceState, now time.Time) {
		for name, c := range s.Channels {
			c.Breaker, c.BreakerSince = breakers.since(name, now)
			s.Channels[name] = c
		}
		for _, lane := range a.readiness.lanes() {
			l := s.Lanes[lane.Lane]
			l.Joined, l.Away, l.Lag = lane.Joined, lane.Away, lane.Lag
			s.Lanes[lane.Lane] = l
		}
	}
}
