package monitor

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"

	"feedbox/application/relay"
)

// deliveryBuckets reach from the duration of a poll to a day, in seconds.
var deliveryBuckets = metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 21600, 86400)

// timedPublisher measures the time from the creation of each event, just before its commit, to
// its acceptance by the broker. The clocks of two machines are compared, so a negative
// difference counts as 0.
type timedPublisher struct {
	relay.Publisher
	took metric.Float64Histogram
	now  func() time.Time
}

// Timed returns a publisher that measures the deliveries of next.
func (m *Metrics) Timed(next relay.Publisher, now func() time.Time) relay.Publisher {
	return &timedPublisher{Publisher: next, took: m.delivered, now: now}
}

// Publish implements relay.Publisher.
func (p *timedPublisher) Publish(ctx context.Context, groups []relay.Group) error {
	err := p.Publisher.Publish(ctx, groups)
	failed, ok := errors.AsType[*relay.PublishError](err)
	if err != nil && !ok {
		return err // unknown which messages were accepted
	}
	now := p.now()
	for i := range groups {
		accepted := groups[i].Messages
		if ok && len(failed.Keys) > 0 && failed.Keys[0].Group == i {
			accepted = accepted[:failed.Keys[0].Sent]
			failed = &relay.PublishError{Keys: failed.Keys[1:]}
		}
		for m := range accepted {
			if created, parseErr := time.Parse(time.RFC3339, accepted[m].CreatedAt); parseErr == nil {
				p.took.Record(ctx, max(0, now.Sub(created).Seconds()))
			}
		}
	}
	return err
}
