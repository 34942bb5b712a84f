package broker

import (
	"sync"
	"sync/atomic"
)

// inlet accepts the messages for one queue or topic.
type inlet struct {
	e    *engine
	find func(path string) (*inlet, error) // finds the inlet of another entity
	path string
	// partitioned, partitions (1 if not partitioned) and the existence of a history are fixed
	// at creation.
	partitioned bool
	partitions  int
	// rest has the scheduled messages and numbers all messages. It is a queue's main holder,
	// or a topic's own.
	rest *holder
	ledger
	lastUsed atomic.Int64

	mu     sync.Mutex
	config inletConfig
	gone   bool
	// sweepArmed reports that the alarm sweep is set.
	sweepArmed bool
	turn       int // partition of the last batch without key
	targets    []*target
	history    *history // nil without duplicate detection
	sweep      alarm    // drops old ids of history
	senders    map[*Sender]struct{}
	counters   Counters // Accepted, Duplicates, Refused
}

// inletConfig has those properties of an entity that its inlet applies.
type inletConfig struct {
	maxMessage, maxBatch int
	quota                int64
	quotaOverride        int64 // 0 = none
	defaultTTL           int64 // 0 = none
	needsSession         bool
	sendDisabled         bool
}

// target is a holder to which an inlet sends messages. Guarded by the inlet's mu.
type target struct {
	holder           *holder
	ttl              int64 // limit of the time to live, 0 = none
	session          bool
	matcher          *matcher // nil: matches all messages
	deadLetterErrors bool     // dead-letter messages on which the matcher fails
}

// Sender sends to one queue or topic. Safe for concurrent use.
type Sender struct {
	inlet  *inlet
	closed func(error)
	gone   error // why it was closed; guarded by inlet.mu
}

// Send accepts all messages of the batch or none. It returns at once; done is called when the
// batch is durable or refused. Batches of one sender become visible in the order of the calls.
func (s *Sender) Send(batch []Message, done func(error)) {
	s.inlet.send(batch, &intake{inlet: s.inlet, sender: s, done: done})
}

// Close closes the sender. Batches in flight are still completed.
func (s *Sender) Close() {
	s.inlet.mu.Lock()
	defer s.inlet.mu.Unlock()
	if s.gone == nil {
		s.gone = errorf(DetachForced, "The sender to '%s' is closed.", s.inlet.path)
	}
	s.inlet.lastUsed.Store(s.inlet.e.now())
	delete(s.inlet.senders, s)
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

// detach closes all senders.
func (in *inlet) detach(reason error, later *callbacks) {
	for s := range in.senders {
		s.gone = reason
		if s.closed != nil {
			later.call(func() { s.closed(reason) })
		}
	}
	clear(in.senders)
}

// reconfigure applies changed properties.
func (in *inlet) reconfigure(c inletConfig, window int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	c.quotaOverride = in.config.quotaOverride
	in.config = c
	if in.history != nil {
		in.history.window = window
	}
}

// retire closes the inlet for good.
func (in *inlet) retire(reason error, later *callbacks) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.detach(reason, later)
	in.gone = true
	in.e.timers.set(&in.sweep, 0)
}

func (in *inlet) detachAll(reason error, later *callbacks) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.detach(reason, later)
}

func (in *inlet) read() Counters {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.counters
}

// newInlet makes the inlet of an entity. A partitioned entity without a number of partitions
// was stored by a version that had one partition only, and keeps one.
func newInlet(e *engine, find func(string) (*inlet, error), id uint32, path string, partitioned bool, partitions int) *inlet {
	in := &inlet{
		e: e, find: find, path: path, ledger: ledger{id: id, durable: e.store != nil},
		partitioned: partitioned, partitions: max(1, partitions), senders: make(map[*Sender]struct{}),
	}
	in.sweep.fire = in.fireSweep
	return in
}

// site returns the site of a holder for the inlet's messages.
func (in *inlet) site(path string) site {
	return site{e: in.e, path: path, ledger: &in.ledger, partitions: in.partitions}
}

// at finds the inlet of another entity.
func (in *inlet) at(path string) (upstream, error) {
	other, err := in.find(path)
	if err != nil {
		return nil, err
	}
	return other, nil
}
