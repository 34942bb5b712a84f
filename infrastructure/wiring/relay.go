package wiring

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.uber.org/fx"

	"feedbox/changefeed"
	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/relay/monitor"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/relay/relayservice"
)

// Relay returns the process that sends the events of the change feed to the broker.
func Relay(cfg *config.Relay, p Params) fx.Option {
	store, broker := stores[cfg.Store.Kind], brokers[cfg.Broker.Kind]
	return fx.Options(
		process(p.Log, cfg.DrainTimeout),
		fx.Supply(cfg, p, monitor.NewDependencies(time.Now, store.name(), broker.name())),
		fx.Provide(
			func(lc fx.Lifecycle) (*telemetry.Telemetry, error) {
				return p.telemetry(lc, "feedbox-relay", cfg.Instance)
			},
			func(lc fx.Lifecycle, needs monitor.Dependencies) (all []relayport.Store, err error) {
				containers := cfg.Containers()
				for _, one := range containers {
					s, err := store.open(p, one, use{note: needs[store.name()].NoteOf(named(containers, one)), poll: true})
					if s.Close != nil {
						lc.Append(fx.StopHook(s.Close))
					}
					if err != nil {
						return nil, err
					}
					all = append(all, s.Store)
				}
				return all, nil
			},
			func(lc fx.Lifecycle) (relayport.Broker, error) {
				b, err := broker.open(p, cfg, cfg.Instance)
				if b.Close != nil {
					lc.Append(fx.StopHook(b.Close))
				}
				return b.Broker, err
			},
			newRelays,
		),
		fx.Invoke(runRelay),
	)
}

// named returns the name of a container in metrics and in the log, "" if there are no others.
func named(all []*config.Relay, one *config.Relay) string {
	if len(all) == 1 {
		return ""
	}
	return one.Cosmos.Container
}

// relays are the services of a process, one for each container.
type relays []*relayservice.Service

func newRelays(cfg *config.Relay, stores []relayport.Store, broker relayport.Broker, needs monitor.Dependencies, t *telemetry.Telemetry, log *slog.Logger) (all relays, err error) {
	siblings, containers := &changefeed.Siblings{}, cfg.Containers()
	for i, one := range containers {
		o := relayservice.Options{
			Processor:    cfg.Processor,
			Container:    named(containers, one),
			Instance:     cfg.Instance,
			Siblings:     siblings,
			Start:        start(cfg.Start),
			Expiry:       cfg.Lease.Expiry,
			Renew:        cfg.Lease.Renew,
			Acquire:      cfg.Lease.Acquire,
			MaxItems:     cfg.MaxItems,
			PollBusy:     cfg.PollBusy,
			PollMin:      cfg.PollMin,
			PollMax:      cfg.PollMax,
			PollRate:     max(1, cfg.PollRate/len(containers)),
			DrainTimeout: cfg.DrainTimeout,
			WaitLimit:    config.WaitLimit,
			ParkedPoll:   cfg.ParkedPoll,
			EventTTL:     cfg.EventTTL,
			Logger:       log,
			Meters:       t.Meters,
			Tracers:      t.Exported(),
			Needs:        needs,
			WrapLeases:   withFailpoints,
			Observer:     failpoints(),
		}
		relay, err := relayservice.New(stores[i], broker, &o)
		if err != nil {
			return nil, err
		}
		all = append(all, relay)
	}
	return all, nil
}

// each calls do for all relays at once, and joins the errors.
func (r relays) each(do func(relay *relayservice.Service) error) error {
	errs := make([]error, len(r))
	var calls sync.WaitGroup
	for i, relay := range r {
		calls.Go(func() { errs[i] = do(relay) })
	}
	calls.Wait()
	return errors.Join(errs...)
}

func (r relays) verify(ctx context.Context) error {
	return r.each(func(relay *relayservice.Service) error { return relay.Verify(ctx) })
}

func (r relays) ready() error {
	return r.each(func(relay *relayservice.Service) error { return relay.Ready() })
}

// run relays until ctx ends or one of them does.
func (r relays) run(ctx context.Context) error {
	all, stop := context.WithCancel(ctx)
	defer stop()
	return r.each(func(relay *relayservice.Service) error {
		defer stop()
		return relay.Relay(all)
	})
}

// start converts the configured start.
func start(s config.Start) changefeed.Start {
	switch {
	case s.Now:
		return changefeed.FromNow()
	case !s.Time.IsZero():
		return changefeed.FromTime(s.Time)
	default:
		return changefeed.FromBeginning()
	}
}

// recordTimeout bounds the record of the containers that a relay reads.
const recordTimeout = 3 * time.Second

// runRelay verifies the stores before a relay acquires its first lease, and lists the other
// containers in the first one.
func runRelay(lc fx.Lifecycle, down fx.Shutdowner, cfg *config.Relay, p Params, all relays, stores []relayport.Store, needs monitor.Dependencies, t *telemetry.Telemetry, log *slog.Logger) {
	ops := httpapi.NewOps(&httpapi.OpsOptions{Metrics: t.Metrics, AllowedHosts: allowedHosts(cfg.AllowedHosts, cfg.OpsListen, false), Dependencies: dependencies(needs), Ready: func(context.Context) error {
		return all.ready()
	}})
	runOps(lc, down, log, ops, p.Sockets)
	lc.Append(fx.StartHook(all.verify))
	lc.Append(fx.StartHook(func(ctx context.Context) {
		if len(cfg.More) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, recordTimeout) // all hooks share the time of the start
		defer cancel()
		if err := stores[0].RecordOthers(ctx, cfg.More); err != nil { // no reason to send nothing
			log.WarnContext(ctx, "containers not recorded: feedbox doctor does not report one that is removed later", "error", err)
		}
	}))
	background(lc, down, log, "relay", all.run)
	lc.Append(fx.StopHook(ops.Drain))
}
