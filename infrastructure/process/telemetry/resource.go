package telemetry

import (
	"cmp"
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
)

// describe builds the resource that every metric and span carries. The
// variables OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME win over the code.
func describe(ctx context.Context, service string, o *Options) (*resource.Resource, error) {
	attributes := []attribute.KeyValue{
		attribute.String("service.name", service),
		attribute.String("service.version", cmp.Or(o.Version, "unknown")),
	}
	if o.Instance != "" {
		attributes = append(attributes, attribute.String("service.instance.id", o.Instance))
	}
	res, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attributes...), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("telemetry resource: %w", err)
	}
	return res, nil
}
