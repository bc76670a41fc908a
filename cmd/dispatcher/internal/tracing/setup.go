package tracing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// Configured reports whether the environment asks for traces: it names an OTLP endpoint or the
// exporter "otlp", and does not switch the SDK off.
func Configured(getenv func(string) string) bool {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	switch getenv("OTEL_TRACES_EXPORTER") {
	case "none":
		return false
	case "":
		return getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" ||
			getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
	}
	return true
}

// FromEnvironment returns a Tracer configured by the OTEL_* variables of the OpenTelemetry
// specification; nil unless they ask for traces. The SDK itself reads those of sampler, limits,
// headers, certificates and batches.
func FromEnvironment(ctx context.Context, version string) (*Tracer, error) {
	if !Configured(os.Getenv) {
		return nil, nil
	}
	client, err := client(os.Getenv)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("exporter of traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "sms-dispatcher"),
			attribute.String("service.version", version)),
		resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	t := New(provider)
	t.stop = provider.Shutdown
	return t, nil
}

// OnFailure sets the function that is called with export failures of all tracers in the process. It
// must not block.
func OnFailure(failed func(error)) { otel.SetErrorHandler(otel.ErrorHandlerFunc(failed)) }

// client returns the exporter client for the protocol that the environment names.
func client(getenv func(string) string) (otlptrace.Client, error) {
	if name := getenv("OTEL_TRACES_EXPORTER"); name != "" && name != "otlp" {
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER is %q: otlp and none are known", name)
	}
	protocol := getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
	if protocol == "" {
		protocol = getenv("OTEL_EXPORTER_OTLP_PROTOCOL")
	}
	switch protocol {
	case "", "http/protobuf":
		return otlptracehttp.NewClient(), nil
	case "grpc":
		return otlptracegrpc.NewClient(), nil
	}
	return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: http/protobuf and grpc are known",
		protocol)
}

// errKey keeps keys of Kafka records out of attributes: they may be ids or phone numbers.
var errKey = errors.New("keys are not shown")
