package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"feedbox/changefeed"
)

// operate carries out operators' requests at random times, through the faults of the lease store,
// until ctx ends.
func (s *sim) operate(ctx context.Context) error {
	o, err := s.operator()
	if err != nil || o == nil {
		return err
	}
	rng := rand.New(rand.NewPCG(s.config.Seed, 6))
	for wait(ctx, time.Duration(5+rng.IntN(30))*time.Second) == nil {
		s.request(ctx, rng, o)
	}
	return nil
}

// operator returns an operator; nil beside another product, which ignores requests.
func (s *sim) operator() (*changefeed.Operator, error) {
	if s.config.Foreign {
		return nil, nil //nolint:nilnil // documented
	}
	h := &host{sim: s, name: "operator", clock: newHostClock(1)}
	feed, store, err := s.backend.Connect(h.name)
	if err != nil {
		return nil, fmt.Errorf("connect the operator: %w", err)
	}
	return changefeed.NewOperator(&hostFeed{Feed: feed, host: h}, h.recorded(&hostStore{LeaseStore: store, host: h, h: s.history}, nil),
		&changefeed.OperatorOptions{Processor: s.config.Options.Processor}), nil
}

// resume ends all pauses, after the faults.
func (s *sim) resume(ctx context.Context) error {
	o, err := s.operator()
	if err != nil || o == nil {
		return err
	}
	for range 60 {
		if err = errors.Join(o.Resume(ctx), o.ResumeLeases(ctx)); err == nil {
			return nil
		}
		if err := wait(ctx, time.Second); err != nil {
			return err
		}
	}
	return fmt.Errorf("resume: %w", err)
}

// request makes one request. It may fail, because the store may.
func (s *sim) request(ctx context.Context, rng *rand.Rand, o *changefeed.Operator) {
	requests := []struct {
		name string
		do   func(context.Context) error
	}{
		{"pauses", o.Pause},
		{"resumes", o.Resume},
		{"pauses of leases", func(ctx context.Context) error { return o.PauseLeases(ctx) }},
		{"resumes of leases", func(ctx context.Context) error { return o.ResumeLeases(ctx) }},
		{"releases", func(ctx context.Context) error { return o.Release(ctx) }},
		{"retries", func(ctx context.Context) error { return o.Retry(ctx) }},
		{"rewinds", func(ctx context.Context) error { return o.Rewind(ctx, changefeed.FromBeginning()) }},
		{"restarts", func(ctx context.Context) error { return o.Restart(ctx) }},
	}
	if s.config.NoDelete {
		requests = requests[1:] // because Resume deletes the record of a pause
	}
	r := requests[rng.IntN(len(requests))]
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	s.verifier.logEvent("the operator: %s", r.name)
	err := r.do(ctx)
	s.verifier.logEvent("the operator: %s: %v", r.name, err)
	s.requests.Add(1)
}
