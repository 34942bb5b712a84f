package monitor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"feedbox/changefeed"
)

// LagGauge reports the lag of the ranges that this relay owns, whenever metrics are collected, and
// why a lag is unknown. While the store does not answer, leases expire and no lag can be measured.
// The gauge then reports the last known lag, growing older, because an outage must not look like a
// relay that has caught up. A range that had caught up is omitted then, because its lag is unknown.
type LagGauge struct {
	Lag     func() []changefeed.RangeLag
	Failing func() bool // the store
	Now     func() time.Time
	Held    func() time.Duration // for how long the store has kept the feed from advancing; nil: never
	// Container is that of the ranges, "" if the process has one. Ranges of several have the same names.
	Container string
	TTL       time.Duration // of events; 0: they do not expire

	mu   sync.Mutex // guards last
	last map[string]knownLag
}

// knownLag is a lag that was measured.
type knownLag struct {
	changefeed.RangeLag
	at time.Time
}

// Register adds the instruments.
func (g *LagGauge) Register(meters metric.MeterProvider) error {
	meter := meters.Meter("feedbox/relay")
	transactions, err1 := meter.Int64ObservableGauge("outbox.lag", metric.WithUnit("{transaction}"), metric.WithDescription("transactions that were not handled yet"))
	oldest, err2 := meter.Float64ObservableGauge("outbox.oldest_unpublished", metric.WithUnit("s"), metric.WithDescription("age of the oldest change not yet handled"))
	withheld, err8 := meter.Int64ObservableGauge("outbox.lag.withheld", metric.WithUnit("{transaction}"), metric.WithDescription("those of outbox.lag that an open transaction of the store holds back"))
	unknown, err3 := meter.Int64ObservableGauge("outbox.lag.unknown", metric.WithUnit("{range}"), metric.WithDescription("1 while the lag of a range is unknown, with the reason"))
	paused, err4 := meter.Int64ObservableGauge("outbox.range.paused", metric.WithUnit("{range}"), metric.WithDescription("1 while an operator has paused the range, else 0"))
	read, err5 := meter.Float64ObservableGauge("outbox.range.read_age", metric.WithUnit("s"), metric.WithDescription("time since the feed last replied to a read of the range"))
	ttl, err9 := meter.Float64ObservableGauge("outbox.event.ttl", metric.WithUnit("s"), metric.WithDescription("age from which on an event can expire, sent or not"))
	container := ofContainer(g.Container)
	_, err6 := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		owned := g.Lag()
		expiry := math.Inf(1)
		if g.TTL > 0 {
			expiry = g.TTL.Seconds()
		}
		o.ObserveFloat64(ttl, expiry, container)
		for _, l := range g.current(owned) {
			r := metric.WithAttributes(attribute.String("lease", changefeed.LeaseName(l.ID)))
			o.ObserveInt64(transactions, l.Transactions, r, container)
			o.ObserveFloat64(oldest, l.Age.Seconds(), r, container)
			o.ObserveInt64(withheld, l.Withheld, r, container)
		}
		for _, l := range owned {
			lease := attribute.String("lease", changefeed.LeaseName(l.ID))
			if !l.Known {
				o.ObserveInt64(unknown, 1, container, metric.WithAttributes(lease, attribute.String("reason", string(l.Unknown))))
			}
			isPaused := int64(0)
			if l.Paused {
				isPaused = 1
			}
			o.ObserveInt64(paused, isPaused, container, metric.WithAttributes(lease))
			if !l.Read.IsZero() {
				o.ObserveFloat64(read, max(0, g.Now().Sub(l.Read).Seconds()), container, metric.WithAttributes(lease))
			}
		}
		return nil
	}, transactions, oldest, withheld, unknown, paused, read, ttl)
	var err7 error
	if g.Held != nil {
		_, err7 = meter.Float64ObservableGauge("outbox.feed.held", metric.WithUnit("s"), metric.WithDescription("for how long an open transaction of the store has kept the feed from advancing"),
			metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
				o.Observe(g.Held().Seconds())
				return nil
			}))
	}
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9); err != nil {
		return fmt.Errorf("lag metrics: %w", err)
	}
	return nil
}

// current returns the lag of owned ranges now, or the last known lag.
func (g *LagGauge) current(owned []changefeed.RangeLag) []changefeed.RangeLag {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, before := g.Now(), g.last
	g.last = map[string]knownLag{}
	var all []changefeed.RangeLag
	keep := func(lease string, known knownLag) {
		g.last[lease] = known
		if known.Transactions > 0 {
			all = append(all, known.aged(now))
		}
	}
	for _, l := range owned {
		if l.Known {
			g.last[l.ID] = knownLag{l, now}
			all = append(all, l)
		} else if known, ok := before[l.ID]; ok {
			keep(l.ID, known)
		}
	}
	if !g.Failing() {
		return all
	}
	for lease, known := range before {
		if _, there := g.last[lease]; !there {
			keep(lease, known)
		}
	}
	return all
}

// aged returns the lag as it would be now if nothing had been handled since.
func (k knownLag) aged(now time.Time) changefeed.RangeLag {
	l := k.RangeLag
	l.Age += now.Sub(k.at)
	return l
}
