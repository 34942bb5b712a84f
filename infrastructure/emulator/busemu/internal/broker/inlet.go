package broker

import (
	"sync"
	"sync/atomic"
)

// inlet is where messages come in: one for each queue and each topic.
type inlet struct {
	b    *Broker
	path string
	kind EntityKind
	// partitioned, partitions (one if it is not partitioned) and whether there is a history
	// are fixed at creation.
	partitioned bool
	partitions  int
	// rest holds scheduled messages and counts sequence numbers: a queue's own holder, or
	// a topic's for that purpose.
	rest     *holder
	size     atomic.Int64 // bytes of payload held, also by dead-letter queues
	lastUsed atomic.Int64
	shares   shares // with storage

	mu     sync.Mutex
	config inletConfig
	gone   bool
	// sweepArmed says that the alarm sweep is set.
	sweepArmed bool
	turn       int // partition that a batch without key went to last
	targets    []*target
	history    *history // nil without duplicate detection
	sweep      alarm    // forgets old ids
	senders    map[*Sender]struct{}
	counters   Counters // Accepted, Duplicates, Refused
}

// inletConfig is the part of an entity's properties that its inlet obeys.
type inletConfig struct {
	maxMessage, maxBatch int
	quota                int64
	quotaOverride        int64 // 0 = none
	defaultTTL           int64 // 0 = none
	needsSession         bool
	sendDisabled         bool
}

// target is a holder that an inlet fills. Guarded by the inlet's mu.
type target struct {
	holder           *holder
	ttl              int64 // longest time to live, 0 = no limit
	session          bool
	matcher          *matcher // nil: everything
	deadLetterErrors bool     // of the matcher
}

// Sender sends to one queue or topic. Safe for concurrent use.
type Sender struct {
	inlet  *inlet
	closed func(error)
	gone   error // why it takes no more; guarded by inlet.mu
}

// OpenSender opens a sender. closed is called at most once, if the broker ends the
// sender (entity deleted: DetachForced, or DetachAll), not by Close.
func (b *Broker) OpenSender(path string, closed func(error)) (*Sender, error) {
	in, err := b.inletAt(path)
	if err != nil {
		return nil, err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := in.maySend(); err != nil {
		return nil, err
	}
	s := &Sender{inlet: in, closed: closed}
	in.senders[s] = struct{}{}
	return s, nil
}

// Send accepts all messages of the batch or none. It returns at once; done is called
// when the batch is durable or refused. Batches of one sender become visible in the
// order of the calls.
func (s *Sender) Send(batch []Message, done func(error)) {
	s.inlet.send(batch, &intake{inlet: s.inlet, sender: s, done: done})
}

// Close closes the sender. Batches under way are finished.
func (s *Sender) Close() {
	s.inlet.mu.Lock()
	defer s.inlet.mu.Unlock()
	if s.gone == nil {
		s.gone = errorf(DetachForced, "The sender to '%s' is closed.", s.inlet.path)
	}
	s.inlet.lastUsed.Store(s.inlet.b.now())
	delete(s.inlet.senders, s)
}

// Send is OpenSender, Send and Close in one.
func (b *Broker) Send(path string, batch []Message, done func(error)) {
	in, err := b.inletAt(path)
	if err != nil {
		done(err)
		return
	}
	in.send(batch, &intake{inlet: in, done: done})
}

func (in *inlet) maySend() error {
	switch {
	case in.gone:
		return notFound(in.path)
	case in.config.sendDisabled:
		return errorf(EntityDisabled, "Messaging entity '%s' is currently disabled.", in.path)
	}
	return nil
}

// detach ends all senders.
func (in *inlet) detach(reason error, later *callbacks) {
	for s := range in.senders {
		s.gone = reason
		if s.closed != nil {
			later.call(func() { s.closed(reason) })
		}
	}
	clear(in.senders)
}

// unshared is a body like b that nothing refers to yet, with its payload in the message's
// own record.
func (b *body) unshared() *body {
	return &body{
		payload: b.payload, id: b.id, session: b.session, partition: b.partition,
		ttl: b.ttl, owner: b.owner, hops: b.hops, hasSession: b.hasSession,
	}
}
