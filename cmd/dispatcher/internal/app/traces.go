package app

import (
	"context"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/cmd/dispatcher/internal/outage"
	"dispatcher/cmd/dispatcher/internal/tracing"
)

// startTraces starts to record traces when the environment asks for them. They are exported until
// everything else has stopped.
func (a *App) startTraces(ctx context.Context) (err error) {
	if a.tracer = a.opts.Tracer; a.tracer == nil {
		a.tracer, err = tracing.FromEnvironment(ctx, a.opts.Version)
	}
	if err != nil || a.tracer == nil {
		return err
	}
	tracing.OnFailure(a.tracesFailed)
	a.stopper.add("traces", a.tracer.Close)
	a.log.Info().Msg("traces are exported")
	return nil
}

// tracesFailed reports that spans were dropped. Nothing else depends on them.
func (a *App) tracesFailed(err error) {
	a.outages.Fault(outage.Report{
		What: "traces", Reporter: "traces",
		// As a field, the error does not make each occurrence a fault of its own.
		Fields: func(e *zerolog.Event) { e.AnErr("cause", err) },
		Sentence: "traces are not exported and are dropped: check the collector that the " +
			"OTEL_EXPORTER_OTLP_... variables name",
	})
}

// traced adds traces to the consumer, if they are recorded.
func (a *App) traced(c *kafka.ConsumerConfig) {
	if a.tracer == nil {
		return
	}
	metrics := c.Hooks
	c.Traceparent = tracing.Received
	c.Hooks = func(lane string) []kgo.Hook {
		return append(metrics(lane), a.tracer.Hooks(kafka.Group(c.Group, lane))...)
	}
}
