package broker

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
	"time"
)

// body is shared by all copies of a message, in all subscriptions of a topic. Immutable,
// except for refs.
type body struct {
	payload    []byte
	id         string
	session    string
	partition  string
	ttl        int64 // nanoseconds as sent, 0 = none
	owner      *ledger
	sequence   int64        // of the payload's own record, if shared
	refs       atomic.Int32 // if the payload is not shared in the store; otherwise see shares
	hops       uint8        // number of forwards; lost on restart
	hasSession bool
	shared     bool // the payload has a record of its own
}

// overlay has the changes that settlements made to a message. It is immutable; a change makes
// a new one.
type overlay struct {
	source, reason, description string
	properties                  []Property
}

// place is the list or heap of a holder in which a message is.
type place uint8

const (
	nowhere     place = iota // not visible yet, or removed
	inReady                  // in a ready list
	inLocked                 // locked, or being removed for a receiver
	inDeferred               // set aside by a Defer
	inScheduled              // until its scheduled time
)

// message is one message in one holder, about 120 bytes. The first group of fields is
// immutable; the holder's mu guards the rest.
type message struct {
	body        *body
	sequence    int64
	firstSeq    int64 // sequence number at its first entity, 0 = sequence
	enqueuedAt  int64 // unix nanoseconds, like all times
	expiresAt   int64 // 0 = never
	scheduledAt int64 // 0 = not scheduled

	session     *session
	overlay     *overlay
	prev, next  *message // in a ready list or a list of locked messages
	lockedUntil int64    // without session; otherwise the session's lock applies
	nonce       uint64   // of the current lock, 0 = not locked
	expiryIndex int32    // index in the holder's expiry heap plus 1
	heapIndex   int32    // index in the heap of a ready list or of scheduled messages, plus 1
	attempts    uint16   // failed deliveries so far
	place       place
	unsaved     uint16 // changes not durable yet
	deferred    bool   // goes back to inDeferred when its lock ends
	recorded    bool   // has a state record
}

// token returns the lock token: the nonce, and the sequence number scrambled by it. A token
// thus leads to its message without a table of locks.
func (m *message) token() (t LockToken) {
	binary.BigEndian.PutUint64(t[:8], m.nonce)
	binary.BigEndian.PutUint64(t[8:], uint64(m.sequence)^scramble(m.nonce))
	return t
}

// open is the inverse of token.
func (t LockToken) open() (sequence int64, nonce uint64) {
	nonce = binary.BigEndian.Uint64(t[:8])
	return int64(binary.BigEndian.Uint64(t[8:]) ^ scramble(nonce)), nonce
}

func scramble(nonce uint64) uint64 {
	return bits.RotateLeft64(nonce*0x9e3779b97f4a7c15, 29)
}

func (m *message) expired(now int64) bool { return m.expiresAt != 0 && m.expiresAt <= now }

// hasState reports whether m has changed since it was enqueued.
func (m *message) hasState() bool { return m.attempts > 0 || m.deferred || m.overlay != nil }

// origin returns m's sequence number at its first entity.
func (m *message) origin() int64 {
	if m.firstSeq != 0 {
		return m.firstSeq
	}
	return m.sequence
}

// delivery returns m as a client sees it, without its lock.
func (m *message) delivery() Delivery {
	d := Delivery{
		Payload:                m.body.payload,
		SequenceNumber:         m.sequence,
		EnqueuedSequenceNumber: m.firstSeq,
		EnqueuedAt:             time.Unix(0, m.enqueuedAt),
		DeliveryCount:          uint32(m.attempts),
		MessageID:              m.body.id,
		SessionID:              m.body.session,
		HasSession:             m.body.hasSession,
		PartitionKey:           m.body.partition,
	}
	if m.expiresAt != 0 {
		d.ExpiresAt, d.TTL = time.Unix(0, m.expiresAt), time.Duration(m.expiresAt-m.enqueuedAt)
	}
	if m.deferred {
		d.State = Deferred
	}
	if m.place == inScheduled {
		d.State, d.ScheduledAt = Scheduled, time.Unix(0, m.scheduledAt)
	}
	if o := m.overlay; o != nil {
		d.DeadLetterSource, d.DeadLetterReason, d.DeadLetterDescription = o.source, o.reason, o.description
		d.Properties = o.properties
	}
	return d
}

// merge returns m's overlay with properties added, which replace those of the same name.
func (m *message) merge(properties []Property) *overlay {
	if len(properties) == 0 {
		return m.overlay
	}
	var o overlay
	if m.overlay != nil {
		o = *m.overlay
	}
	merged := make([]Property, 0, len(o.properties)+len(properties))
	for _, p := range o.properties {
		if !hasProperty(properties, p.Name) {
			merged = append(merged, p)
		}
	}
	merged = append(merged, properties...)
	o.properties = merged
	return &o
}

func hasProperty(properties []Property, name string) bool {
	for _, p := range properties {
		if p.Name == name {
			return true
		}
	}
	return false
}

// messageOverhead estimates the memory of a message without its payload.
const messageOverhead = 320

func (m *message) cost() int64 { return int64(len(m.body.payload) + messageOverhead) }

// unshared returns a copy of b without references, whose payload goes into the message's own
// record.
func (b *body) unshared() *body {
	return &body{
		payload: b.payload, id: b.id, session: b.session, partition: b.partition,
		ttl: b.ttl, owner: b.owner, hops: b.hops, hasSession: b.hasSession,
	}
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func at(t int64) time.Time { return time.Unix(0, t) }

// String returns the place's name in a Dump.
func (p place) String() string {
	return [...]string{"nowhere", "ready", "locked", "deferred", "scheduled"}[p]
}
