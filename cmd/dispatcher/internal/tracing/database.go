package tracing

import (
	"context"
	"errors"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/trace"
)

// Database adds spans of round trips to what another tracer of the database does; without a Tracer
// it is that one.
func (t *Tracer) Database(other pgx.QueryTracer) pgx.QueryTracer {
	if t == nil {
		return other
	}
	return multitracer.New(other, within{otelpgx.NewTracer(otelpgx.WithTracerProvider(t.provider),
		otelpgx.WithDisableSQLStatementInAttributes(),
		otelpgx.WithDisableConnectionDetailsInAttributes())})
}

// within records the round trips of a claim, and no others: those of background work would each be
// a trace. Of errors it tells the code, because their words may hold values.
type within struct{ tracer *otelpgx.Tracer }

var (
	_ pgx.QueryTracer    = within{}
	_ pgx.BatchTracer    = within{}
	_ pgx.CopyFromTracer = within{}
)

func sampled(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }

// TraceQueryStart begins the span of a statement.
func (w within) TraceQueryStart(
	ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData,
) context.Context {
	if !sampled(ctx) {
		return ctx
	}
	return w.tracer.TraceQueryStart(ctx, conn, data)
}

// TraceQueryEnd ends it.
func (w within) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryEndData) {
	if sampled(ctx) {
		data.Err = plain(data.Err)
		w.tracer.TraceQueryEnd(ctx, conn, data)
	}
}

// TraceBatchStart begins the span of a batch.
func (w within) TraceBatchStart(
	ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData,
) context.Context {
	if !sampled(ctx) {
		return ctx
	}
	return w.tracer.TraceBatchStart(ctx, conn, data)
}

// TraceBatchQuery records nothing: a batch is one span.
func (within) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd ends the span of a batch.
func (w within) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchEndData) {
	if sampled(ctx) {
		data.Err = plain(data.Err)
		w.tracer.TraceBatchEnd(ctx, conn, data)
	}
}

// TraceCopyFromStart begins the span of a COPY.
func (w within) TraceCopyFromStart(
	ctx context.Context, conn *pgx.Conn, data pgx.TraceCopyFromStartData,
) context.Context {
	if !sampled(ctx) {
		return ctx
	}
	return w.tracer.TraceCopyFromStart(ctx, conn, data)
}

// TraceCopyFromEnd ends it.
func (w within) TraceCopyFromEnd(
	ctx context.Context, conn *pgx.Conn, data pgx.TraceCopyFromEndData,
) {
	if sampled(ctx) {
		data.Err = plain(data.Err)
		w.tracer.TraceCopyFromEnd(ctx, conn, data)
	}
}

// plain is an error of which only the kind is left.
func plain(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(errorWord(err))
}

// errorWord is the SQLSTATE of an error of PostgreSQL, or a word.
func errorWord(err error) string {
	if found, ok := errors.AsType[*pgconn.PgError](err); ok {
		return "SQLSTATE " + found.Code
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline exceeded"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return "failed"
}
