package broker

import (
	"context"
	"time"
)

// Sketch of the surface, for the connection engine to be written against. Each
// function moves to the file of its feature as that is written.

// Broker holds the entities of one namespace. Safe for concurrent use.
type Broker struct{}

// Open opens or creates a broker. It fails on a damaged store.
func Open(*Options) (*Broker, error) { panic("broker: not yet") }

// Close ends all receivers (their Closed is called), lets accepted work become
// durable and stops the goroutines. Calls after Close fail with OperationCancelled.
func (b *Broker) Close() error { panic("broker: not yet") }

// Now is the broker's clock: Options.Now plus what Advance added.
func (b *Broker) Now() time.Time { panic("broker: not yet") }

// Advance moves the broker's clock forward and does everything that is due by then
// before it returns.
func (b *Broker) Advance(d time.Duration) { panic("broker: not yet") }

// Lookup tells what path leads to; NotFound if nothing. Paths are compared without
// regard to case: queue, topic, topic/Subscriptions/name, and for queues and
// subscriptions the suffixes /$DeadLetterQueue and /$Transfer/$DeadLetterQueue (which
// is always empty).
func (b *Broker) Lookup(path string) (EntityInfo, error) { panic("broker: not yet") }

// Sender sends to one queue or topic.
type Sender struct{}

// OpenSender opens a sender. closed is called at most once, if the broker ends the
// sender (entity changed or deleted: DetachForced), not by Close.
func (b *Broker) OpenSender(path string, closed func(error)) (*Sender, error) {
	panic("broker: not yet")
}

// Send accepts all messages of the batch or none. It returns at once; done is called
// when the batch is durable or refused. Batches of one sender become visible in the
// order of the calls.
func (s *Sender) Send(batch []Message, done func(error)) { panic("broker: not yet") }

// Close closes the sender. Batches under way are finished.
func (s *Sender) Close() { panic("broker: not yet") }

// Send is OpenSender, Send and Close in one.
func (b *Broker) Send(path string, batch []Message, done func(error)) { panic("broker: not yet") }

// Mode is how a receiver takes messages.
type Mode uint8

// The modes of a receiver.
const (
	PeekLock Mode = iota
	ReceiveAndDelete
)

// ReceiverOptions configure a receiver.
type ReceiverOptions struct {
	Mode Mode
	// Deliver is given messages as credit allows; required. The slice is the broker's
	// and is used again after the call. Called with the entity's lock held, one call at
	// a time for each receiver: it must not block and must not call the broker.
	Deliver func([]Delivery)
	// Closed is called at most once, if the broker ends the receiver: SessionLockLost,
	// DetachForced (entity changed or deleted), OperationCancelled (broker closed). Not
	// called after Close.
	Closed func(error)
}

// Receiver takes messages from a queue, a subscription, a dead-letter queue, or one
// session of the first two. Safe for concurrent use.
type Receiver struct{}

// OpenReceiver opens a receiver without session. It has no credit. NotAllowed if the
// entity requires sessions.
func (b *Broker) OpenReceiver(path string, o ReceiverOptions) (*Receiver, error) {
	panic("broker: not yet")
}

// AcceptOptions say which session to accept.
type AcceptOptions struct {
	// Session is the session to accept; nil means the next one that has messages and is
	// held by nobody.
	Session *string
	// Timeout is how long to wait for a next session. Default 65 s, the service's.
	Timeout time.Duration
}

// AcceptSession locks a session and opens a receiver on it, without credit. opened is
// called once: with the receiver, or with an error (NotFound, NotAllowed,
// SessionCannotBeLocked, Timeout, OperationCancelled). cancel gives up waiting: opened
// is then called with OperationCancelled, unless a session was granted before; its
// receiver must be closed by whoever gets it.
func (b *Broker) AcceptSession(path string, a AcceptOptions, o ReceiverOptions, opened func(*Receiver, error)) (cancel func()) {
	panic("broker: not yet")
}

// Path is the entity's path as it was created.
func (r *Receiver) Path() string { panic("broker: not yet") }

// Session is the id of the session, and whether the receiver has one.
func (r *Receiver) Session() (id string, ok bool) { panic("broker: not yet") }

