package monitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"feedbox/application/relay"
)

// ParkedGauge reports how many keys are parked. It polls the store at its own interval, not at
// that of the scraper. Every relay reports the total over all keys. An answer counts for three
// intervals, because a poll may fail once and its failure may take an interval. After that the
// numbers are unknown: they are absent, and a gauge has the reason.
type ParkedGauge struct {
	Lot interface {
		Gates(ctx context.Context) ([]relay.Gate, error)
	}
	Every     time.Duration
	Log       *slog.Logger
	Container string // whose keys; "" if the process has one container

	last atomic.Pointer[parkedCount] // nil before the first answer
}

type parkedCount struct {
	keys, events int64
	at           time.Time
}

// Register adds the instruments.
func (g *ParkedGauge) Register(meters metric.MeterProvider) error {
	meter := meters.Meter("feedbox/relay")
	keys, err1 := meter.Int64ObservableGauge("outbox.parked.keys", metric.WithUnit("{key}"), metric.WithDescription("parked keys; every relay reports the total"))
	events, err2 := meter.Int64ObservableGauge("outbox.parked.waiting", metric.WithUnit("{event}"), metric.WithDescription("events of parked keys; every relay reports the total"))
	unknown, err3 := meter.Int64ObservableGauge("outbox.parked.unknown", metric.WithUnit("{relay}"), metric.WithDescription("1 while the number of parked keys is unknown, with the reason"))
	container := ofContainer(g.Container)
	_, err4 := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		switch last := g.last.Load(); {
		case last == nil:
			o.ObserveInt64(unknown, 1, container, metric.WithAttributes(attribute.String("reason", "starting")))
		case time.Since(last.at) >= 3*g.Every:
			o.ObserveInt64(unknown, 1, container, metric.WithAttributes(attribute.String("reason", "failed")))
		default:
			o.ObserveInt64(keys, last.keys, container)
			o.ObserveInt64(events, last.events, container)
		}
		return nil
	}, keys, events, unknown)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return fmt.Errorf("metrics of parked keys: %w", err)
	}
	return nil
}

// Run counts until ctx ends.
func (g *ParkedGauge) Run(ctx context.Context) error {
	g.count(ctx)
	return repeat(ctx, g.Every, g.count)
}

func (g *ParkedGauge) count(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, g.Every)
	defer cancel()
	gates, err := g.Lot.Gates(ctx)
	if err != nil {
		g.Log.DebugContext(ctx, "parked keys not counted", "error", err) // retried at the next tick; the drainer warns about the same failure
		return
	}
	now := &parkedCount{keys: int64(len(gates)), at: time.Now()}
	for _, gate := range gates {
		now.events += gate.Events
	}
	g.last.Store(now)
}

// ofContainer returns the attribute with the name of a container, none for "".
func ofContainer(name string) metric.MeasurementOption {
	if name == "" {
		return metric.WithAttributes()
	}
	return metric.WithAttributes(attribute.String("container", name))
}
