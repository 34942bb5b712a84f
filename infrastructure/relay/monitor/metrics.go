package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"feedbox/application/relay"
	"feedbox/changefeed"
)

// Metrics are the relay's instruments. The names of messaging.* follow the
// OpenTelemetry semantic conventions for messaging; outbox.* are our own.
type Metrics struct {
	container   metric.MeasurementOption // of leases and ranges; empty if the process has one container
	destination metric.MeasurementOption
	shards      map[string]metric.MeasurementOption // the destination of each; empty without shards

	sent       metric.Int64Counter     // messages the broker accepted
	sendTook   metric.Float64Histogram // one batch, until the broker's answer
	delivered  metric.Float64Histogram // one event, from its creation to the broker's acceptance
	suspected  metric.Int64Counter     // sent again although maybe accepted before
	window     metric.Float64Histogram // age of events sent again
	parked     metric.Int64Counter
	expired    metric.Int64Counter
	retries    metric.Int64Counter
	unread     metric.Int64Counter // once a minute for each range that is not read
	absences   metric.Int64Counter // ranges that were not read for longer than the event TTL
	leases     metric.Int64UpDownCounter
	moves      metric.Int64Counter
	readTook   metric.Float64Histogram
	handleTook metric.Float64Histogram
	writeTook  metric.Float64Histogram // one write of a lease, renewal or checkpoint
	charge     metric.Float64Counter
}

// durations in seconds, from half a millisecond to ten seconds.
var secondBuckets = metric.WithExplicitBucketBoundaries(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

// windowBuckets reach from a second to the longest duplicate window, 7 days.
var windowBuckets = metric.WithExplicitBucketBoundaries(1, 5, 20, 60, 300, 600, 1800, 3600, 21600, 86400, 604800)

// NewMetrics creates the instruments of a relay. system and destination are named as in the
// semantic conventions for messaging. The destination of a batch is its shard if there are several.
// container is "" if the process has one.
func NewMetrics(meters metric.MeterProvider, container, system, destination string, shards ...string) (*Metrics, error) {
	meter := meters.Meter("feedbox/relay")
	named := func(destination string) metric.MeasurementOption {
		return metric.WithAttributes(
			attribute.String("messaging.system", system), attribute.String("messaging.destination.name", destination),
		)
	}
	m := &Metrics{container: ofContainer(container), destination: named(destination), shards: map[string]metric.MeasurementOption{}}
	if len(shards) > 1 {
		for _, shard := range shards {
			m.shards[shard] = named(shard)
		}
	}
	var errs []error
	count := func(into *metric.Int64Counter, name, unit, description string) {
		var err error
		*into, err = meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
	}
	seconds := func(into *metric.Float64Histogram, name, description string, buckets metric.HistogramOption) {
		var err error
		*into, err = meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), buckets)
		errs = append(errs, err)
	}
	count(&m.sent, "messaging.client.sent.messages", "{message}", "events the broker accepted")
	seconds(&m.sendTook, "messaging.client.operation.duration", "sending one batch", secondBuckets)
	seconds(&m.delivered, "outbox.delivery.duration", "from the creation of an event, just before its commit, to the broker's acceptance", deliveryBuckets)
	count(&m.suspected, "outbox.duplicates.suspected", "{message}", "events sent again although an earlier try may have been accepted")
	seconds(&m.window, "outbox.resent.age", "age of the oldest event that was sent again; the broker's duplicate window must cover it", windowBuckets)
	count(&m.parked, "outbox.parked", "{event}", "events set aside instead of sent")
	count(&m.expired, "outbox.events.expired", "{event}", "events that expired before they were sent")
	count(&m.retries, "outbox.send.retries", "{retry}", "pauses of all sends because the broker accepted nothing")
	count(&m.unread, "outbox.range.unread", "{report}", "reports of ranges that are not read, about one a minute for each")
	count(&m.absences, "outbox.range.absences", "{absence}", "ranges that were not read for longer than the event TTL; their events may have expired unsent")
	count(&m.moves, "outbox.lease.transitions", "{transition}", "changes of ownership seen by this relay")
	seconds(&m.readTook, "outbox.feed.read.duration", "one page of the change feed", secondBuckets)
	seconds(&m.handleTook, "outbox.handle.duration", "one batch of changes, sent", secondBuckets)
	seconds(&m.writeTook, "outbox.checkpoint.duration", "one write of a lease", secondBuckets)
	var err error
	m.leases, err = meter.Int64UpDownCounter("outbox.lease.owned", metric.WithUnit("{lease}"), metric.WithDescription("leases this relay owns"))
	errs = append(errs, err)
	m.charge, err = meter.Float64Counter("azure.cosmosdb.client.operation.request_charge", metric.WithUnit("{request_unit}"), metric.WithDescription("request units of feed reads"))
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("relay metrics: %w", err)
	}
	m.zero()
	return m, nil
}

