package subscriber_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/tests/servers"
)

// The broker does not reply to an attach on the first connection, and its heartbeats arrive. A new
// connection works.
func TestConnectionThatDoesNotAttachIsReplaced(t *testing.T) {
	for _, sessions := range []bool{true, false} {
		t.Run(fmt.Sprintf("sessions=%t", sessions), func(t *testing.T) {
			inBubble(t, func(t *testing.T, d *broker) {
				d.server.Control(busemu.OpAttach, func(c *busemu.Call) *busemu.Fault {
					if d.connections() == 1 && c.Receiver {
						return &busemu.Fault{Loss: busemu.Drop}
					}
					return nil
				})
				handler := func(context.Context, *consumer.Event) error { return nil }
				var stop func()
				if sessions {
					stop = d.run(t, subscriber.SessionOptions{}, handler)
				} else {
					stop = d.runPlain(t, subscriber.Options{}, handler)
				}
				time.Sleep(5 * time.Minute)
				if n := d.connections(); n != 2 {
					t.Errorf("%d connections in 5 minutes, want 2", n)
				}
				began := time.Now()
				stop()
				if took := time.Since(began); took > time.Minute {
					t.Errorf("stopped after %v", took)
				}
			})
		})
	}
}

// A failed renewal is repeated until the lock duration since the last successful one has passed.
func TestFailedRenewalIsRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		stop := d.run(t, subscriber.SessionOptions{}, func(ctx context.Context, _ *consumer.Event) error {
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			return context.Cause(ctx)
		})
		d.publish(t, "k", 1)
		settle(3 * lockDuration)
		d.server.Control(busemu.OpManagement, busemu.Times(1, busemu.Fault{Err: &busemu.Error{Condition: busemu.ServerBusy, Description: "The server is busy."}}))
		settle(time.Minute)
		stop()
		d.wantOutcomes(t, "k.1 fresh handled")
	})
}

// A consumer that cannot receive says why and what to do about it, in the default log.
func TestFirstFailureIsLoggedWithCauseAndRemedy(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		name                  string
		from                  subscriber.Source
		dial                  error
		reason, cause, advice string
	}{
		{"wrong subscription", subscriber.Subscription(topic, "nosuch"), nil, "entity_not_found", "nosuch", "correct the names"},
		{"closed port", source, refused, "unreachable", "connection refused", "port"},
		{"wrong kind of processor", source, nil, "not_allowed", "session", "NewSessionProcessor"},
	} {
		for _, sessions := range []bool{true, false} {
			if sessions && c.reason == "not_allowed" {
				continue
			}
			t.Run(fmt.Sprintf("%s, sessions=%t", c.name, sessions), func(t *testing.T) {
				inBubble(t, func(t *testing.T, d *broker) {
					at := servicebus.ClientConfig{ConnectionString: d.namespace.ConnectionString, Dial: func(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
						if c.dial != nil {
							return nil, c.dial
						}
						return d.dial(ctx, args)
					}}
					handler := func(context.Context, *consumer.Event) error { return errors.New("not expected") }
					servers.WantFirstFailure(t, func() (servers.Consumer, error) {
						if sessions {
							return subscriber.NewSessionProcessor(at, c.from, handler, nil)
						}
						return subscriber.NewProcessor(at, c.from, handler, nil)
					}, time.Second, c.reason, c.cause, c.advice)
				})
			})
		}
	}
}

// Both processors write a span and count each event, named by the topic and its subscription, or by the
// queue.
func TestProcessorsHaveSpansAndMetrics(t *testing.T) {
	inBubble(t, func(t *testing.T, d *broker) {
		written, read := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
		tracers, meters := sdktrace.NewTracerProvider(sdktrace.WithSyncer(written)), sdkmetric.NewMeterProvider(sdkmetric.WithReader(read))
		handler := func(context.Context, *consumer.Event) error { return nil }
		one, err := subscriber.NewSessionProcessor(d.namespace, source, handler, &subscriber.SessionOptions{Tracers: tracers, Meters: meters})
		if err != nil {
			t.Fatal(err)
		}
		other, err := subscriber.NewProcessor(d.namespace, subscriber.Queue("jobs"), handler, &subscriber.Options{Tracers: tracers, Meters: meters})
		if err != nil {
			t.Fatal(err)
		}
		stopOne, stopOther := d.start(t, one), d.start(t, other)
		d.publish(t, "k", 1)
		if err := d.server.Send(t.Context(), "jobs", busemu.Message{ID: "j1", Body: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		settle(time.Second)
		stopOne()
		stopOther()
		var all metricdata.ResourceMetrics
		if err := read.Collect(context.WithoutCancel(t.Context()), &all); err != nil {
			t.Fatal(err)
		}
		got := map[string]int64{}
		for _, span := range written.GetSpans() {
			got[span.Name]++
		}
		for _, m := range all.ScopeMetrics[0].Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
				for _, p := range sum.DataPoints {
					destination, _ := p.Attributes.Value("messaging.destination.name")
					from, _ := p.Attributes.Value("messaging.destination.subscription.name")
					if p.Value != 0 || m.Name == "outbox.consumer.in_hand" {
						got[m.Name+" "+destination.AsString()+" "+from.AsString()] = p.Value
					}
				}
			}
		}
		want := map[string]int64{
			"process contacts": 1, "process jobs": 1,
			"messaging.client.consumed.messages contacts all": 1, "outbox.consumer.handled contacts all": 1, "outbox.consumer.in_hand contacts all": 0,
			"messaging.client.consumed.messages jobs ": 1, "outbox.consumer.handled jobs ": 1, "outbox.consumer.in_hand jobs ": 0,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("spans and metrics (-want +got):\n%s", diff)
		}
	})
}
