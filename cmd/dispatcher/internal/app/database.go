package app

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/outage"
	"dispatcher/ledger"
	"dispatcher/ledger/migrations"
)

// firstPause and longestPause bound the pauses between two tries to reach the database.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
)

// openLedger migrates and connects. It waits for a database that is away; a wrong password or an
// unusable URL is an error.
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
	c := ledger.Config{
		URL: s.PostgresURL, MaxConns: s.PostgresMaxConns, Region: s.Region, Host: host,
		Version: a.opts.Version, KeyID: a.opts.Keys[0].ID(),
		Tracer: a.tracer.Database(newRoundTrips(a.registry)),
	}
	err = a.withRetry(ctx, func() (err error) {
		a.ledger, err = ledger.Connect(ctx, c)
		return err
	})
	if err != nil {
		return err
	}
	a.stopper.add("database", func(ctx context.Context) error {
		defer a.ledger.Close()
		return a.ledger.Instances.Leave(ctx)
	})
	err = a.withRetry(ctx, func() error { return a.ledger.Instances.Register(ctx) })
	if err != nil {
		return err
	}
	err = a.withRetry(ctx, func() (err error) {
		a.identity, err = a.ledger.Instances.TakeIdentity(ctx)
		return err
	})
	if err != nil {
		return err
	}
	a.readiness.ping.Store(new(a.ledger.Ping))
	a.watchDatabase()
	return a.withRetry(ctx, func() error { return a.warnOfDurability(ctx) })
}

// withRetry repeats an operation of the database while its error says that waiting may help.
func (a *App) withRetry(ctx context.Context, try func() error) error {
	err := ledger.Repeat(ctx, firstPause, longestPause, func() error {
		err := try()
		if ledger.Unavailable(err) && ctx.Err() == nil {
			a.outages.Down(outage.Report{
				What: postgres, Reporter: "start", Err: err,
				Sentence: "PostgreSQL (DISPATCHER_POSTGRES_URL) cannot be used yet, trying again: " +
					PostgresTrouble(&a.opts.Settings, err).Error(),
			})
		}
		return err
	})
	if ledger.Unavailable(err) {
		return ctx.Err()
	}
	a.outages.Up(postgres, "start")
	return err
}

// warnOfDurability warns of database settings under which a crash loses commits: the guarantees
// depend on durable commits.
func (a *App) warnOfDurability(ctx context.Context) error {
	d, err := a.ledger.Durability(ctx)
	if err != nil {
		return err
	}
	for _, w := range d.Weaknesses() {
		a.log.Warn().
			Str("setting", w.Setting).
			Str("value", w.Value).
			Msg("commits of PostgreSQL may be lost: " + w.Cost)
	}
	return nil
}

// roundTrips counts the round trips to PostgreSQL. A batch of statements is one.
type roundTrips struct{ total prometheus.Counter }

var (
	_ pgx.QueryTracer    = (*roundTrips)(nil)
	_ pgx.BatchTracer    = (*roundTrips)(nil)
	_ pgx.CopyFromTracer = (*roundTrips)(nil)
)

func newRoundTrips(registry prometheus.Registerer) *roundTrips {
	t := &roundTrips{prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "dispatcher", Subsystem: "ledger", Name: "round_trips_total",
		Help: "Round trips to PostgreSQL.",
	})}
	registry.MustRegister(t.total)
	return t
}

func (t *roundTrips) TraceQueryStart(
	ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData,
) context.Context {
	t.total.Inc()
	return ctx
}

func (*roundTrips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (t *roundTrips) TraceBatchStart(
	ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData,
) context.Context {
	t.total.Inc()
	return ctx
}

func (*roundTrips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (*roundTrips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (t *roundTrips) TraceCopyFromStart(
	ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData,
) context.Context {
	t.total.Inc()
	return ctx
}

func (*roundTrips) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {}
