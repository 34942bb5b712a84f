package broker

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
	"time"
)

// body is what all copies of a message share: a topic with many subscriptions holds
// one. Immutable but for refs.
type body struct {
	payload    []byte
	id         string
	session    string
	partition  string
	ttl        int64 // nanoseconds as sent, 0 = none
	owner      *ledger
	sequence   int64        // key of the payload's own record, if shared
	refs       atomic.Int32 // with storage, if not shared; else see shares
	hops       uint8        // how often it was forwarded; forgotten on restart
	hasSession bool
	shared     bool // the payload has a record of its own
}

// overlay is what settlements added to a message. Immutable: a change makes a new one.
type overlay struct {
	source, reason, description string
	properties                  []Property
}

// place says where in its holder a message is.
type place uint8

const (
	nowhere     place = iota // not yet visible, or gone
	inReady                  // in a ready list
	inLocked                 // locked, or being removed for a receiver
	inDeferred               // set aside
	inScheduled              // waits for its time
)

// message is one message in one holder, about 120 bytes. The first group is
// immutable; the rest is guarded by the holder's mu.
type message struct {
	body        *body
	sequence    int64
	firstSeq    int64 // sequence number given first, 0 = sequence
	enqueuedAt  int64 // unix nanoseconds, as are all times
	expiresAt   int64 // 0 = never
	scheduledAt int64 // 0 = not scheduled

	session     *session
	overlay     *overlay
	prev, next  *message // in a ready list, or in a list of locked messages
	lockedUntil int64    // without session; a session's messages are locked with it
	nonce       uint64   // of the present lock, 0 = not locked
	expiryIndex int32    // in the holder's expiry heap plus 1
	heapIndex   int32    // in a ready list's or the scheduled heap plus 1
	attempts    uint16   // failed deliveries so far
	place       place
	unsaved     uint16 // changes that are not durable yet
	deferred    bool   // returns to inDeferred when given back
	recorded    bool   // has a record of its mutable state
}

// token is the lock token of the present lock: the nonce, and the sequence number
// hidden behind it, so that no table of locks is needed to find the message.
func (m *message) token() (t LockToken) {
	binary.BigEndian.PutUint64(t[:8], m.nonce)
	binary.BigEndian.PutUint64(t[8:], uint64(m.sequence)^scramble(m.nonce))
	return t
}

// open is the reverse of token.
func (t LockToken) open() (sequence int64, nonce uint64) {
	nonce = binary.BigEndian.Uint64(t[:8])
	return int64(binary.BigEndian.Uint64(t[8:]) ^ scramble(nonce)), nonce
}

func scramble(nonce uint64) uint64 {
	return bits.RotateLeft64(nonce*0x9e3779b97f4a7c15, 29)
}

func (m *message) expired(now int64) bool { return m.expiresAt != 0 && m.expiresAt <= now }

// hasState reports whether m differs from what was enqueued.
func (m *message) hasState() bool { return m.attempts > 0 || m.deferred || m.overlay != nil }

// origin is the sequence number m was given first.
func (m *message) origin() int64 {
	if m.firstSeq != 0 {
		return m.firstSeq
	}
	return m.sequence
}

// delivery is m as a client sees it, without its lock.
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

// merge returns m's overlay with properties laid over it.
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

// messageOverhead is roughly what a message takes in memory beside its payload.
const messageOverhead = 320

func (m *message) cost() int64 { return int64(len(m.body.payload) + messageOverhead) }

// unshared is a body like b that nothing refers to yet, with its payload in the message's
// own record.
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

// String names the place in a Dump.
func (p place) String() string {
	return [...]string{"nowhere", "ready", "locked", "deferred", "scheduled"}[p]
}
