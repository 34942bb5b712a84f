package busemu

import (
	"context"
	"errors"
	"fmt"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// CreateQueue creates a queue. One that exists is left as it is.
func (n *namespace) CreateQueue(ctx context.Context, q Queue) error {
	_, err := n.broker.CreateQueue(ctx, q)
	return created(err, "queue "+q.Name)
}

// CreateTopic creates a topic and its subscriptions. What exists is left as it is.
func (n *namespace) CreateTopic(ctx context.Context, t Topic) error {
	_, err := n.broker.CreateTopic(ctx, t)
	if err := created(err, "topic "+t.Name); err != nil {
		return err
	}
	for _, sub := range t.Subscriptions {
		if err := n.CreateSubscription(ctx, t.Name, sub); err != nil {
			return err
		}
	}
	return nil
}

// CreateSubscription creates a subscription of a topic. One that exists is left
// as it is.
func (n *namespace) CreateSubscription(ctx context.Context, topic string, sub Subscription) error {
	_, err := n.broker.CreateSubscription(ctx, topic, sub)
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
func (n *namespace) createTopology(ctx context.Context, t *Topology) error {
	for _, topic := range t.Topics {
		topic.Subscriptions = nil
		if err := n.CreateTopic(ctx, topic); err != nil {
			return err
		}
	}
	var early []Queue // made before the entities they forward to
	for _, q := range t.Queues {
		if _, err := n.broker.Queue(q.Name); err != nil && !n.canForward(q) {
			early = append(early, q)
			q.ForwardTo, q.ForwardDeadLetteredTo = "", ""
		}
		if err := n.CreateQueue(ctx, q); err != nil {
			return err
		}
	}
	for _, q := range early {
		info, err := n.broker.Queue(q.Name)
		if err == nil {
			info.ForwardTo, info.ForwardDeadLetteredTo = q.ForwardTo, q.ForwardDeadLetteredTo
			_, err = n.broker.UpdateQueue(ctx, info.Queue)
		}
		if err != nil {
			return fmt.Errorf("busemu: forward from queue %s: %w", q.Name, err)
		}
	}
	for _, topic := range t.Topics {
		for _, sub := range topic.Subscriptions {
			if err := n.CreateSubscription(ctx, topic.Name, sub); err != nil {
				return err
			}
		}
	}
	return nil
}

// canForward reports whether what a queue forwards to is there.
func (n *namespace) canForward(q Queue) bool {
	for _, to := range []string{q.ForwardTo, q.ForwardDeadLetteredTo} {
		if _, err := n.broker.Lookup(to); to != "" && err != nil {
			return false
		}
	}
	return true
}
