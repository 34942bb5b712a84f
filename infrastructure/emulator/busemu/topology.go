package busemu

import (
	"context"
	"errors"
	"fmt"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

type (
	// QueueProperties describe a queue. Zero values stand for the service's defaults.
	QueueProperties = broker.QueueProperties
	// TopicProperties describe a topic. Zero values stand for the service's defaults.
	TopicProperties = broker.TopicProperties
	// SubscriptionProperties describe a subscription. Zero values stand for the
	// service's defaults; no Rules means one that lets everything through.
	SubscriptionProperties = broker.SubscriptionProperties
	// Rule is a named filter of a subscription.
	Rule = broker.Rule
	// Filter decides whether a message goes to a subscription.
	Filter = broker.Filter
	// Fields are what a correlation filter compares.
	Fields = broker.Fields
)

// Kinds of Filter.
const (
	TrueFilter        = broker.TrueFilter
	FalseFilter       = broker.FalseFilter
	CorrelationFilter = broker.CorrelationFilter
	SQLFilter         = broker.SQLFilter
)

// Topology is a set of entities to be created at the start.
type Topology struct {
	Queues []Queue
	Topics []Topic
}

// Queue is a queue by name.
type Queue struct {
	Name string
	QueueProperties
}

// Topic is a topic by name, with its subscriptions.
type Topic struct {
	Name string
	TopicProperties
	Subscriptions []Subscription
}

// Subscription is a subscription by name.
type Subscription struct {
	Name string
	SubscriptionProperties
}

// CreateQueue creates a queue. One that exists is left as it is.
func (s *Server) CreateQueue(ctx context.Context, name string, p QueueProperties) error {
	_, err := s.broker.CreateQueue(ctx, name, p)
	return ensured(err, "queue "+name)
}

// CreateTopic creates a topic. One that exists is left as it is.
func (s *Server) CreateTopic(ctx context.Context, name string, p TopicProperties) error {
	_, err := s.broker.CreateTopic(ctx, name, p)
	return ensured(err, "topic "+name)
}

// CreateSubscription creates a subscription of a topic. One that exists is left
// as it is.
func (s *Server) CreateSubscription(ctx context.Context, topic, name string, p SubscriptionProperties) error {
	_, err := s.broker.CreateSubscription(ctx, topic, name, p)
	return ensured(err, "subscription "+topic+"/"+name)
}

func ensured(err error, what string) error {
	if err == nil || errors.Is(err, broker.EntityExists) {
		return nil
	}
	return fmt.Errorf("busemu: create %s: %w", what, err)
}

// ensureTopology creates what is missing.
func (s *Server) ensureTopology(ctx context.Context, t *Topology) error {
	for _, q := range t.Queues {
		if err := s.CreateQueue(ctx, q.Name, q.QueueProperties); err != nil {
			return err
		}
	}
	for _, topic := range t.Topics {
		if err := s.CreateTopic(ctx, topic.Name, topic.TopicProperties); err != nil {
			return err
		}
		for _, sub := range topic.Subscriptions {
			if err := s.CreateSubscription(ctx, topic.Name, sub.Name, sub.SubscriptionProperties); err != nil {
				return err
			}
		}
	}
	return nil
}
