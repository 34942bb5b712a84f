package relayservice

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/relay/monitor"
	"feedbox/infrastructure/relay/relayfeed"
	"feedbox/infrastructure/relay/relayport"
)

// heartbeat is how often the relay reports its lag in the log.
const heartbeat = 30 * time.Second

// lanes is how many handler calls run at once per feed range. A few are enough, because the
// publisher sends all keys of a call together.
const lanes = 4

// retryMax bounds the backoff between two attempts to send a key.
const retryMax = 5 * time.Second

// Service is a relay. Create it with New. Its methods are safe for concurrent use.
type Service struct {
	store     relayport.Store
	options   Options
	shards    []string // of the broker
	publisher relayport.Publisher
	processor *changefeed.Processor
	drainer   *relay.Drainer
	health    *monitor.Health
	parked    *monitor.ParkedGauge
	ended     atomic.Bool // the processor has ended
}

// New assembles a relay of the events of store to broker. It does no I/O.
func New(store relayport.Store, broker relayport.Broker, o *Options) (*Service, error) {
	options, err := o.withDefaults(&store, &broker)
	if err := errors.Join(store.Check(), broker.Check(), err); err != nil {
		return nil, err
	}
	s := &Service{store: store, options: options, shards: broker.Shards, health: monitor.NewHealth(time.Now)}
	metrics, err := monitor.NewMetrics(options.Meters, options.Container, broker.System, broker.Destination, broker.Shards...)
	if err != nil {
		return nil, err
	}
	s.publisher, err = broker.Open(options.Logger, func(ctx context.Context, r relay.BatchReport) {
		metrics.Batch(ctx, r)
		options.Needs[broker.Name].Batch(r)
	})
	if err != nil {
		return nil, err
	}
	if err := s.assemble(metrics, &broker); err != nil {
		return nil, err
	}
	lag := &monitor.LagGauge{Lag: s.processor.Lag, Failing: options.Needs[store.Name].FailingOf(options.Container), Now: time.Now, Held: store.Held, Container: options.Container, TTL: options.EventTTL}
	return s, errors.Join(lag.Register(options.Meters), s.parked.Register(options.Meters), options.Needs.Register(options.Meters))
}

// assemble builds the parts between the feed and the publisher.
func (s *Service) assemble(metrics *monitor.Metrics, broker *relayport.Broker) error {
	log, lot := s.options.Logger, s.store.Parked
	s.parked = &monitor.ParkedGauge{Lot: lot, Every: heartbeat, Log: log, Container: s.options.Container}
	publisher := monitor.Traced(s.publisher, s.options.Tracers, broker.System, broker.Destination)
	r, err := relay.New(s.store.Decoder, metrics.Timed(publisher, time.Now), &relay.Options{
		Shards: broker.Shards, ShardOf: broker.ShardOf, Parked: lot, Now: time.Now, Observer: metrics.Hooks(s.options.Needs[broker.Name].Pauses(monitor.RelayLog(log)), time.Now),
	})
	if err != nil {
		return err
	}
	if s.processor, err = s.newProcessor(r, metrics); err != nil {
		return err
	}
	s.drainer, err = relay.NewDrainer(lot, relayfeed.Ranges{Processor: s.processor}, r, relay.DrainOptions{
		Poll: s.options.ParkedPoll, Stored: s.store.Events, Drained: monitor.DrainLog(log), PollFailed: monitor.DrainLookLog(log),
	})
	return err
}

func (s *Service) newProcessor(r *relay.Relay, metrics *monitor.Metrics) (*changefeed.Processor, error) {
	o := &s.options
	h := relayfeed.NewHandler(r)
	return changefeed.New(s.store.Feed, o.WrapLeases(s.store.Leases), h, &changefeed.Options{
		Processor:    o.Processor,
		Host:         o.Instance,
		Siblings:     o.Siblings,
		Start:        o.Start,
		Expiry:       o.Expiry,
		Renew:        o.Renew,
		Acquire:      o.Acquire,
		MaxItems:     o.MaxItems,
		PollMin:      o.PollMin,
		PollBusy:     o.PollBusy,
		PollMax:      o.PollMax,
		PollRate:     o.PollRate,
		DrainTimeout: o.DrainTimeout,
		Lanes:        lanes,
		Poison:       changefeed.PoisonDeadLetter,
		RetryMax:     retryMax,
		DeadLetter:   h.Park,
		WaitLimit:    o.WaitLimit,
		Observer: changefeed.JoinObservers(s.health.Observer(), metrics.Observer(),
			metrics.Absences(o.EventTTL, time.Now, o.Logger), monitor.ProcessorLog(o.Logger), o.Observer),
	})
}

// Ready is nil when the relay does its work: see monitor.Health. It is an error once Run has ended.
func (s *Service) Ready() error {
	switch {
	case s == nil || s.processor == nil:
		return errNotNew
	case s.ended.Load():
		return s.named(errEnded)
	}
	return s.named(s.health.Ready(s.processor.Lag))
}

// Lag returns the lag of the ranges that this relay owns.
func (s *Service) Lag() []changefeed.RangeLag {
	if s == nil || s.processor == nil {
		return nil
	}
	return s.processor.Lag()
}
