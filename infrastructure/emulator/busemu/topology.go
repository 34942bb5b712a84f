package busemu

import (
	"context"
	"errors"
	"fmt"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// Topology is a set of entities to be created at the start.
type Topology struct {
	Queues []Queue
	Topics []Topic
}

// Entities, as they are created. A subscription's rules consist of a filter and an
// optional action.
type (
	Queue        = broker.Queue
	Topic        = broker.Topic
	Subscription = broker.Subscription
	Rule         = broker.Rule
	Filter       = sqlfilter.Filter
	Fields       = sqlfilter.Fields // of a correlation filter
	Action       = sqlfilter.Action
	Parameter    = sqlfilter.Parameter // of an SQL filter or action
)

// FilterKind is the kind of a Filter.
type FilterKind = sqlfilter.Kind

// The kinds of filter.
const (
	TrueFilter        = sqlfilter.KindTrue
	FalseFilter       = sqlfilter.KindFalse
	CorrelationFilter = sqlfilter.KindCorrelation
	SQLFilter         = sqlfilter.KindSQL
)

// CreateQueue creates a queue. One that exists is left as it is.
func (s *Server) CreateQueue(ctx context.Context, q Queue) error {
	_, err := s.broker.CreateQueue(ctx, q)
	return created(err, "queue "+q.Name)
}

// CreateTopic creates a topic and its subscriptions. What exists is left as it is.
func (s *Server) CreateTopic(ctx context.Context, t Topic) error {
	_, err := s.broker.CreateTopic(ctx, t)
	if err := created(err, "topic "+t.Name); err != nil {
		return err
	}
	for _, sub := range t.Subscriptions {
		if err := s.CreateSubscription(ctx, t.Name, sub); err != nil {
			return err
		}
	}
	return nil
}

// CreateSubscription creates a subscription of a topic. One that exists is left
// as it is.
func (s *Server) CreateSubscription(ctx context.Context, topic string, sub Subscription) error {
	_, err := s.broker.CreateSubscription(ctx, topic, sub)
	return created(err, "subscription "+topic+"/"+sub.Name)
}

// created makes the error of a creation, none if the entity was there already.
func created(err error, what string) error {
	if err == nil || errors.Is(err, broker.EntityExists) {
		return nil
	}
	return fmt.Errorf("busemu: create %s: %w", what, err)
}

// createTopology creates what is missing, in an order in which forwarding finds its
// targets.
func (s *Server) createTopology(ctx context.Context, t *Topology) error {
	for _, topic := range t.Topics {
		topic.Subscriptions = nil
		if err := s.CreateTopic(ctx, topic); err != nil {
			return err
		}
	}
	var early []Queue // made before the entities they forward to
	for _, q := range t.Queues {
		if _, err := s.broker.Queue(q.Name); err != nil && !s.canForward(q) {
			early = append(early, q)
			q.ForwardTo, q.ForwardDeadLetteredTo = "", ""
		}
		if err := s.CreateQueue(ctx, q); err != nil {
			return err
		}
	}
	for _, q := range early {
		info, err := s.broker.Queue(q.Name)
		if err == nil {
			info.ForwardTo, info.ForwardDeadLetteredTo = q.ForwardTo, q.ForwardDeadLetteredTo
			_, err = s.broker.UpdateQueue(ctx, info.Queue)
		}
		if err != nil {
			return fmt.Errorf("busemu: forward from queue %s: %w", q.Name, err)
		}
	}
	for _, topic := range t.Topics {
		for _, sub := range topic.Subscriptions {
			if err := s.CreateSubscription(ctx, topic.Name, sub); err != nil {
				return err
			}
		}
	}
	return nil
}

// canForward reports whether what a queue forwards to is there.
func (s *Server) canForward(q Queue) bool {
	for _, to := range []string{q.ForwardTo, q.ForwardDeadLetteredTo} {
		if _, err := s.broker.Lookup(to); to != "" && err != nil {
			return false
		}
	}
	return true
}
