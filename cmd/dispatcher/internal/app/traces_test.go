package app

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kotel"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"dispatcher/cmd/dispatcher/internal/tracing"
	"dispatcher/ledger"
)

const tracedNumber, tracedText = "+447700900123", "Your code is 123456"

// traced publishes a message with the header of a trace, as an instrumented producer does.
func (s *stage) traced(provider trace.TracerProvider, id, sendAt string) {
	s.t.Helper()
	tracer := kotel.NewTracer(kotel.TracerProvider(provider),
		kotel.TracerPropagator(propagation.TraceContext{}),
		kotel.KeyFormatter(func(*kgo.Record) (string, error) { return "", s.t.Context().Err() }))
	client, err := kgo.NewClient(kgo.SeedBrokers(s.broker.ListenAddrs()...), kgo.WithHooks(tracer))
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	value := `{"id":"` + id + `","to":"` + tracedNumber + `","text":"` + tracedText + `"` + sendAt + `}`
	record := &kgo.Record{Topic: "sms.transactional", Value: []byte(value)}
	if err := client.ProduceSync(s.t.Context(), record).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
}

// recorder returns an exporter that keeps all spans in memory.
func recorder(t *testing.T) (*tracetest.InMemoryExporter, *sdk.TracerProvider) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	return spans, sdk.NewTracerProvider(sdk.WithSyncer(spans))
}

// ofTrace returns the spans of one trace by name.
func ofTrace(all tracetest.SpanStubs, id trace.TraceID) map[string]tracetest.SpanStub {
	found := map[string]tracetest.SpanStub{}
	for _, s := range all {
		if s.SpanContext.TraceID() == id {
			found[s.Name] = s
		}
	}
	return found
}

// attributes returns the attributes of a span as text.
func attributes(s *tracetest.SpanStub) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

// TestOneTraceLeadsFromTheProducerToTheReceipt: publish, receive, claim, send and receipt, although
// the sending process has ended when the receipt comes. The span of the whole claim is linked and
// has the round trips as children. No span contains the number, the text or the id.
func TestOneTraceLeadsFromTheProducerToTheReceipt(t *testing.T) {
	t.Parallel()
	spans, provider := recorder(t)
	var options Options
	s := newStageWith(t, oneChannel, func(o *Options) {
		o.Tracer = tracing.New(provider)
		options = *o
	}, nil)
	s.sendable("a") // else the message is claimed twice
	s.traced(provider, "traced-1", "")
	s.until("the message is accepted",
		func() bool { return s.totals().Messages[ledger.Accepted] == 1 })
	if err := s.app.Stop(); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.app, err = Start(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	carrier := s.carriers["ONE"]
	carrier.SendReceipt(carrier.Submits()[0], "")
	s.until("the message is delivered",
		func() bool { return s.totals().Messages[ledger.Delivered] == 1 })

	var published tracetest.SpanStub
	var trace map[string]tracetest.SpanStub
	s.until("the receipt's span is there", func() bool {
		all := spans.GetSpans()
		i := slices.IndexFunc(all, func(s tracetest.SpanStub) bool {
			return strings.HasSuffix(s.Name, " publish")
		})
		published = all[i]
		trace = ofTrace(all, published.SpanContext.TraceID())
		_, ok := trace["receipt"]
		return ok
	})
	received := trace["sms.transactional receive"]
	if received.Parent.SpanID() != published.SpanContext.SpanID() {
		t.Errorf("what is received is not below what was published: %+v", received)
	}
	for name, want := range map[string]map[string]string{
		"claim": {
			"dispatcher.state": "sending", "dispatcher.channel": "a", "dispatcher.route": "default",
			"dispatcher.reason": "first_choice", "dispatcher.attempt": "1",
			"dispatcher.intake": "fresh", "dispatcher.lane": "transactional",
			"dispatcher.routing_version": "1",
		},
		"send": {
			"dispatcher.channel": "a", "dispatcher.outcome": "accepted", "dispatcher.attempt": "1",
		},
		"settle": {
			"dispatcher.channel": "a", "dispatcher.outcome": "accepted",
			"dispatcher.state": "accepted", "dispatcher.attempt": "1",
		},
		"receipt": {"dispatcher.channel": "a", "dispatcher.state": "delivered"},
	} {
		span, ok := trace[name]
		if !ok || span.Parent.SpanID() != received.SpanContext.SpanID() {
			t.Errorf("no span %s below the received one", name)
		}
		got := attributes(&span)
		for key, value := range want {
			if got[key] != value {
				t.Errorf("%s: %s is %q, want %q", name, key, got[key], value)
			}
		}
	}
	claim := trace["claim"]
	if len(claim.Links) != 1 {
		t.Fatalf("span of the claim: got links %v", claim.Links)
	}
	batch := ofTrace(spans.GetSpans(), claim.Links[0].SpanContext.TraceID())
	if len(batch["claim batch"].Links) != 1 ||
		batch["claim batch"].Links[0].SpanContext.SpanID() != received.SpanContext.SpanID() {
		t.Errorf("the claim's span is not linked with the message's: %+v", batch["claim batch"])
	}
	if len(batch) < 2 {
		t.Errorf("no span of a round trip below the claim: %v", batch)
	}
	for _, span := range spans.GetSpans() {
		words := span.Name + span.Status.Description
		for _, a := range span.Attributes {
			words += " " + a.Value.String()
		}
		for _, e := range span.Events {
			for _, a := range e.Attributes {
				words += " " + a.Value.String()
			}
		}
		for _, secret := range []string{tracedNumber[1:], tracedText, "traced-1"} {
			if strings.Contains(words, secret) {
				t.Errorf("%s holds %q", span.Name, secret)
			}
		}
	}
}

// TestAScheduledMessageKeepsItsTrace: its claim and its submit are in the trace of its producer.
func TestAScheduledMessageKeepsItsTrace(t *testing.T) {
	t.Parallel()
	spans, provider := recorder(t)
	s := newStageWith(t, oneChannel, func(o *Options) { o.Tracer = tracing.New(provider) }, nil)
	at := time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339)
	s.traced(provider, "later", `,"send_at":"`+at+`"`)
	s.until("the message is accepted",
		func() bool { return s.totals().Messages[ledger.Accepted] == 1 })
	for _, span := range spans.GetSpans() {
		if !strings.HasSuffix(span.Name, " publish") {
			continue
		}
		if _, ok := ofTrace(spans.GetSpans(), span.SpanContext.TraceID())["send"]; !ok {
			t.Error("its submit is not in the trace")
		}
	}
}

// TestWithoutTracesNothingIsStoredOfThem: the envelope of a record with the header of a trace is
// stored unchanged.
func TestWithoutTracesNothingIsStoredOfThem(t *testing.T) {
	t.Parallel()
	spans, provider := recorder(t)
	s := newStageWith(t, oneChannel, nil, nil)
	s.traced(provider, "plain", "")
	s.until("the message is accepted",
		func() bool { return s.totals().Messages[ledger.Accepted] == 1 })
	record, err := s.app.Ledger().Messages.Record(t.Context(), "plain")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(record.Message.Envelope, []byte("traceparent")) {
		t.Errorf("got stored envelope %s", record.Message.Envelope)
	}
	if all := spans.GetSpans(); len(all) != 1 || s.app.tracer != nil {
		t.Errorf("got %d spans, want only the producer's", len(all))
	}
}
