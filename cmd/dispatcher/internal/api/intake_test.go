package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/cmd/dispatcher/internal/tracing"
	"dispatcher/config/tier"
)

// brokenIntake confirms every record except the second.
type brokenIntake struct{}

func (brokenIntake) Publish(_ context.Context, records []*kgo.Record) []error {
	out := make([]error, len(records))
	if len(out) > 1 {
		out[1] = kafka.ErrUnconfirmed
	}
	return out
}

// newIntake returns an intake that publishes to a broker of its own.
func newIntake(t *testing.T, options ...kgo.Opt) (*kafka.Intake, *kfake.Cluster) {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "sms.otp", "sms.bulk"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	intake, err := kafka.NewIntake("none", append(options, kgo.SeedBrokers(c.ListenAddrs()...))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(intake.Close)
	return intake, c
}

// published waits for n records and returns them.
func published(t *testing.T, c *kfake.Cluster, n int) map[string]*kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...),
		kgo.ConsumeTopics("sms.otp", "sms.bulk"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), tier.LongestWait)
	defer cancel()
	all := map[string]*kgo.Record{}
	for len(all) < n {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%d of %d records: %v", len(all), n, err)
		}
		fetches.EachRecord(func(r *kgo.Record) { all[string(r.Key)] = r })
	}
	return all
}

func envelopeOf(id, more string) string {
	return fmt.Sprintf(`{"id":%q,"to":"+447700900123","text":"Your code is 123456"%s}`, id, more)
}

func TestWhatIsAcceptedIsInTheTopicOfItsLane(t *testing.T) {
	t.Parallel()
	intake, cluster := newIntake(t)
	s := newIntakeStage(t, access.Rate{}, intake)
	plain := envelopeOf("m-1", ` , "labels":{"a":1.50}`)
	got := s.ask("sender", "POST", "/messages", `{"lane":"otp","messages":[`+plain+`,`+
		envelopeOf("m-2", "")+`]}`, "traceparent", "00-trace", "Idempotency-Key", "k")
	if got.status != http.StatusAccepted || !strings.Contains(got.body, `"accepted":2`) {
		t.Fatalf("got %+v", got)
	}
	if got := s.ask("sender", "POST", "/messages", `{"lane":"otp","messages":[`+
		envelopeOf("m-2", "")+`]}`, "Idempotency-Key", "k"); got.status != http.StatusAccepted {
		t.Fatalf("the key does not matter, ids do: %+v", got)
	}
	if got := s.ask("sender of shop", "POST", "/messages", `{"lane":"bulk","messages":[`+
		envelopeOf("m-3", "")+`,`+envelopeOf("m-4", `,"tenant":"shop"`)+`]}`); got.status !=
		http.StatusAccepted {
		t.Fatalf("got %+v, want status %v", got, http.StatusAccepted)
	}
	all := published(t, cluster, 4)
	if r := all["m-1"]; r.Topic != "sms.otp" || string(r.Value) != plain || len(r.Headers) != 1 ||
		string(r.Headers[0].Value) != "00-trace" {
		t.Errorf("%s: %s %v", r.Topic, r.Value, r.Headers)
	}
	for _, id := range []string{"m-3", "m-4"} {
		if r := all[id]; r.Topic != "sms.bulk" ||
			!strings.Contains(string(r.Value), `"tenant":"shop"`) {
			t.Errorf("%s: got %s", r.Topic, r.Value)
		}
	}
}

