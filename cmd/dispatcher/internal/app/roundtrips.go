package app

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
)

// roundTrips counts how often the process asks PostgreSQL something and waits for the
// answer. A batch of statements is one round trip.
type roundTrips struct{ total prometheus.Counter }

var (
	_ pgx.QueryTracer = (*roundTrips)(nil)
	_ pgx.BatchTracer = (*roundTrips)(nil)
)

func newRoundTrips(registry prometheus.Registerer) *roundTrips {
	t := &roundTrips{prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "dispatcher", Subsystem: "ledger", Name: "round_trips_total",
		Help: "Round trips to PostgreSQL.",
	})}
	registry.MustRegister(t.total)
	return t
}

func (t *roundTrips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	t.total.Inc()
	return ctx
}

func (*roundTrips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (t *roundTrips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	t.total.Inc()
	return ctx
}

func (*roundTrips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (*roundTrips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
