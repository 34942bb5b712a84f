package broker

import (
	"time"
)

// watchIdle sets the alarm of an entity with AutoDeleteOnIdle. The entity is deleted when it
// has not been used for that long and no link to it is open. used returns the time of its last
// use. Called with catalog.mu.
//
// Source: the section Idleness of "Message expiration" in the service's documentation. So the use
// of a subscription is one of its topic, and forwarding is a receiver that never leaves.
func (c *catalog) watchIdle(a *alarm, limit time.Duration, used func() time.Time, remove func(*administration)) {
	if limit == Forever {
		c.timers.set(a, 0)
		return
	}
	a.fire = func(now int64) {
		_, _ = c.change(func(change *administration) error {
			if end := nanos(used().Add(limit)); end > now {
				c.timers.set(a, end)
				return nil
			}
			remove(change)
			return nil
		})
	}
	c.timers.set(a, nanos(used().Add(limit)))
}

func (c *catalog) watchQueue(q *queue) {
	used := func() time.Time {
		if q.props.ForwardTo != "" {
			return c.Now()
		}
		return c.latest(q.times, q.inlet, q.holders.all())
	}
	c.watchIdle(&q.idle, q.props.AutoDeleteOnIdle, used, func(a *administration) { c.dropQueue(a, q) })
}

func (c *catalog) watchTopic(t *topic) {
	used := func() time.Time {
		last := c.latest(t.times, t.inlet, nil)
		for _, s := range t.subscriptions {
			if at := c.subscriptionUsed(s); at.After(last) {
				last = at
			}
		}
		return last
	}
	c.watchIdle(&t.idle, t.props.AutoDeleteOnIdle, used, func(a *administration) { c.dropTopic(a, t) })
}

func (c *catalog) watchSubscription(s *subscription) {
	used := func() time.Time { return c.subscriptionUsed(s) }
	c.watchIdle(&s.idle, s.props.AutoDeleteOnIdle, used, func(a *administration) { c.dropSubscription(a, s) })
}

func (c *catalog) subscriptionUsed(s *subscription) time.Time {
	if s.props.ForwardTo != "" {
		return c.Now()
	}
	return c.latest(s.times, nil, s.holders.all())
}

// latest returns when an entity was last used; that is now if a link is open.
func (e *engine) latest(t Times, in *inlet, all []*holder) time.Time {
	last := t.UpdatedAt
	later := func(open bool, used int64) {
		switch {
		case open:
			last = e.Now()
		case used != 0 && at(used).After(last):
			last = at(used)
		}
	}
	if in != nil {
		in.mu.Lock()
		later(len(in.senders) > 0, in.lastUsed.Load())
		in.mu.Unlock()
	}
	for _, h := range all {
		h.mu.Lock()
		later(len(h.receivers)+len(h.waiters.list) > 0, h.lastUsed.Load())
		h.mu.Unlock()
	}
	return last
}