// TestABatchWithABadMessageIsRefusedWhole: the answer names the message and its field.
func TestABatchWithABadMessageIsRefusedWhole(t *testing.T) {
	t.Parallel()
	s := newIntakeStage(t, access.Rate{}, brokenIntake{})
	for name, c := range map[string]struct{ role, message, want string }{
		"no number": {"sender", `{"id":"a","to":"4477009","text":"x"}`, `messages[1].to"`},
		"no text":   {"sender", `{"id":"a","to":"+447700900123"}`, `messages[1].text"`},
		"no id":     {"sender", `{"to":"+447700900123","text":"x"}`, `messages[1].id"`},
		"a field that is not known": {
			"sender", envelopeOf("a", `,"txet":"y"`), `messages[1].txet"`,
		},
		"a field twice": {"sender", envelopeOf("a", `,"text":"y"`), `messages[1].text"`},
		"a wrong time":  {"sender", envelopeOf("a", `,"send_at":"now"`), `messages[1].send_at"`},
		"a deadline before its time": {
			"sender",
			envelopeOf("a",
				`,"send_at":"2026-11-21T10:00:00Z","expires_at":"2026-11-21T10:00:00Z"`),
			`messages[1].expires_at"`,
		},
		"too large": {
			"sender", envelopeOf("a", `,"from":"`+strings.Repeat("x", 65<<10)+`"`), `messages[1]"`,
		},
		"another tenant": {
			"sender of shop", envelopeOf("a", `,"tenant":"other"`), `messages[1].tenant"`,
		},
	} {
		got := s.ask(c.role, "POST", "/messages", `{"lane":"otp","messages":[`+
			envelopeOf("good", "")+`,`+c.message+`]}`)
		if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, c.want) ||
			strings.Contains(got.body, "messages[0]") ||
			got.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: got %+v", name, got)
		}
		if strings.Contains(got.body, "7700900") || strings.Contains(got.body, "code is") {
			t.Errorf("%s: the answer shows the number or the text: %s", name, got.body)
		}
	}
	many := strings.Repeat(envelopeOf("a", "")+",", 500) + envelopeOf("b", "")
	for name, body := range map[string]string{
		"no such lane": `{"lane":"express","messages":[` + envelopeOf("a", "") + `]}`,
		"no message":   `{"lane":"otp","messages":[]}`,
		"too many":     `{"lane":"otp","messages":[` + many + `]}`,
	} {
		if got := s.ask("sender", "POST", "/messages", body); got.status !=
			http.StatusUnprocessableEntity {
			t.Errorf("%s: got %+v, want status %v", name, got, http.StatusUnprocessableEntity)
		}
	}
	long := `{"lane":"otp","messages":[` + strings.Repeat(" ", 5<<20) + `]}`
	if got := s.ask("sender", "POST", "/messages", long); got.status !=
		http.StatusRequestEntityTooLarge {
		t.Errorf("a body of 5 MiB: %d", got.status)
	}
}

func TestWhatKafkaDoesNotConfirmIsNotAccepted(t *testing.T) {
	t.Parallel()
	s := newIntakeStage(t, access.Rate{}, brokenIntake{})
	body := `{"lane":"otp","messages":[` + envelopeOf("a", "") + `,` + envelopeOf("b", "") + `]}`
	if got := s.ask("sender", "POST", "/messages", body); got.status !=
		http.StatusServiceUnavailable || !strings.Contains(got.body, `messages[1]"`) ||
		strings.Contains(got.body, `messages[0]`) || !strings.Contains(got.body, "1 of 2") {
		t.Errorf("one of two: %+v", got)
	}
	intake, cluster := newIntake(t, kgo.RecordDeliveryTimeout(time.Second))
	s = newIntakeStage(t, access.Rate{}, intake)
	cluster.Close()
	if got := s.ask("sender", "POST", "/messages", body); got.status !=
		http.StatusServiceUnavailable || !strings.Contains(got.body, "0 of 2") {
		t.Errorf("no broker: %+v", got)
	}
}

func TestWithoutAnIntakeNoMessageIsTaken(t *testing.T) {
	t.Parallel()
	s := newStage(t, access.Rate{})
	if got := s.ask("sender", "POST", "/messages", `{"lane":"otp","messages":[`+
		envelopeOf("a", "")+`]}`); got.status != http.StatusNotFound {
		t.Errorf("got %+v, want status %v", got, http.StatusNotFound)
	}
}

