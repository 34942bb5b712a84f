package relayservice

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"feedbox/infrastructure/relay/monitor"
)

// closeTimeout bounds the closing of links to the broker, so that a silent broker cannot
// prolong a stop.
const closeTimeout = 2 * time.Second

var (
	errNotNew = errors.New("relayservice: the Service is not made by New")
	errEnded  = errors.New("the relay has ended")
)

// Verify checks the store, that its parked events belong to this processor, and that the broker has the
// recorded shards. Its error names
// everything missing or wrong; faults Unavailable and Throttled mean that the store did not
// answer.
func (s *Service) Verify(ctx context.Context) error {
	if s == nil || s.processor == nil {
		return errNotNew
	}
	if err := s.store.Verify(ctx); err != nil {
		return s.named(err)
	}
	return s.named(s.store.Claim(ctx, s.options.Processor, s.shards...))
}

// named adds Options.Container to an error, because an operator acts on one container.
func (s *Service) named(err error) error {
	if err == nil || s.options.Container == "" {
		return err
	}
	return fmt.Errorf("container %s: %w", s.options.Container, err)
}

// Run verifies the store and relays until ctx ends, then stops in the order that the package
// documentation gives and returns nil. It must not be called twice.
func (s *Service) Run(ctx context.Context) error {
	if err := s.Verify(ctx); err != nil {
		return unlessEnded(ctx, err)
	}
	return s.Relay(ctx)
}

// unlessEnded returns nil if ctx has ended: a relay that is stopped while it starts has not failed.
func unlessEnded(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return err
	}
}

// Relay is Run without Verify, for callers that have verified.
func (s *Service) Relay(ctx context.Context) error {
	if s == nil || s.processor == nil {
		return errNotNew
	}
	// The processor stops first. The others outlive ctx, so that upkeep and a drain in progress
	// are not cut off while it releases its leases.
	rest, stopRest := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRest()
	first, stopFirst := context.WithCancel(ctx)
	defer stopFirst()

	var others sync.WaitGroup
	parts := map[string]func(context.Context) error{
		"drainer":          s.drainer.Run,
		"parked gauge":     s.parked.Run,
		"retention report": monitor.Retention{TTL: s.options.EventTTL, Every: heartbeat, Lag: s.Lag, Log: s.options.Logger}.Run,
	}
	if s.store.Upkeep != nil {
		parts["upkeep of the store"] = s.store.Upkeep
	}
	faults := make(chan error, len(parts))
	for name, run := range parts {
		others.Go(func() {
			defer stopFirst()
			err := run(rest)
			if err == nil && rest.Err() == nil {
				err = errors.New("ended unexpectedly")
			}
			if err != nil {
				faults <- fmt.Errorf("%s: %w", name, err)
			}
		})
	}
	err := s.processor.Run(first)
	s.ended.Store(true)
	stopRest()
	others.Wait()
	close(faults)
	for fault := range faults {
		err = errors.Join(err, fault)
	}
	closing, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer stop()
	return s.named(errors.Join(err, s.publisher.Close(closing)))
}
