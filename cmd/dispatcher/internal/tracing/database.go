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

// Database returns a query tracer that adds spans of round trips to another one. For a nil Tracer
// it returns the other one.
func (t *Tracer) Database(other pgx.QueryTracer) pgx.QueryTracer {
	if t == nil {
		return other
	}
	return multitracer.New(other, within{otelpgx.NewTracer(otelpgx.WithTracerProvider(t.provider),
		otelpgx.WithDisableSQLStatementInAttributes(),
		otelpgx.WithDisableConnectionDetailsInAttributes())})
}

// within traces only round trips within a sampled span, such as that of a claim: others would each
// begin a trace. Of errors it records only the code, because their text may hold values.
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

// TraceQueryEnd ends the span of a statement.
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

// TraceCopyFromEnd ends the span of a COPY.
func (w within) TraceCopyFromEnd(
	ctx context.Context, conn *pgx.Conn, data pgx.TraceCopyFromEndData,
) {
	if sampled(ctx) {
		data.Err = plain(data.Err)
		w.tracer.TraceCopyFromEnd(ctx, conn, data)
	}
}

// plain reduces an error to its kind; nil stays nil.
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
