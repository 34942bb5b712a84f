package relayservice

import (
	"context"
	"errors"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/cosmos"
	"feedbox/infrastructure/cosmos/parked"
	"feedbox/infrastructure/monitor"
	"feedbox/infrastructure/relayfeed"
	"feedbox/infrastructure/servicebus"
)

// heartbeat is how often the relay reports its lag in the log.
const heartbeat = 30 * time.Second

// lanes is how many keys of one feed range are sent at a time, page by page; keys
// of one page are sent together by the publisher anyway.
const lanes = 4

// pollBusy is the shortest pause between two reads of a range whose changes come
// faster than PollMin. Reads are then about as many as changes, and a
// read that finds nothing costs a tenth of the write that it waited for, or less.
const pollBusy = time.Millisecond

// retryMax is the longest pause between two tries of a key that waits.
const retryMax = 5 * time.Second

// Service is a relay. Create it with New. Its methods are safe for concurrent use.
type Service struct {
	client    *azcosmos.Client
	options   Options
	publisher *servicebus.Topics
	decoder   cosmos.EventDecoder
	processor *changefeed.Processor
	drainer   *relay.Drainer
	health    *monitor.Health
	parked    *monitor.ParkedGauge
}

// New assembles a relay of the change feed in store and a topic of bus. It does no I/O. The
// feed is read best by a client with cosmosfeed.ClientOptions.
func New(store *azcosmos.Client, bus *servicebus.Client, o *Options) (*Service, error) {
	options, err := o.withDefaults()
	if store == nil || bus == nil {
		err = errors.Join(errors.New("relayservice: both clients are required"), err)
	}
	if err != nil {
		return nil, err
	}
	s := &Service{client: store, options: options, health: monitor.NewHealth(time.Now)}
	if s.decoder, err = cosmos.NewEventDecoder(options.Contract); err != nil {
		return nil, err
	}
	metrics, err := monitor.NewMetrics(options.Meters, options.Topic)
	if err != nil {
		return nil, err
	}
	if s.publisher, err = s.newPublisher(bus, metrics); err != nil {
		return nil, err
	}
	if err := s.assemble(metrics); err != nil {
		return nil, err
	}
	lag := &monitor.LagGauge{Lag: s.processor.Lag, Failing: options.Needs[monitor.OnCosmos].Failing, Now: time.Now}
	return s, errors.Join(lag.Register(options.Meters), s.parked.Register(options.Meters), options.Needs.Register(options.Meters))
}

func (s *Service) newPublisher(bus *servicebus.Client, metrics *monitor.Metrics) (*servicebus.Topics, error) {
	return servicebus.NewTopics(bus, s.options.Topic, s.options.Topics, &servicebus.PublisherOptions{
		PackKeys: s.options.PackKeys, Source: s.options.Source, Logger: s.options.Logger,
		Sent: func(ctx context.Context, r servicebus.BatchReport) {
			metrics.Batch(ctx, r)
			s.options.Needs[monitor.OnServiceBus].Batch(r)
		},
	})
}

// assemble makes what stands between the feed and the publisher.
func (s *Service) assemble(metrics *monitor.Metrics) error {
	data, err1 := s.client.NewContainer(s.options.Database, s.options.Data)
	aside, err2 := s.client.NewContainer(s.options.Database, s.options.Parked)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	lot, err1 := parked.New(aside)
	events, err2 := cosmos.NewEventStore(data)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	log := s.options.Logger
	s.parked = &monitor.ParkedGauge{Lot: lot, Every: heartbeat, Log: log}
	r, err := relay.New(s.decoder, metrics.Timed(s.publisher, time.Now), &relay.Options{
		Parked: lot, Now: time.Now, Observer: metrics.Hooks(monitor.RelayLog(log), time.Now),
	})
	if err != nil {
		return err
	}
	if s.processor, err = s.newProcessor(r, metrics); err != nil {
		return err
	}
	s.drainer, err = relay.NewDrainer(lot, relayfeed.Ranges{Processor: s.processor}, s.decoder, s.publisher, relay.DrainOptions{
		Now: time.Now, Poll: s.options.ParkedPoll, Stored: events, Drained: monitor.DrainLog(log), LookFailed: monitor.DrainLookLog(log),
	})
	return err
}

func (s *Service) newProcessor(r *relay.Relay, metrics *monitor.Metrics) (*changefeed.Processor, error) {
	o := &s.options
	feed, err1 := cosmosfeed.NewFeed(s.client, o.Database, o.Data)
	leases, err2 := cosmosfeed.NewLeaseStore(s.client, o.Database, o.Leases)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	h := relayfeed.NewHandler(r)
	return changefeed.New(feed, o.WrapLeases(leases), h, &changefeed.Options{
		Processor:    o.Processor,
		Host:         o.Instance,
		Start:        o.Start,
		Expiry:       o.Expiry,
		Renew:        o.Renew,
		Acquire:      o.Acquire,
		MaxItems:     o.MaxItems,
		PollMin:      o.PollMin,
		PollBusy:     min(o.PollMin, pollBusy),
		PollMax:      o.PollMax,
		DrainTimeout: o.DrainTimeout,
		Lanes:        lanes,
		Poison:       changefeed.PoisonDeadLetter,
		RetryMax:     retryMax,
		DeadLetter:   h.Park,
		WaitLimit:    o.WaitLimit,
		Observer: changefeed.JoinObservers(h.Observe(), s.health.Observer(), metrics.Observer(),
			monitor.AbsenceLog(o.EventTTL, time.Now, o.Logger), monitor.ProcessorLog(o.Logger)),
	})
}

// Ready is nil when the relay does its work: see monitor.Health.
func (s *Service) Ready() error { return s.health.Ready(s.processor.Lag) }

// Lag tells how far the ranges that this relay owns are read.
func (s *Service) Lag() []changefeed.RangeLag { return s.processor.Lag() }
