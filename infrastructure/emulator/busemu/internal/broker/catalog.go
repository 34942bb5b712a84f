package broker

import (
	"sync"
)

// catalog has the entities of a namespace and administers them.
type catalog struct {
	*engine

	mu sync.RWMutex // guards the fields below and the entities' properties
	directory
	lastID uint32 // the last one given to an entity; see holderID
}

func (c *catalog) holderAt(path string) (*holder, error) {
	if c.closed.Load() {
		return nil, closed()
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	n, ok := c.find(path)
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

func (c *catalog) inletAt(path string) (*inlet, error) {
	if c.closed.Load() {
		return nil, closed()
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	n, ok := c.find(path)
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

// newPartitions returns the number of partitions of a new entity, 0 if it is not partitioned.
// In the Premium tier a namespace is partitioned as a whole, so that an entity cannot differ
// from it.
func (c *catalog) newPartitions(partitioned bool) (int, error) {
	n := c.Partitions()
	switch {
	case c.options.Premium && n > 1 && !partitioned:
		return 0, errorf(ArgumentError, "Non-partitioned entities are not allowed in partitioned namespace. The property EnablePartitioning must be set to true.")
	case c.options.Premium && n == 1 && partitioned:
		return 0, errorf(ArgumentError, "The namespace is of the Premium tier and is not partitioned, so its entities cannot be: "+
			"leave EnablePartitioning out, or give the namespace partitions.")
	case !partitioned:
		return 0, nil
	}
	return n, nil
}
