package broker

import (
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/isoduration"
	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// Forever is the default of every time span that is unlimited by default: the
// service's P10675199DT2H48M5.4775807S, cut to the range of a time.Duration.
const Forever = isoduration.Forever

// Status is an entity's status.
type Status string

// The statuses of an entity.
const (
	StatusActive          Status = "Active"
	StatusDisabled        Status = "Disabled"
	StatusSendDisabled    Status = "SendDisabled"
	StatusReceiveDisabled Status = "ReceiveDisabled"
)

// Queue describes a queue. Zero values mean the service's defaults.
type Queue struct {
	Name                              string        `json:"-"` // stored beside the properties
	LockDuration                      time.Duration // default 1 min, at most 5 min
	MaxSizeMB                         int           // default 1024, times the partitions
	MaxMessageSizeKB                  int           // default 256, Premium 1024
	RequiresDuplicateDetection        bool          // fixed at creation
	RequiresSession                   bool          // fixed at creation
	Partitioned                       bool          // over Options.Partitions; fixed at creation
	DefaultTTL                        time.Duration // default Forever
	AutoDeleteOnIdle                  time.Duration // default Forever, at least 5 min
	DuplicateDetectionWindow          time.Duration // default 10 min, 20 s to 7 days
	DeadLetteringOnExpiration         bool
	MaxDeliveryCount                  int    // default 10; then a message is dead-lettered
	Status                            Status // default StatusActive
	ForwardTo, ForwardDeadLetteredTo  string // name of a queue or topic
	DisableBatchedOperations, Express bool   // stored, without effect
	UserMetadata                      string
	Opaque                            []byte // XML that the admin API stores with the entity; leave it nil
}

// Topic describes a topic and its subscriptions. Zero values mean the service's defaults.
type Topic struct {
	Name                              string        `json:"-"`
	MaxSizeMB                         int           // default 1024, times the partitions
	MaxMessageSizeKB                  int           // default 256, Premium 1024
	RequiresDuplicateDetection        bool          // fixed at creation
	Partitioned                       bool          // over Options.Partitions; fixed at creation
	DefaultTTL                        time.Duration // default Forever
	AutoDeleteOnIdle                  time.Duration // default Forever, at least 5 min
	DuplicateDetectionWindow          time.Duration // default 10 min, 20 s to 7 days
	Status                            Status        // default StatusActive
	DisableOrdering                   bool          // stored, without effect
	DisableBatchedOperations, Express bool          // stored, without effect
	UserMetadata                      string
	Opaque                            []byte // XML that the admin API stores with the entity; leave it nil
	// Subscriptions are created with the topic by busemu's Server. The broker ignores them.
	Subscriptions []Subscription `json:"-"`
}

// Subscription describes a subscription of a topic. Zero values mean the service's defaults.
type Subscription struct {
	Name                             string        `json:"-"`
	LockDuration                     time.Duration // default 1 min, at most 5 min
	RequiresSession                  bool          // fixed at creation
	DefaultTTL                       time.Duration // default Forever
	AutoDeleteOnIdle                 time.Duration // default Forever, at least 5 min
	DeadLetteringOnExpiration        bool
	DeadLetteringOnFilterErrors      bool   // default false: the message is dropped for this subscription
	MaxDeliveryCount                 int    // default 10; then a message is dead-lettered
	Status                           Status // default StatusActive
	ForwardTo, ForwardDeadLetteredTo string // name of a queue or topic
	DisableBatchedOperations         bool   // stored, without effect
	UserMetadata                     string
	Opaque                           []byte // XML that the admin API stores with the entity; leave it nil
	// Rules are the first rules, used by CreateSubscription only. Default: one rule
	// $Default that lets every message through.
	Rules []Rule
}

// Rule is a named filter of a subscription, with an optional action. A message that
// passes any rule of a subscription goes to it.
type Rule struct {
	Name   string
	Filter sqlfilter.Filter
	// Action changes the copy of a message that passes the rule. Each rule with an action
	// makes a copy of its own; the rules without share one.
	Action    *sqlfilter.Action
	Opaque    []byte    // XML that the admin API stores with the rule; leave it nil
	CreatedAt time.Time // set by the broker
}

// DefaultRule is the name of the rule of a subscription created without rules.
const DefaultRule = "$Default"

// Counts are an entity's runtime figures. For a topic, Active, DeadLetter and the like are
// zero; Scheduled counts the topic's scheduled messages.
type Counts struct {
	Active, DeadLetter, Scheduled, Deferred, Locked int64
	// TransferDeadLetter and Transfer are always zero, because there are no transfer queues.
	Transfer, TransferDeadLetter int64
	Sessions                     int64
	SizeBytes                    int64
	SubscriptionCount            int
	SQLFilters                   int // True, False and SQL rules of all subscriptions
	CorrelationFilters           int
}

// Times are when an entity was created, changed and last used.
type Times struct{ CreatedAt, UpdatedAt, AccessedAt time.Time }

// QueueInfo is a queue with its defaults, counts and times.
type QueueInfo struct {
	Queue
	Counts
	Times
}

// TopicInfo is a topic with its defaults, counts and times.
type TopicInfo struct {
	Topic
	Counts
	Times
}

// SubscriptionInfo is a subscription with its defaults, counts and times. Rules are in order
// of creation.
type SubscriptionInfo struct {
	Topic string
	Subscription
	Counts
	Times
}

// EntityKind is the kind of entity at a path.
type EntityKind uint8

// The kinds of entity.
const (
	KindQueue EntityKind = iota + 1
	KindTopic
	KindSubscription
	KindDeadLetter // the dead-letter queue of a queue or a subscription
	KindTransferDeadLetter
)

// EntityInfo describes the entity at the other end of a link.
type EntityInfo struct {
	Path               string // with the case in which the entity was created
	Kind               EntityKind
	RequiresSession    bool
	Partitioned        bool
	DuplicateDetection bool
	MaxMessageSize     int // bytes
	MaxBatchSize       int // bytes
	LockDuration       time.Duration
	Status             Status
}

// Counters count an entity's events since it was created or the broker was opened. They are
// not stored.
type Counters struct {
	Accepted     int64 // messages acknowledged, duplicates included
	Duplicates   int64 // acknowledged and dropped
	Refused      int64 // messages of refused batches
	Enqueued     int64 // messages that became visible, in all subscriptions of a topic
	Delivered    int64
	Completed    int64 // receive-and-delete included
	Abandoned    int64
	Released     int64
	Deferred     int64
	DeadLettered int64
	Expired      int64
	LocksLost    int64
	SessionsHeld int64 // sessions accepted so far
}
