package busemu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// Topology is a set of entities to be created at the start.
type Topology struct {
	Queues []Queue
	Topics []Topic
}

// Queue describes a queue. Zero values stand for the service's defaults.
type Queue struct {
	Name                       string
	LockDuration               time.Duration // default 1 min, at most 5 min
	MaxDeliveryCount           int           // default 10; then a message is dead-lettered
	DefaultTTL                 time.Duration // default unlimited
	DeadLetteringOnExpiration  bool
	RequiresSession            bool
	RequiresDuplicateDetection bool
	DuplicateDetectionWindow   time.Duration // default 10 min, 20 s to 7 days
	ForwardTo                  string        // name of a queue or topic
	ForwardDeadLetteredTo      string        // name of a queue or topic
	Partitioned                bool          // over Options.Partitions; cannot be changed
	MaxSizeMB                  int           // default 1024, times the partitions
	MaxMessageSizeKB           int           // default 256, Premium 1024
	AutoDeleteOnIdle           time.Duration // default never, at least 5 min
	Status                     Status        // default StatusActive
}

// Topic describes a topic and its subscriptions. Zero values stand for the service's
// defaults.
type Topic struct {
	Name                       string
	DefaultTTL                 time.Duration // default unlimited
	RequiresDuplicateDetection bool
	DuplicateDetectionWindow   time.Duration // default 10 min, 20 s to 7 days
	Partitioned                bool          // over Options.Partitions; cannot be changed
	MaxSizeMB                  int           // default 1024, times the partitions
	MaxMessageSizeKB           int           // default 256, Premium 1024
	AutoDeleteOnIdle           time.Duration // default never, at least 5 min
	Status                     Status        // default StatusActive
	Subscriptions              []Subscription
}

// Subscription describes a subscription of a topic. Zero values stand for the service's
// defaults.
type Subscription struct {
	Name                        string
	LockDuration                time.Duration // default 1 min, at most 5 min
	MaxDeliveryCount            int           // default 10; then a message is dead-lettered
	DefaultTTL                  time.Duration // default unlimited
	DeadLetteringOnExpiration   bool
	DeadLetteringOnFilterErrors bool // default: the message is dropped for this subscription
	RequiresSession             bool
	ForwardTo                   string        // name of a queue or topic
	ForwardDeadLetteredTo       string        // name of a queue or topic
	AutoDeleteOnIdle            time.Duration // default never, at least 5 min
	Status                      Status        // default StatusActive
	Rules                       []Rule        // default: one that lets everything through
}

// Rule is a named filter of a subscription. A message that passes any rule of a
// subscription goes to it.
type Rule struct {
	Name   string
	Filter Filter
	// Action is an SQL action, SET and REMOVE, on the copy of a message that passes the
	// rule. Each rule with an action makes a copy of its own.
	Action string
}

// Filter decides whether a message passes a rule.
type Filter struct {
	Kind FilterKind
	// Correlation goes with CorrelationFilter: every field that is set must be equal.
	Correlation Fields
	// Expression goes with SQLFilter.
	Expression string
}

// FilterKind is the kind of a Filter.
type FilterKind = sqlfilter.Kind

// The kinds of filter.
const (
	TrueFilter        = sqlfilter.KindTrue
	FalseFilter       = sqlfilter.KindFalse
	CorrelationFilter = sqlfilter.KindCorrelation
	SQLFilter         = sqlfilter.KindSQL
)

// Fields are what a correlation filter compares.
type Fields struct {
	MessageID        string
	CorrelationID    string
	To               string
	ReplyTo          string
	Subject          string
	SessionID        string
	ReplyToSessionID string
	ContentType      string
	Properties       map[string]any // application properties
}

// CreateQueue creates a queue. One that exists is left as it is.
func (s *Server) CreateQueue(ctx context.Context, q Queue) error {
	_, err := s.broker.CreateQueue(ctx, q.Name, broker.QueueProperties{
		LockDuration: q.LockDuration, MaxDeliveryCount: q.MaxDeliveryCount, DefaultTTL: q.DefaultTTL,
		DeadLetteringOnExpiration: q.DeadLetteringOnExpiration, RequiresSession: q.RequiresSession,
		RequiresDuplicateDetection: q.RequiresDuplicateDetection, DuplicateDetectionWindow: q.DuplicateDetectionWindow,
		ForwardTo: q.ForwardTo, ForwardDeadLetteredTo: q.ForwardDeadLetteredTo, Partitioned: q.Partitioned,
		MaxSizeMB: q.MaxSizeMB, MaxMessageSizeKB: q.MaxMessageSizeKB, AutoDeleteOnIdle: q.AutoDeleteOnIdle, Status: q.Status,
	})
	return created(err, "queue "+q.Name)
}

// CreateTopic creates a topic and its subscriptions. What exists is left as it is.
func (s *Server) CreateTopic(ctx context.Context, t Topic) error {
	_, err := s.broker.CreateTopic(ctx, t.Name, broker.TopicProperties{
		DefaultTTL: t.DefaultTTL, RequiresDuplicateDetection: t.RequiresDuplicateDetection,
		DuplicateDetectionWindow: t.DuplicateDetectionWindow, Partitioned: t.Partitioned,
		MaxSizeMB: t.MaxSizeMB, MaxMessageSizeKB: t.MaxMessageSizeKB, AutoDeleteOnIdle: t.AutoDeleteOnIdle, Status: t.Status,
	})
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
	var rules []broker.Rule
	for _, r := range sub.Rules {
		rules = append(rules, r.broker())
	}
	_, err := s.broker.CreateSubscription(ctx, topic, sub.Name, broker.SubscriptionProperties{
		LockDuration: sub.LockDuration, MaxDeliveryCount: sub.MaxDeliveryCount, DefaultTTL: sub.DefaultTTL,
		DeadLetteringOnExpiration: sub.DeadLetteringOnExpiration, DeadLetteringOnFilterErrors: sub.DeadLetteringOnFilterErrors,
		RequiresSession: sub.RequiresSession, ForwardTo: sub.ForwardTo, ForwardDeadLetteredTo: sub.ForwardDeadLetteredTo,
		AutoDeleteOnIdle: sub.AutoDeleteOnIdle, Status: sub.Status, Rules: rules,
	})
	return created(err, "subscription "+topic+"/"+sub.Name)
}

func (r *Rule) broker() broker.Rule {
	out := broker.Rule{Name: r.Name, Filter: sqlfilter.Filter{
		Kind: r.Filter.Kind, Correlation: r.Filter.Correlation.broker(), Expression: r.Filter.Expression,
	}}
	if r.Action != "" {
		out.Action = &sqlfilter.Action{Expression: r.Action}
	}
	return out
}

func (f *Fields) broker() sqlfilter.Fields {
	return sqlfilter.Fields{
		MessageID: f.MessageID, CorrelationID: f.CorrelationID, To: f.To, ReplyTo: f.ReplyTo, Subject: f.Subject,
		SessionID: f.SessionID, ReplyToSessionID: f.ReplyToSessionID, ContentType: f.ContentType, Properties: f.Properties,
	}
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
			_, err = s.broker.UpdateQueue(ctx, q.Name, info.QueueProperties)
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
