package busemu

import (
	"feedbox/infrastructure/emulator/busemu/internal/broker"
	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// Topology is a set of entities to create at the start.
type Topology struct {
	Queues []Queue
	Topics []Topic
}

type (
	// Queue is a queue.
	Queue = broker.Queue
	// Topic is a topic with the subscriptions to create with it.
	Topic = broker.Topic
	// Subscription is a subscription of a topic.
	Subscription = broker.Subscription
	// Rule is a rule of a subscription: a filter and optionally an action.
	Rule = broker.Rule
	// Filter selects the messages of a rule.
	Filter = sqlfilter.Filter
	// Fields are the fields of a correlation filter.
	Fields = sqlfilter.Fields
	// Action changes the messages that a rule selects.
	Action = sqlfilter.Action
	// Parameter is a parameter of an SQL filter or action.
	Parameter = sqlfilter.Parameter
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

// Status is an entity's status.
type Status = broker.Status

// The statuses of an entity.
const (
	StatusActive          = broker.StatusActive
	StatusDisabled        = broker.StatusDisabled
	StatusSendDisabled    = broker.StatusSendDisabled
	StatusReceiveDisabled = broker.StatusReceiveDisabled
)

// Counters count events of an entity since it was created or the emulator started. They are
// not stored.
type Counters = broker.Counters
