package broker

// Counters returns an entity's counters. A topic's include its subscriptions'.
func (b *Broker) Counters(path string) (Counters, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	n, ok := b.find(path)
	if !ok {
		return Counters{}, notFound(path)
	}
	var c Counters
	switch {
	case n.queue != nil && n.suffix == "":
		c = n.queue.inlet.read()
		c.add(n.queue.holders.main.read())
	case n.queue != nil:
		c = n.queue.holders.deadLetter.read()
	case n.topic != nil:
		c = n.topic.inlet.read()
		for _, s := range n.topic.subscriptions {
			c.add(s.holders.main.read())
		}
	case n.suffix == "":
		c = n.subscription.holders.main.read()
	default:
		c = n.subscription.holders.deadLetter.read()
	}
	return c, nil
}

func (c *Counters) add(o Counters) {
	c.Accepted += o.Accepted
	c.Duplicates += o.Duplicates
	c.Refused += o.Refused
	c.Enqueued += o.Enqueued
	c.Delivered += o.Delivered
	c.Completed += o.Completed
	c.Abandoned += o.Abandoned
	c.Released += o.Released
	c.Deferred += o.Deferred
	c.DeadLettered += o.DeadLettered
	c.Expired += o.Expired
	c.LocksLost += o.LocksLost
	c.SessionsHeld += o.SessionsHeld
}
