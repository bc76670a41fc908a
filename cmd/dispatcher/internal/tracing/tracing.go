// Package tracing records OpenTelemetry traces of messages: from the record in Kafka through claim
// and send to the receipt.
//
//	tracing.go   the tracer and its spans
//	setup.go     the exporter, from the standard OTEL_* environment
//	database.go  spans of statements within a claim
//
// A message is traced if the producer's trace is sampled or, for a record without a trace, if the
// sampler takes it. Its traceparent (W3C Trace Context, section 3.2) is stored with its envelope,
// so that any process can continue the trace later. The claim has one span with the spans of its
// statements; the span of each message is linked with it.
//
// A nil Tracer is off: each method returns at once and allocates nothing. No attribute holds a
// number, a text, or an id from a producer or a provider.
package tracing

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kotel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const scope = "dispatcher"

// Tracer records spans; nil records none.
type Tracer struct {
	provider trace.TracerProvider
	tracer   trace.Tracer
	stop     func(context.Context) error
}

// New returns a Tracer that records with a provider. Close does not close the provider.
func New(provider trace.TracerProvider) *Tracer {
	return &Tracer{
		provider: provider, tracer: provider.Tracer(scope),
		stop: func(context.Context) error { return nil },
	}
}

// Close exports the remaining spans.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.stop(ctx)
}

// w3c reads and writes the header of W3C Trace Context.
var w3c = propagation.TraceContext{}

// traceparent is the name of that header.
const traceparent = "traceparent"

// Hooks are the hooks of a Kafka client in a consumer group. They make a span from fetching to
// polling a record, as a child of the producer's.
func (t *Tracer) Hooks(group string) []kgo.Hook {
	if t == nil {
		return nil
	}
	return []kgo.Hook{t.kotel(kotel.ConsumerGroup(group))}
}

func (t *Tracer) kotel(options ...kotel.TracerOpt) *kotel.Tracer {
	return kotel.NewTracer(append(options, kotel.TracerProvider(t.provider),
		kotel.TracerPropagator(w3c),
		kotel.KeyFormatter(func(*kgo.Record) (string, error) { return "", errKey }))...)
}

// Publishing returns the options of a Kafka client that produces messages. They make a span from
// producing a record until the answer of the brokers. Its parent is the record's header
// traceparent, if there is one. The header is then replaced, so that spans of receivers are
// children of this one.
func (t *Tracer) Publishing() []kgo.Opt {
	if t == nil {
		return nil
	}
	return []kgo.Opt{kgo.WithHooks(publishing{t.kotel()})}
}

// publishing is the hook of Publishing.
type publishing struct{ *kotel.Tracer }

// OnProduceRecordBuffered begins the span.
func (p publishing) OnProduceRecordBuffered(r *kgo.Record) {
	r.Context = w3c.Extract(r.Context, kotel.NewRecordCarrier(r))
	p.Tracer.OnProduceRecordBuffered(r)
}

// Received is the traceparent of a record that a client with Hooks has fetched; empty when it is
// not sampled.
func Received(r *kgo.Record) string {
	if r.Context == nil {
		return ""
	}
	return format(trace.SpanContextFromContext(r.Context))
}

// format is the traceparent of a span; empty for one that is not sampled.
func format(of trace.SpanContext) string {
	if !of.IsValid() || !of.IsSampled() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	w3c.Inject(trace.ContextWithSpanContext(context.Background(), of), carrier)
	return carrier[traceparent]
}

// parse parses a traceparent; the result is invalid if text is none.
func parse(text string) trace.SpanContext {
	ctx := w3c.Extract(context.Background(), propagation.MapCarrier{traceparent: text})
	return trace.SpanContextFromContext(ctx)
}

// below returns a context whose spans are children of a traceparent.
func below(ctx context.Context, text string) context.Context {
	return trace.ContextWithRemoteSpanContext(ctx, parse(text))
}

// Span is a span that has begun; nil records nothing.
type Span struct{ span trace.Span }

// End ends the span. It records the kind of a non-nil error.
func (s *Span) End(err error) {
	if s == nil {
		return
	}
	if err != nil {
		s.span.SetStatus(codes.Error, errorWord(err))
	}
	s.span.End()
}

