package broker

import (
	"strings"
)

// queue, topic and subscription are the entities. catalog.mu guards their properties; the
// pointers to inlet and holders never change.
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

func (s *subscription) path() string { return s.topic.name + subscriptionsIn + s.name }

// holders are the message stores of a queue or a subscription.
type holders struct {
	main, deadLetter *holder
	transfer         *holder // the transfer dead-letter queue, always empty
}

// holderID returns the id in the store of an entity's main (0) or dead-letter (1) holder.
func holderID(entity uint32, which uint32) uint32 { return entity<<1 | which }

const (
	deadLetterSuffix = "/$DeadLetterQueue"
	transferSuffix   = "/$Transfer/$DeadLetterQueue"
	subscriptionsIn  = "/Subscriptions/"
)

func newHolders(in *inlet, entity uint32, path string, sessions bool, c holderConfig, deadLettersTo string) holders {
	dead := holderConfig{lockDuration: c.lockDuration, maxDelivery: c.maxDelivery, receiveDisabled: c.receiveDisabled}
	s := holders{
		main:     newHolder(in.site(path), holderID(entity, 0), in, sessions, c),
		transfer: newHolder(kept(in.site(path+transferSuffix)), 0, in, false, dead),
	}
	dead.forwardTo = deadLettersTo
	s.deadLetter = newHolder(kept(in.site(path+deadLetterSuffix)), holderID(entity, 1), in, false, dead)
	s.main.deadLetter = s.deadLetter
	return s
}

// all lists the holders. A topic has main only.
func (s holders) all() []*holder {
	if s.deadLetter == nil {
		return []*holder{s.main}
	}
	return []*holder{s.main, s.deadLetter, s.transfer}
}

// detachAll closes all receivers.
func (s holders) detachAll(reason error, later *callbacks) {
	for _, h := range s.all() {
		h.mu.Lock()
		h.detach(reason, later)
		h.mu.Unlock()
	}
}

// retire closes all receivers for good and returns what the holders leave in the store.
func (s holders) retire(later *callbacks) (left []remains) {
	for _, h := range s.all() {
		h.mu.Lock()
		h.detach(detached(h.path), later)
		h.gone = true
		left = append(left, h.remains())
		h.e.timers.set(&h.alarm, 0)
		h.mu.Unlock()
	}
	return left
}

// reconfigure applies changed properties to the holders.
func (s holders) reconfigure(c holderConfig, deadLettersTo string, later *callbacks) {
	for _, h := range s.all() {
		h.mu.Lock()
		switch h {
		case s.main:
			h.config = c
		default:
			h.config.lockDuration, h.config.receiveDisabled = c.lockDuration, c.receiveDisabled
		}
		if h == s.deadLetter {
			h.config.forwardTo = deadLettersTo
		}
		h.forward(later)
		h.mu.Unlock()
	}
}

// counts returns the runtime figures of a queue or a subscription.
func (s holders) counts() (c Counts) {
	h := s.main
	h.mu.Lock()
	c.Scheduled = int64(h.waitingForTime())
	c.Deferred = int64(h.deferred)
	c.Locked = int64(h.inFlight)
	c.Active = int64(h.index.n) - c.Scheduled
	c.Sessions = int64(len(h.sessions))
	c.SizeBytes = h.index.bytes
	h.mu.Unlock()
	s.deadLetter.mu.Lock()
	c.DeadLetter = int64(s.deadLetter.index.n)
	s.deadLetter.mu.Unlock()
	return c
}

// directory finds entities by name. Guarded by catalog.mu.
type directory struct {
	queues map[string]*queue // by name in lower case
	topics map[string]*topic
}

// node is the target of a path: exactly one of queue, topic and subscription is set.
type node struct {
	queue        *queue
	topic        *topic
	subscription *subscription
	suffix       string
}

// find resolves a path. Called with catalog.mu.
func (d *directory) find(path string) (n node, ok bool) {
	p := strings.ToLower(strings.Trim(path, "/"))
	for _, suffix := range []string{transferSuffix, deadLetterSuffix} {
		if rest, cut := strings.CutSuffix(p, strings.ToLower(suffix)); cut {
			p, n.suffix = rest, suffix
			break
		}
	}
	if n.queue = d.queues[p]; n.queue != nil {
		return n, true
	}
	if n.topic = d.topics[p]; n.topic != nil {
		return n, n.suffix == ""
	}
	if i := strings.LastIndex(p, strings.ToLower(subscriptionsIn)); i >= 0 {
		if t := d.topics[p[:i]]; t != nil {
			n.subscription = t.subscriptions[p[i+len(subscriptionsIn):]]
		}
	}
	return n, n.subscription != nil
}

// checkNameFree returns EntityExists if a queue or topic has the name.
func (d *directory) checkNameFree(name string) error {
	key := strings.ToLower(name)
	if d.queues[key] != nil || d.topics[key] != nil {
		return errorf(EntityExists, "The messaging entity '%s' already exists.", name)
	}
	return nil
}

func (d *directory) topic(name string) (*topic, error) {
	if t := d.topics[strings.ToLower(name)]; t != nil {
		return t, nil
	}
	return nil, notFound(name)
}

func (d *directory) subscription(topic, name string) (*subscription, error) {
	if t := d.topics[strings.ToLower(topic)]; t != nil {
		if s := t.subscriptions[strings.ToLower(name)]; s != nil {
			return s, nil
		}
	}
	return nil, notFound(topic + subscriptionsIn + name)
}

// entityRecord is the stored form of an entity. Exactly one of Queue, Topic and Subscription
// is set.
type entityRecord struct {
	ID           uint32
	Of           uint32 `json:",omitempty"` // topic of a subscription
	Name         string
	Queue        *Queue        `json:",omitempty"`
	Topic        *Topic        `json:",omitempty"`
	Partitions   int           `json:",omitempty"` // of a partitioned queue or topic
	Subscription *Subscription `json:",omitempty"`
	Times
}
