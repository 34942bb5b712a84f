package broker

import (
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// Forever is the default of every time span that is unlimited by default: the
// service's P10675199DT2H48M5.4775807S cut to what a time.Duration holds.
const Forever = time.Duration(1<<63 - 1)

// Status is an entity's status.
type Status string

// The statuses of an entity.
const (
	StatusActive          Status = "Active"
	StatusDisabled        Status = "Disabled"
	StatusSendDisabled    Status = "SendDisabled"
	StatusReceiveDisabled Status = "ReceiveDisabled"
)

// QueueProperties describe a queue. Zero values stand for the documented defaults.
type QueueProperties struct {
	LockDuration                      time.Duration // default 1 min, at most 5 min
	MaxSizeMB                         int           // default 1024 (16 times that if partitioned)
	MaxMessageSizeKB                  int           // default 256, Premium 1024
	RequiresDuplicateDetection        bool          // fixed at creation
	RequiresSession                   bool          // fixed at creation
	Partitioned                       bool          // fixed at creation
	DefaultTTL                        time.Duration // default Forever
	AutoDeleteOnIdle                  time.Duration // default Forever, at least 5 min
	DuplicateDetectionWindow          time.Duration // default 10 min, 20 s to 7 days
	DeadLetteringOnExpiration         bool
	MaxDeliveryCount                  int    // default 10
	Status                            Status // default Active
	ForwardTo, ForwardDeadLetteredTo  string // entity names in this namespace
	DisableBatchedOperations, Express bool   // stored, without effect
	UserMetadata                      string
	Opaque                            []byte // the connection engine's own, stored
}

// TopicProperties describe a topic. Zero values stand for the documented defaults.
type TopicProperties struct {
	MaxSizeMB                         int  // default 1024 (16 times that if partitioned)
	MaxMessageSizeKB                  int  // default 256, Premium 1024
	RequiresDuplicateDetection        bool // fixed at creation
	Partitioned                       bool // fixed at creation
	DefaultTTL                        time.Duration
	AutoDeleteOnIdle                  time.Duration
	DuplicateDetectionWindow          time.Duration
	Status                            Status
	SupportOrdering                   bool // stored, without effect
	DisableBatchedOperations, Express bool // stored, without effect
	UserMetadata                      string
	Opaque                            []byte
}

// SubscriptionProperties describe a subscription. Zero values stand for the
// documented defaults.
type SubscriptionProperties struct {
	LockDuration                     time.Duration
	RequiresSession                  bool // fixed at creation
	DefaultTTL                       time.Duration
	AutoDeleteOnIdle                 time.Duration
	DeadLetteringOnExpiration        bool
	DeadLetteringOnFilterErrors      bool // default false: the message is dropped for this subscription
	MaxDeliveryCount                 int
	Status                           Status
	ForwardTo, ForwardDeadLetteredTo string
	DisableBatchedOperations         bool // stored, without effect
	UserMetadata                     string
	Opaque                           []byte
	// Rules are the first rules. Used by CreateSubscription only; nil means one rule
	// $Default that is true.
	Rules []Rule
}

// Rule is a named filter of a subscription, with an optional action.
type Rule struct {
	Name   string
	Filter sqlfilter.Filter
	Action *sqlfilter.Action
	// Opaque is the connection engine's own, stored.
	Opaque    []byte
	CreatedAt time.Time // set by the broker
}

// DefaultRule is the name of the rule of a subscription that was given none.
const DefaultRule = "$Default"

// Counts are an entity's runtime figures. For a topic, Active, DeadLetter and the
// like are zero; Scheduled counts the messages that wait at the topic.
type Counts struct {
	Active, DeadLetter, Scheduled, Deferred, Locked int64
	// TransferDeadLetter and Transfer are always zero: there are no transfer queues.
	Transfer, TransferDeadLetter int64
	Sessions                     int64
	SizeBytes                    int64
	Subscriptions                int
	SQLFilters                   int // True, False and SQL rules of all subscriptions
	CorrelationFilters           int
}

// Times are when an entity was created, changed and last used.
type Times struct{ CreatedAt, UpdatedAt, AccessedAt time.Time }

// QueueInfo is a queue as it stands, defaults filled in.
type QueueInfo struct {
	Name string
	QueueProperties
	Counts
	Times
}

// TopicInfo is a topic as it stands, defaults filled in.
type TopicInfo struct {
	Name string
	TopicProperties
	Counts
	Times
}

// SubscriptionInfo is a subscription as it stands, defaults filled in. Rules is in
// order of creation.
type SubscriptionInfo struct {
	Topic, Name string
	SubscriptionProperties
	Counts
	Times
}

// EntityKind is what a path leads to.
type EntityKind uint8

// The kinds of entity.
const (
	KindQueue EntityKind = iota + 1
	KindTopic
	KindSubscription
	KindDeadLetter // the dead-letter queue of a queue or a subscription
	KindTransferDeadLetter
)

// EntityInfo is what a link needs to know of the entity at the other end.
type EntityInfo struct {
	Path               string // as it was created, not as it was asked for
	Kind               EntityKind
	RequiresSession    bool
	Partitioned        bool
	DuplicateDetection bool
	MaxMessageSize     int // bytes
	MaxBatchSize       int // bytes
	LockDuration       time.Duration
	Status             Status
}

// Counters count what happened to an entity since it was created or the broker
// opened. They are not stored.
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