// Claim begins the span of one claim. It is a trace of its own, linked with those of the traced
// messages (of). Without such messages it begins none.
func (t *Tracer) Claim(ctx context.Context, lane string, of []string) (context.Context, *Span) {
	if t == nil || len(of) == 0 {
		return ctx, nil
	}
	links := make([]trace.Link, 0, len(of))
	for _, text := range of {
		if parent := parse(text); parent.IsValid() {
			links = append(links, trace.Link{SpanContext: parent})
		}
	}
	ctx, span := t.tracer.Start(ctx, "claim batch", trace.WithNewRoot(), trace.WithLinks(links...),
		trace.WithAttributes(attribute.String("dispatcher.lane", lane),
			attribute.Int("dispatcher.traced_messages", len(of))))
	return ctx, &Span{span}
}

// Claimed is what a claim decided about a message.
type Claimed struct {
	Traceparent                         string
	Lane, Route, Channel, State, Reason string
	Intake                              string // for a record: fresh, duplicate or conflict
	Attempt                             int
	RoutingVersion                      int64
	Began, Ended                        time.Time
}

// Claimed records a message's part of a claim, linked with the claim's span.
func (t *Tracer) Claimed(c *Claimed, batch *Span) {
	if t == nil || c.Traceparent == "" {
		return
	}
	options := []trace.SpanStartOption{
		trace.WithTimestamp(c.Began), trace.WithSpanKind(trace.SpanKindInternal),
		trace.WithAttributes(words(
			"dispatcher.lane", c.Lane, "dispatcher.route", c.Route, "dispatcher.channel", c.Channel,
			"dispatcher.state", c.State, "dispatcher.reason", c.Reason,
			"dispatcher.intake", c.Intake)...),
		trace.WithAttributes(attribute.Int("dispatcher.attempt", c.Attempt),
			attribute.Int64("dispatcher.routing_version", c.RoutingVersion)),
	}
	if batch != nil {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: batch.span.SpanContext()}))
	}
	_, span := t.tracer.Start(below(context.Background(), c.Traceparent), "claim", options...)
	span.End(trace.WithTimestamp(c.Ended))
}

// Send begins the span of a submission.
func (t *Tracer) Send(
	ctx context.Context, text, channel string, attempt int,
) (context.Context, *Span) {
	if t == nil || text == "" {
		return ctx, nil
	}
	ctx, span := t.tracer.Start(below(ctx, text), "send", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("dispatcher.channel", channel),
			attribute.Int("dispatcher.attempt", attempt)))
	return ctx, &Span{span}
}

// Answered ends the span of a submission. code is the provider's, bounded by its adapter.
func (s *Span) Answered(outcome, code string, accepted bool) {
	if s == nil {
		return
	}
	s.span.SetAttributes(words("dispatcher.outcome", outcome, "dispatcher.code", code)...)
	if !accepted {
		s.span.SetStatus(codes.Error, outcome)
	}
	s.span.End()
}

// Settled records the settlement of an attempt: its outcome, and the new state of the message.
func (t *Tracer) Settled(text, channel, outcome, state string, attempt int, began time.Time) {
	if t == nil || text == "" {
		return
	}
	_, span := t.tracer.Start(below(context.Background(), text), "settle",
		trace.WithTimestamp(began), trace.WithSpanKind(trace.SpanKindInternal),
		trace.WithAttributes(words("dispatcher.channel", channel, "dispatcher.outcome", outcome,
			"dispatcher.state", state)...),
		trace.WithAttributes(attribute.Int("dispatcher.attempt", attempt)))
	span.End()
}

// Receipt records the new state of a message after a receipt, or because none came in time.
func (t *Tracer) Receipt(text, channel, state, cause, code string, attempt int, began time.Time) {
	if t == nil || text == "" {
		return
	}
	_, span := t.tracer.Start(below(context.Background(), text), "receipt",
		trace.WithTimestamp(began), trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(words("dispatcher.channel", channel, "dispatcher.state", state,
			"dispatcher.cause", cause, "dispatcher.code", code)...),
		trace.WithAttributes(attribute.Int("dispatcher.attempt", attempt)))
	span.End()
}

// words makes attributes of pairs of name and value, without empty values.
func words(pairs ...string) []attribute.KeyValue {
	var all []attribute.KeyValue
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			all = append(all, attribute.String(pairs[i], pairs[i+1]))
		}
	}
	return all
}
