package busemu

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// CreateQueue creates a queue. An existing one is left unchanged.
func (n *namespace) CreateQueue(ctx context.Context, q Queue) error {
	_, err := n.broker.CreateQueue(ctx, q)
	return created(err, "queue "+q.Name)
}

// CreateTopic creates a topic and its subscriptions. Existing ones are left unchanged.
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

// CreateSubscription creates a subscription of a topic. An existing one is left unchanged.
func (n *namespace) CreateSubscription(ctx context.Context, topic string, sub Subscription) error {
	if len(sub.Rules) == 0 {
		sub.Rules = nil // an empty list means the default rule here, and no rule to the broker
	}
	sub.Rules = slices.Clone(sub.Rules)
	for i, r := range sub.Rules {
		if r.Action != nil && r.Action.Expression == "" && len(r.Action.Parameters) == 0 {
			sub.Rules[i].Action = nil
		}
	}
	_, err := n.broker.CreateSubscription(ctx, topic, sub)
	return created(err, "subscription "+topic+"/"+sub.Name)
}

// created wraps the error of a creation. It returns nil if the entity existed.
func created(err error, what string) error {
	if err == nil || errors.Is(err, broker.EntityExists) {
		return nil
	}
	return fmt.Errorf("busemu: create %s: %w", what, err)
}

// createTopology creates missing entities, in an order in which forwarding finds its targets.
func (n *namespace) createTopology(ctx context.Context, t *Topology) error {
	for _, topic := range t.Topics {
		topic.Subscriptions = nil
		if err := n.CreateTopic(ctx, topic); err != nil {
			return err
		}
	}
	var early []Queue // created before the entities they forward to
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

// canForward reports whether the targets of a queue's forwarding exist.
func (n *namespace) canForward(q Queue) bool {
	for _, to := range []string{q.ForwardTo, q.ForwardDeadLetteredTo} {
		if _, err := n.broker.Lookup(to); to != "" && err != nil {
			return false
		}
	}
	return true
}
