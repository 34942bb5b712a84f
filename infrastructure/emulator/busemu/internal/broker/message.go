package broker

import (
	"time"
)

// Message is an incoming message. The broker keeps Payload and the strings; the caller must
// not change them afterwards. The broker does not keep the slice of messages passed to a call.
type Message struct {
	// Payload is the encoded message, opaque to the broker. Its length counts for limits and
	// quotas.
	Payload []byte
	// MessageID identifies the message to duplicate detection. An empty one is never a
	// duplicate.
	MessageID string
	// SessionID is the session, if HasSession is set. The empty string is a valid session.
	SessionID  string
	HasSession bool
	// PartitionKey is empty if not set. If a session is set too, they must be equal.
	PartitionKey string
	// TTL is the time to live. 0 means the entity's default, which is also the maximum.
	TTL time.Duration
	// ScheduledAt is when the message becomes visible. Zero or past: at once.
	ScheduledAt time.Time
}

// Property is an application property set by a settlement. Value is AMQP encoded and opaque to
// the broker.
type Property struct {
	Name  string
	Value []byte
}

// State is a message's state, with the values of the annotation x-opt-message-state.
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

// Delivery is an outgoing message: delivered, received by sequence number or peeked. Payload
// and the strings are shared and must not be changed.
type Delivery struct {
	Payload        []byte
	SequenceNumber int64
	// EnqueuedSequenceNumber is the sequence number from the first entity: the topic, or the
	// entity that forwarded or dead-lettered the message. 0: the same one.
	EnqueuedSequenceNumber int64
	EnqueuedAt             time.Time
	// ExpiresAt is zero for a message that never expires. TTL includes the entity's default, 0
	// if unlimited.
	ExpiresAt time.Time
	TTL       time.Duration
	// ScheduledAt is set on a message in state Scheduled only.
	ScheduledAt time.Time
	// LockToken and LockedUntil are zero for a message that was peeked, or received and
	// deleted.
	LockToken   LockToken
	LockedUntil time.Time
	// DeliveryCount counts failed deliveries: 0 at the first delivery.
	DeliveryCount uint32
	State         State

	MessageID    string
	SessionID    string
	HasSession   bool
	PartitionKey string

	// DeadLetterSource, DeadLetterReason and DeadLetterDescription are set in dead-letter
	// queues. The source is the path of the original entity.
	DeadLetterSource      string
	DeadLetterReason      string
	DeadLetterDescription string
	// Properties are application properties set by settlements; they replace those of
	// the same name in the payload.
	Properties []Property
}

// Partition is the partition of a message, or of a batch that is not sent yet. The zero value
// is for an entity that is not partitioned.
type Partition struct {
	Entity string // queue or topic
	HasKey bool   // it has a session id, a partition key, or an id for duplicate detection
	key    string
	number int // 0 for a message without key that is not sent yet
}

// Differs reports whether two messages of one entity are in different partitions, or would be
// with another number of partitions.
func (p Partition) Differs(q Partition) bool {
	return p.number != q.number || p.HasKey && q.HasKey && p.key != q.key
}