// SessionLockedUntil is when the session's lock expires, zero without session.
func (r *Receiver) SessionLockedUntil() time.Time { panic("broker: not yet") }

// SetCredit sets the credit as an AMQP flow does (AMQP 1.0 §2.6.7): as of deliveryCount
// deliveries the receiver has room for credit more. Deliveries count from 0, modulo
// 2^32. Messages that are ready are delivered before it returns, except that
// ReceiveAndDelete on a durable broker delivers after the removal is durable.
func (r *Receiver) SetCredit(deliveryCount, credit uint32) { panic("broker: not yet") }

// AddCredit adds to the credit.
func (r *Receiver) AddCredit(n uint32) { panic("broker: not yet") }

// Drain gives up the credit that no message could use. drained is called after the
// last delivery with the delivery count, advanced by the credit given up.
func (r *Receiver) Drain(drained func(deliveryCount uint32)) { panic("broker: not yet") }

// Close closes the receiver. A session is released at once and its unsettled messages
// return to their places, not counted as failed deliveries. Locks on messages without
// session outlive the receiver.
func (r *Receiver) Close() { panic("broker: not yet") }

// Settle settles a message of this receiver's entity. done is called when that is
// durable, or with MessageLockLost.
func (r *Receiver) Settle(token LockToken, o Outcome, done func(error)) { panic("broker: not yet") }

// Settle settles a message by its lock token alone.
func (b *Broker) Settle(path string, token LockToken, o Outcome, done func(error)) {
	panic("broker: not yet")
}

// RenewLocks renews the locks of messages (not of sessions) and returns their new
// ends, or renews none and fails with MessageLockLost.
func (b *Broker) RenewLocks(path string, tokens []LockToken) ([]time.Time, error) {
	panic("broker: not yet")
}

// RenewSessionLock renews a session's lock and returns its new end.
func (b *Broker) RenewSessionLock(path, session string) (time.Time, error) { panic("broker: not yet") }

// SessionState returns the state of a session, nil if none is set. SessionLockLost if
// nobody holds the session.
func (b *Broker) SessionState(path, session string) ([]byte, error) { panic("broker: not yet") }

// SetSessionState sets the state of a session that is held; nil clears it.
func (b *Broker) SetSessionState(path, session string, state []byte, done func(error)) {
	panic("broker: not yet")
}

// ListOptions say which sessions ListSessions lists.
type ListOptions struct {
	// UpdatedAfter lists sessions whose state was set after it. Zero lists sessions that
	// have messages or state.
	UpdatedAfter time.Time
	Skip, Top    int // Top 0: all
}

// ListSessions lists session ids in order.
func (b *Broker) ListSessions(path string, o ListOptions) ([]string, error) {
	panic("broker: not yet")
}

// PeekOptions say where to peek.
type PeekOptions struct {
	From    int64   // first sequence number
	Count   int     // at most that many; default 1
	Session *string // one session only
}

// Peek reads messages without locking them: ready, locked, deferred and scheduled
// ones, in order of sequence number.
func (b *Broker) Peek(path string, o PeekOptions) ([]Delivery, error) { panic("broker: not yet") }

// Schedule is Send for messages with ScheduledAt; done gets their sequence numbers. A
// duplicate gets the number 0.
func (b *Broker) Schedule(path string, batch []Message, done func([]int64, error)) {
	panic("broker: not yet")
}

// CancelScheduled removes scheduled messages, all or none (MessageNotFound).
func (b *Broker) CancelScheduled(path string, sequences []int64, done func(error)) {
	panic("broker: not yet")
}

// SequenceOptions say what ReceiveBySequence receives.
type SequenceOptions struct {
	Sequences []int64
	Mode      Mode
	// Session is required on entities with sessions and must be held.
	Session *string
}

// ReceiveBySequence receives deferred messages, all or none (MessageNotFound). done
// gets them when that is durable.
func (b *Broker) ReceiveBySequence(path string, o SequenceOptions, done func([]Delivery, error)) {
	panic("broker: not yet")
}

// CreateQueue creates a queue and returns it with its defaults filled in.
// EntityExists, ArgumentError.
func (b *Broker) CreateQueue(ctx context.Context, name string, p QueueProperties) (QueueInfo, error) {
	panic("broker: not yet")
}