// TestATraceBeginsWhereAMessageIsPublished: the record's header has the span of the publisher. Its
// parent is the span of the request; without one it begins a trace.
func TestATraceBeginsWhereAMessageIsPublished(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	tracer := tracing.New(sdk.NewTracerProvider(sdk.WithSyncer(spans)))
	intake, cluster := newIntake(t, tracer.Publishing()...)
	s := newIntakeStage(t, access.Rate{}, intake)
	const caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for id, headers := range map[string][]string{"below": {"traceparent", caller}, "alone": nil} {
		if got := s.ask("sender", "POST", "/messages", `{"lane":"otp","messages":[`+
			envelopeOf(id, "")+`]}`, headers...); got.status != http.StatusAccepted {
			t.Fatalf("got %+v, want status %v", got, http.StatusAccepted)
		}
	}
	bySpan := map[string]tracetest.SpanStub{}
	for _, span := range spans.GetSpans() {
		bySpan[span.SpanContext.SpanID().String()] = span
		for _, a := range span.Attributes {
			if text := a.Value.String(); strings.Contains(text, "7700900") || text == "below" {
				t.Errorf("the attribute %s shows %s", a.Key, text)
			}
		}
	}
	for id, record := range published(t, cluster, 2) {
		if len(record.Headers) != 1 || record.Headers[0].Key != "traceparent" {
			t.Fatalf("%s has the headers %v", id, record.Headers)
		}
		parts := strings.Split(string(record.Headers[0].Value), "-")
		span, ok := bySpan[parts[2]]
		if !ok || span.Name != "sms.otp publish" || span.SpanContext.TraceID().String() != parts[1] {
			t.Errorf("%s: got parent %v, want that of %+v", id, parts, span)
		}
		parent := "00f067aa0ba902b7"
		if id == "alone" {
			parent = "0000000000000000"
		}
		if span.Parent.SpanID().String() != parent || id == "below" && parts[1] !=
			"4bf92f3577b34da6a3ce929d0e0e4736" {
			t.Errorf("%s is below %s in %s", id, span.Parent.SpanID(), parts[1])
		}
	}
}

// counted returns the metrics of the intake that are not 0, by labels and by name without the
// common prefix.
func (s *stage) counted() map[string]float64 {
	s.t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "dispatcher_intake_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			n := m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			if n > 0 {
				all[name] = n
			}
		}
	}
	return all
}

func TestTheIntakeIsCounted(t *testing.T) {
	t.Parallel()
	intake, _ := newIntake(t)
	s := newIntakeStage(t, access.Rate{}, intake)
	two := `{"lane":"otp","messages":[` + envelopeOf("a", "") + `,` + envelopeOf("b", "") + `]}`
	for _, body := range []string{
		two, `{"lane":"none","messages":[` + envelopeOf("c", "") + `]}`,
		`{"lane":"otp","messages":[{"id":"d"}]}`,
	} {
		s.ask("sender", "POST", "/messages", body)
	}
	if diff := cmp.Diff(map[string]float64{
		"requests_total accepted": 1, "requests_total refused": 2, "messages_total otp": 2,
		"durable_seconds": 1,
	}, s.counted()); diff != "" {
		t.Error(diff)
	}
	s = newIntakeStage(t, access.Rate{}, brokenIntake{})
	s.ask("sender", "POST", "/messages", two)
	if diff := cmp.Diff(map[string]float64{
		"requests_total unconfirmed": 1, "durable_seconds": 1,
	}, s.counted()); diff != "" {
		t.Error(diff)
	}
	s = newIntakeStage(t, access.Rate{}, intake)
	s.ledger.Close()
	s.ask("sender", "POST", "/messages", two)
	if diff := cmp.Diff(map[string]float64{"requests_total unavailable": 1}, s.counted()); diff != "" {
		t.Error(diff)
	}
}

// TestASenderMayBeBoundToLanesAndIDs: a tenant must not use a lane that ignores opt-outs, nor the
// ids of another tenant.
func TestASenderMayBeBoundToLanesAndIDs(t *testing.T) {
	t.Parallel()
	s := newIntakeStage(t, access.Rate{}, brokenIntake{})
	for name, c := range map[string]struct {
		lane, id, names string
		want            int
	}{
		"its own":             {"otp", "s-1", "", http.StatusAccepted},
		"another lane":        {"bulk", "s-1", "not for this lane", http.StatusForbidden},
		"an id of others":     {"otp", "t-1", "messages[0].id", http.StatusUnprocessableEntity},
		"no lane of the file": {"express", "s-1", "no such lane", http.StatusUnprocessableEntity},
	} {
		got := s.ask("sender of otp", "POST", "/messages", `{"lane":"`+c.lane+`","messages":[`+
			envelopeOf(c.id, "")+`]}`)
		if got.status != c.want || !strings.Contains(got.body, c.names) {
			t.Errorf("%s: %+v, want %d", name, got, c.want)
		}
	}
}
