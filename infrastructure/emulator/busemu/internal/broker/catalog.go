package broker

import (
	"strings"
	"time"
)

// queue, topic and subscription are the entities. Their properties are guarded by
// Broker.mu; pointers to inlet and holders never change.
type queue struct {
	id      uint32
	name    string
	props   Queue
	times   Times
	idle    alarm
	inlet   *inlet
	holders holders
}

type topic struct {
	id            uint32
	name          string
	props         Topic
	times         Times
	idle          alarm
	inlet         *inlet
	subscriptions map[string]*subscription // by name in lower case
}

type subscription struct {
	id      uint32
	topic   *topic
	name    string
	props   Subscription
	times   Times
	idle    alarm
	target  *target
	holders holders
}

// holders are the holders of a queue or a subscription.
type holders struct {
	main, deadLetter *holder
	transfer         *holder // the transfer dead-letter queue: always empty
}

// holderID is the id of an entity's main (0) and dead-letter (1) holder in the store.
func holderID(entity uint32, which uint32) uint32 { return entity<<1 | which }

const (
	deadLetterSuffix = "/$DeadLetterQueue"
	transferSuffix   = "/$Transfer/$DeadLetterQueue"
	subscriptionsIn  = "/Subscriptions/"
)

func (b *Broker) newHolders(entity uint32, path string, in *inlet, sessions bool, c holderConfig, deadLettersTo string) holders {
	dead := holderConfig{lockDuration: c.lockDuration, maxDelivery: c.maxDelivery, receiveDisabled: c.receiveDisabled, keepsExpired: true}
	s := holders{
		main:     b.newHolder(holderID(entity, 0), path, in, sessions, c),
		transfer: b.newHolder(0, path+transferSuffix, in, false, dead),
	}
	dead.forwardTo = deadLettersTo
	s.deadLetter = b.newHolder(holderID(entity, 1), path+deadLetterSuffix, in, false, dead)
	s.main.deadLetter = s.deadLetter
	return s
}

// all are the holders there are: a topic has main only.
func (s holders) all() []*holder {
	if s.deadLetter == nil {
		return []*holder{s.main}
	}
	return []*holder{s.main, s.deadLetter, s.transfer}
}

// detachAll ends all receivers.
func (s holders) detachAll(reason error, later *callbacks) {
	for _, h := range s.all() {
		h.mu.Lock()
		h.detach(reason, later)
		h.mu.Unlock()
	}
}

// retire ends all receivers for good and returns what was left.
func (s holders) retire(later *callbacks) (left []remains) {
	for _, h := range s.all() {
		h.mu.Lock()
		h.detach(detached(h.path), later)
		h.gone = true
		left = append(left, h.remains())
		h.b.timers.set(&h.alarm, 0)
		h.mu.Unlock()
	}
	return left
}

func (in *inlet) detachAll(reason error, later *callbacks) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.detach(reason, later)
}

// place is what a path leads to: exactly one of queue, topic and subscription is set.
type node struct {
	queue        *queue
	topic        *topic
	subscription *subscription
	suffix       string
}

// find resolves a path. Called with b.mu.
func (b *Broker) find(path string) (n node, ok bool) {
	p := strings.ToLower(strings.Trim(path, "/"))
	for _, suffix := range []string{transferSuffix, deadLetterSuffix} {
		if rest, cut := strings.CutSuffix(p, strings.ToLower(suffix)); cut {
			p, n.suffix = rest, suffix
			break
		}
	}
	if n.queue = b.queues[p]; n.queue != nil {
		return n, true
	}
	if n.topic = b.topics[p]; n.topic != nil {
		return n, n.suffix == ""
	}
	if i := strings.LastIndex(p, strings.ToLower(subscriptionsIn)); i >= 0 {
		if t := b.topics[p[:i]]; t != nil {
			n.subscription = t.subscriptions[p[i+len(subscriptionsIn):]]
		}
	}
	return n, n.subscription != nil
}

func (b *Broker) holderAt(path string) (*holder, error) {
	if b.closed.Load() {
		return nil, closed()
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	n, ok := b.find(path)
	if !ok {
		return nil, notFound(path)
	}
	var s holders
	switch {
	case n.queue != nil:
		s = n.queue.holders
	case n.subscription != nil:
		s = n.subscription.holders
	default:
		return nil, errorf(NotAllowed, "'%s' is a topic: messages are received from its subscriptions.", n.topic.name)
	}
	h := s.main
	switch n.suffix {
	case deadLetterSuffix:
		h = s.deadLetter
	case transferSuffix:
		h = s.transfer
	}
	h.touch()
	return h, nil
}

func (b *Broker) inletAt(path string) (*inlet, error) {
	if b.closed.Load() {
		return nil, closed()
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	n, ok := b.find(path)
	switch {
	case !ok:
		return nil, notFound(path)
	case n.suffix != "" || n.subscription != nil:
		return nil, errorf(NotAllowed, "Messages are sent to queues and topics, not to '%s'.", path)
	case n.queue != nil:
		return n.queue.inlet, nil
	}
	return n.topic.inlet, nil
}

// Lookup tells what path leads to; NotFound if nothing. Paths are compared without
// regard to case: queue, topic, topic/Subscriptions/name, and for queues and
// subscriptions the suffixes /$DeadLetterQueue and /$Transfer/$DeadLetterQueue (which
// is always empty).
func (b *Broker) Lookup(path string) (EntityInfo, error) {
	if b.closed.Load() {
		return EntityInfo{}, closed()
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	n, ok := b.find(path)
	if !ok {
		return EntityInfo{}, notFound(path)
	}
	var i EntityInfo
	switch {
	case n.queue != nil:
		p := &n.queue.props
		i = EntityInfo{
			Path: n.queue.name, Kind: KindQueue, RequiresSession: p.RequiresSession, Partitioned: p.Partitioned,
			DuplicateDetection: p.RequiresDuplicateDetection, MaxMessageSize: b.messageLimit(p.MaxMessageSizeKB), LockDuration: p.LockDuration, Status: p.Status,
		}
	case n.topic != nil:
		p := &n.topic.props
		i = EntityInfo{
			Path: n.topic.name, Kind: KindTopic, Partitioned: p.Partitioned,
			DuplicateDetection: p.RequiresDuplicateDetection, MaxMessageSize: b.messageLimit(p.MaxMessageSizeKB), Status: p.Status,
		}
	default:
		p := &n.subscription.props
		i = EntityInfo{
			Path: n.subscription.path(), Kind: KindSubscription, RequiresSession: p.RequiresSession,
			LockDuration: p.LockDuration, Status: p.Status, MaxMessageSize: b.messageLimit(n.subscription.topic.props.MaxMessageSizeKB),
		}
	}
	i.MaxBatchSize = i.MaxMessageSize
	i.Path += n.suffix
	switch n.suffix {
	case deadLetterSuffix:
		i.Kind, i.RequiresSession = KindDeadLetter, false
	case transferSuffix:
		i.Kind, i.RequiresSession = KindTransferDeadLetter, false
	}
	return i, nil
}

func (s *subscription) path() string { return s.topic.name + subscriptionsIn + s.name }

func (b *Broker) messageLimit(kb int) int { return min(kb<<10, b.maxMessageSize()) }

func notFound(path string) *Error {
	return errorf(NotFound, "The messaging entity '%s' could not be found.", path)
}

func detached(path string) *Error {
	return errorf(DetachForced, "The link is force detached: the entity '%s' has been deleted, updated or unexpectedly reloaded.", path)
}

func (h *holder) touch()   { h.lastUsed.Store(h.b.now()) }
func at(t int64) time.Time { return time.Unix(0, t) }
