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

// The entities of a namespace. A rule has a filter and optionally an action.
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

// Status is an entity's status.
type Status = broker.Status

// The statuses of an entity.
const (
	StatusActive          = broker.StatusActive
	StatusDisabled        = broker.StatusDisabled
	StatusSendDisabled    = broker.StatusSendDisabled
	StatusReceiveDisabled = broker.StatusReceiveDisabled
)

// Counters count events of an entity since the emulator started. They are not stored.
type Counters = broker.Counters