// UpdateQueue changes a queue. Its senders and receivers are closed with DetachForced.
func (b *Broker) UpdateQueue(ctx context.Context, name string, p QueueProperties) (QueueInfo, error) {
	panic("broker: not yet")
}

// Queue returns a queue, or NotFound.
func (b *Broker) Queue(name string) (QueueInfo, error) { panic("broker: not yet") }

// Queues lists all queues by name.
func (b *Broker) Queues() []QueueInfo { panic("broker: not yet") }

// DeleteQueue deletes a queue and its messages.
func (b *Broker) DeleteQueue(ctx context.Context, name string) error { panic("broker: not yet") }

// CreateTopic creates a topic and returns it with its defaults filled in.
func (b *Broker) CreateTopic(ctx context.Context, name string, p TopicProperties) (TopicInfo, error) {
	panic("broker: not yet")
}

// UpdateTopic changes a topic.
func (b *Broker) UpdateTopic(ctx context.Context, name string, p TopicProperties) (TopicInfo, error) {
	panic("broker: not yet")
}

// Topic returns a topic, or NotFound.
func (b *Broker) Topic(name string) (TopicInfo, error) { panic("broker: not yet") }

// Topics lists all topics by name.
func (b *Broker) Topics() []TopicInfo { panic("broker: not yet") }

// DeleteTopic deletes a topic and its subscriptions.
func (b *Broker) DeleteTopic(ctx context.Context, name string) error { panic("broker: not yet") }

// CreateSubscription creates a subscription with its first rules.
func (b *Broker) CreateSubscription(ctx context.Context, topic, name string, p SubscriptionProperties) (SubscriptionInfo, error) {
	panic("broker: not yet")
}

// UpdateSubscription changes a subscription, not its rules.
func (b *Broker) UpdateSubscription(ctx context.Context, topic, name string, p SubscriptionProperties) (SubscriptionInfo, error) {
	panic("broker: not yet")
}

// Subscription returns a subscription, or NotFound.
func (b *Broker) Subscription(topic, name string) (SubscriptionInfo, error) {
	panic("broker: not yet")
}

// Subscriptions lists the subscriptions of a topic by name.
func (b *Broker) Subscriptions(topic string) ([]SubscriptionInfo, error) { panic("broker: not yet") }

// DeleteSubscription deletes a subscription and its messages.
func (b *Broker) DeleteSubscription(ctx context.Context, topic, name string) error {
	panic("broker: not yet")
}

// CreateRule adds a rule. EntityExists, ArgumentError (a filter that does not parse).
func (b *Broker) CreateRule(ctx context.Context, topic, subscription string, r Rule) (Rule, error) {
	panic("broker: not yet")
}

// UpdateRule replaces a rule.
func (b *Broker) UpdateRule(ctx context.Context, topic, subscription string, r Rule) (Rule, error) {
	panic("broker: not yet")
}

// DeleteRule removes a rule, or NotFound.
func (b *Broker) DeleteRule(ctx context.Context, topic, subscription, name string) error {
	panic("broker: not yet")
}

// SetStatus changes an entity's status and nothing else; its links are closed.
func (b *Broker) SetStatus(ctx context.Context, path string, s Status) error {
	panic("broker: not yet")
}

// SetQuota overrides an entity's size quota in bytes, for tests; 0 restores MaxSizeMB.
// Not stored.
func (b *Broker) SetQuota(path string, bytes int64) error { panic("broker: not yet") }

// ExpireLock expires the lock of a message now.
func (b *Broker) ExpireLock(path string, token LockToken) error { panic("broker: not yet") }

// ExpireSession expires the lock of a session now; its receiver is closed with
// SessionLockLost.
func (b *Broker) ExpireSession(path, session string) error { panic("broker: not yet") }

// DetachAll closes all senders and receivers of an entity with the given error.
func (b *Broker) DetachAll(path string, reason error) error { panic("broker: not yet") }

// Counters returns an entity's counters. A topic's include its subscriptions'.
func (b *Broker) Counters(path string) (Counters, error) { panic("broker: not yet") }

// Dump writes the entities, their counts, sessions and first messages as text, for
// failure messages.
func (b *Broker) Dump() string { panic("broker: not yet") }