// zero creates the series of all counters, because Prometheus sees no increase in a series that
// appears with the value 1. Therefore parked and retries have no attribute for the reason: its
// values are not known in advance. The log and error.type of the send duration have it.
func (m *Metrics) zero() {
	ctx := context.Background() //nolint:forbidigo // constructors have none; nothing here blocks
	m.sent.Add(ctx, 0, m.destination)
	for _, shard := range m.shards {
		m.sent.Add(ctx, 0, shard)
	}
	for _, c := range []metric.Int64Counter{m.suspected, m.parked, m.expired, m.retries} {
		c.Add(ctx, 0)
	}
	m.unread.Add(ctx, 0, m.container)
	m.absences.Add(ctx, 0, m.container)
	for _, kind := range []string{"acquired", "released", "lost"} {
		m.moved(0, 0, kind)
	}
	m.charge.Add(ctx, 0)
}

// moved counts changes of ownership, and adds leases to the number of owned ones.
func (m *Metrics) moved(changes, leases int64, kind string) {
	ctx := context.Background() //nolint:forbidigo // the processor's hooks have none
	m.leases.Add(ctx, leases, m.container)
	m.moves.Add(ctx, changes, m.container, metric.WithAttributes(attribute.String("kind", kind)))
}

// Batch counts a batch of the publisher. error.type has the reason of a failure, such as
// "send_timeout".
func (m *Metrics) Batch(ctx context.Context, r relay.BatchReport) {
	destination, ok := m.shards[r.Shard]
	if !ok {
		destination = m.destination
	}
	m.sent.Add(ctx, int64(r.Accepted), destination)
	if r.Err != nil {
		m.sendTook.Record(ctx, r.Took.Seconds(), destination, metric.WithAttributes(attribute.String("error.type", relay.ReasonOf(r.Err))))
		return
	}
	m.sendTook.Record(ctx, r.Took.Seconds(), destination)
}

// Hooks adds counting to the relay's hooks.
func (m *Metrics) Hooks(next relay.Observer, now func() time.Time) relay.Observer {
	return relay.Observer{
		Handled: func(ctx context.Context, s relay.Summary) {
			m.suspected.Add(ctx, int64(s.Resent))
			if (s.Resent > 0 || s.First) && !s.Oldest.IsZero() {
				m.window.Record(ctx, now().Sub(s.Oldest).Seconds())
			}
		},
		Paused: func(ctx context.Context, p relay.Pause) {
			m.retries.Add(ctx, 1)
			next.Paused(ctx, p)
		},
		Parked: func(ctx context.Context, e relay.ParkedEvent) {
			m.parked.Add(ctx, 1)
			next.Parked(ctx, e)
		},
		Newer: next.Newer,
		Missing: func(ctx context.Context, e relay.Missing) {
			if e.Lost {
				n := int64(1) // at least one: the end of the gap is known, its beginning is not
				if e.First > 0 {
					n = e.Last - e.First + 1
				}
				m.expired.Add(ctx, n)
			}
			next.Missing(ctx, e)
		},
	}
}

// Observer counts what the processor does.
func (m *Metrics) Observer() *changefeed.Observer {
	ctx := context.Background() //nolint:forbidigo // the processor's hooks have no context
	return &changefeed.Observer{
		LeaseAcquired: func(changefeed.LeaseAcquired) { m.moved(1, 1, "acquired") },
		LeaseReleased: func(changefeed.LeaseReleased) { m.moved(1, -1, "released") },
		LeaseLost:     func(changefeed.LeaseLost) { m.moved(1, -1, "lost") },
		RangeSplit: func(e changefeed.RangeSplit) {
			if e.Owned {
				m.leases.Add(ctx, -1, m.container)
			}
		},
		PageRead: func(e changefeed.PageRead) {
			m.readTook.Record(ctx, e.Took.Seconds())
			m.charge.Add(ctx, e.RequestCharge)
		},
		RangeUnread:       func(changefeed.RangeUnread) { m.unread.Add(ctx, 1, m.container) },
		BatchHandled:      func(e changefeed.BatchHandled) { m.handleTook.Record(ctx, e.Took.Seconds()) },
		CheckpointWritten: func(e changefeed.CheckpointWritten) { m.writeTook.Record(ctx, e.Took.Seconds()) },
	}
}
