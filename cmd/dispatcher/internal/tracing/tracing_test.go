package tracing

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestATracerThatIsOffCostsNothing: the calls that the pipeline makes for each message allocate
// nothing.
func TestATracerThatIsOffCostsNothing(t *testing.T) {
	var off *Tracer
	ctx, record, began := context.Background(), &kgo.Record{}, time.Time{}
	claimed := Claimed{State: "sending"}
	if n := testing.AllocsPerRun(100, func() {
		_, batch := off.Claim(ctx, "otp", nil)
		off.Claimed(&claimed, batch)
		batch.End(nil)
		_, span := off.Send(ctx, Received(record), "a", 1)
		span.Answered("accepted", "", true)
		off.Receipt("", "a", "delivered", "", "", 1, began)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if off.Hooks("group") != nil || off.Publishing() != nil || off.Database(nil) != nil || off.Close(ctx) != nil {
		t.Error("a disabled tracer adds a header")
	}
}

func TestTracesAreOffUnlessTheEnvironmentAsksForThem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environment map[string]string
		on          bool
		wrong       bool
	}{
		"nothing":     {nil, false, false},
		"other parts": {map[string]string{"OTEL_SERVICE_NAME": "sms"}, false, false},
		"endpoint":    {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:4318"}, true, false},
		"traces' own": {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, true, false},
		"exporter":    {map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, true, false},
		"none": {map[string]string{
			"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x",
		}, false, false},
		"disabled": {map[string]string{
			"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp",
		}, false, false},
		"grpc": {map[string]string{
			"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
		}, true, false},
		"another exporter": {map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, true, true},
		"another protocol": {map[string]string{
			"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json",
		}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			getenv := func(key string) string { return c.environment[key] }
			if on := Configured(getenv); on != c.on {
				t.Errorf("on: %v", on)
			}
			if !c.on {
				return
			}
			if _, err := client(getenv); (err != nil) != c.wrong {
				t.Error(err)
			}
		})
	}
}
