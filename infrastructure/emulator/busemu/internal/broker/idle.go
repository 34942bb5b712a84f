package broker

import "time"

// watchIdle sets the alarm of an entity with AutoDeleteOnIdle: it is deleted when it was
// not used for that long and no link to it is open. used is when it was last used. Called
// with b.mu.
func (b *Broker) watchIdle(a *alarm, limit time.Duration, used func() time.Time, remove func(*administration)) {
	if limit == Forever {
		b.timers.set(a, 0)
		return
	}
	a.fire = func(now int64) {
		_, _ = b.change(func(change *administration) error {
			if end := nanos(used().Add(limit)); end > now {
				b.timers.set(a, end)
				return nil
			}
			remove(change)
			return nil
		})
	}
	b.timers.set(a, nanos(used().Add(limit)))
}

func (b *Broker) watchQueue(q *queue) {
	used := func() time.Time { return b.latest(q.times, q.inlet, q.holders.all()) }
	b.watchIdle(&q.idle, q.props.AutoDeleteOnIdle, used, func(a *administration) { b.dropQueue(a, q) })
}

func (b *Broker) watchTopic(t *topic) {
	used := func() time.Time { return b.latest(t.times, t.inlet, nil) }
	b.watchIdle(&t.idle, t.props.AutoDeleteOnIdle, used, func(a *administration) { b.dropTopic(a, t) })
}

func (b *Broker) watchSubscription(s *subscription) {
	used := func() time.Time { return b.latest(s.times, nil, s.holders.all()) }
	b.watchIdle(&s.idle, s.props.AutoDeleteOnIdle, used, func(a *administration) { b.dropSubscription(a, s) })
}

// latest is when an entity was last used: now, if a link is open.
func (b *Broker) latest(t Times, in *inlet, all []*holder) time.Time {
	last := t.UpdatedAt
	later := func(open bool, used int64) {
		switch {
		case open:
			last = b.Now()
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
		later(len(h.receivers)+len(h.waiters) > 0, h.lastUsed.Load())
		h.mu.Unlock()
	}
	return last
}
