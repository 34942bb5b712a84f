package broker

import (
	"time"
)

// Message is one message on its way in. The broker keeps Payload and the strings;
// the caller must not change them afterwards. The slice of messages given to a call
// is not kept.
type Message struct {
	// Payload is the message as it is to be delivered. Opaque. Its length is the
	// message's size for limits and quotas.
	Payload []byte
	// MessageID identifies the message to duplicate detection. Empty: never a duplicate.
	MessageID string
	// SessionID is the session, if HasSession. The empty string is a valid session.
	SessionID  string
	HasSession bool
	// PartitionKey is empty if not set. If a session is set too they must be equal.
	PartitionKey string
	// TTL is the time to live. 0 means the entity's default, which is also the maximum.
	TTL time.Duration
	// ScheduledAt is when the message becomes visible. Zero or past: now.
	ScheduledAt time.Time
}

// Property is one application property set by a settlement. Value is the AMQP
// encoding of the value, which the broker stores and hands back as it is.
type Property struct {
	Name  string
	Value []byte
}

// State is the state of a message as the annotation x-opt-message-state has it.
type State uint8

// The states of a message.
const (
	Active    State = 0
	Deferred  State = 1
	Scheduled State = 2
)

// LockToken identifies one locking of one message: the 16 bytes of a UUID in RFC
// 4122 order. The zero token is no token.
type LockToken [16]byte

// Delivery is a message on its way out: delivered, received by sequence number or
// peeked. Payload and the strings are shared and must not be changed.
type Delivery struct {
	Payload        []byte
	SequenceNumber int64
	// EnqueuedSequenceNumber is the sequence number that the message was first given
	// (by its topic, or before it was forwarded or dead-lettered). 0: the same one.
	EnqueuedSequenceNumber int64
	EnqueuedAt             time.Time
	// ExpiresAt is zero for a message that never expires. TTL is the time to live
	// after the entity's default was applied, 0 if unlimited.
	ExpiresAt time.Time
	TTL       time.Duration
	// ScheduledAt is set on a message in state Scheduled only.
	ScheduledAt time.Time
	// LockToken and LockedUntil are zero on a message that was peeked or that was
	// received and deleted.
	LockToken   LockToken
	LockedUntil time.Time
	// DeliveryCount counts earlier deliveries that failed: 0 at the first delivery.
	DeliveryCount uint32
	State         State

	MessageID    string
	SessionID    string
	HasSession   bool
	PartitionKey string

	// DeadLetterSource, DeadLetterReason and DeadLetterDescription are set in
	// dead-letter queues. The source is the path of the entity the message was
	// dead-lettered from.
	DeadLetterSource      string
	DeadLetterReason      string
	DeadLetterDescription string
	// Properties are application properties set by settlements; they replace those of
	// the same name in the payload.
	Properties []Property
}

// Partition says where in a partitioned entity a message is or goes. The zero value
// stands for an entity that is not partitioned.
type Partition struct {
	Entity string // queue or topic
	HasKey bool   // it has a session id, a partition key, or an id that duplicates are found by
	key    string
	number int // of a message without key that is not sent yet: 0
}

// Differs reports whether two messages of one entity are of different partitions, or may
// be once their keys are spread otherwise.
func (p Partition) Differs(q Partition) bool {
	return p.number != q.number || p.HasKey && q.HasKey && p.key != q.key
}
