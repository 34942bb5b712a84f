package broker

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// CreateQueue creates a queue and returns it with its defaults. EntityExists, ArgumentError.
func (c *catalog) CreateQueue(ctx context.Context, p Queue) (QueueInfo, error) {
	if err := validateQueue(c.engine, &p); err != nil {
		return QueueInfo{}, err
	}
	var info QueueInfo
	err := c.administer(ctx, func(a *administration) error {
		if err := c.checkNameFree(p.Name); err != nil {
			return err
		}
		if err := c.forwardable(p.ForwardTo, p.ForwardDeadLetteredTo); err != nil {
			return err
		}
		partitions, err := c.newPartitions(p.Partitioned)
		if err != nil {
			return err
		}
		c.lastID++
		q := c.newQueue(entityRecord{ID: c.lastID, Name: p.Name, Queue: &p, Partitions: partitions, Times: c.newTimes()})
		info = q.info()
		a.save(q.id, q.record())
		return nil
	})
	return info, err
}

// newQueue adds a queue to the catalog.
func (c *catalog) newQueue(r entityRecord) *queue {
	q := &queue{id: r.ID, name: r.Name, props: *r.Queue, times: r.Times}
	q.props.Name = r.Name
	q.inlet = newInlet(c.engine, c.inletAt, holderID(q.id, 0), q.name, q.props.Partitioned, r.Partitions)
	q.holders = newHolders(q.inlet, q.id, q.name, q.props.RequiresSession, q.holderConfig(), forwardName(q.props.ForwardDeadLetteredTo))
	q.inlet.rest = q.holders.main
	q.inlet.targets = []*target{{holder: q.holders.main}}
	if q.props.RequiresDuplicateDetection {
		q.inlet.history = newHistory(q.props.DuplicateDetectionWindow)
	}
	q.inlet.config = q.inletConfig(c.engine)
	c.queues[strings.ToLower(q.name)] = q
	c.watchQueue(q)
	return q
}

func (q *queue) inletConfig(e *engine) inletConfig {
	p := &q.props
	return inletConfig{
		maxMessage: e.messageLimit(p.MaxMessageSizeKB), maxBatch: e.messageLimit(p.MaxMessageSizeKB),
		quota: int64(p.MaxSizeMB) << 20, defaultTTL: limit(p.DefaultTTL), needsSession: p.RequiresSession,
		sendDisabled: p.Status == StatusDisabled || p.Status == StatusSendDisabled,
	}
}

func (q *queue) holderConfig() holderConfig {
	p := &q.props
	return holderConfig{
		lockDuration: int64(p.LockDuration), maxDelivery: uint32(p.MaxDeliveryCount), deadLetterExpired: p.DeadLetteringOnExpiration,
		receiveDisabled: p.Status == StatusDisabled || p.Status == StatusReceiveDisabled,
		forwardTo:       forwardName(p.ForwardTo),
	}
}

// UpdateQueue changes a queue. Links stay open, because the service closes them a moment after
// its answer (see DetachAll).
func (c *catalog) UpdateQueue(ctx context.Context, p Queue) (QueueInfo, error) {
	if err := validateQueue(c.engine, &p); err != nil {
		return QueueInfo{}, err
	}
	var info QueueInfo
	err := c.administer(ctx, func(a *administration) error {
		q := c.queues[strings.ToLower(p.Name)]
		if q == nil {
			return notFound(p.Name)
		}
		var f faults
		f.unless(p.RequiresSession == q.props.RequiresSession, "The value for the RequiresSession property of an existing Queue cannot be changed.")
		f.unless(p.RequiresDuplicateDetection == q.props.RequiresDuplicateDetection, "The value for the RequiresDuplicateDetection property of an existing Queue cannot be changed.")
		f.unless(p.Partitioned == q.props.Partitioned, "Partitioning cannot be changed for Queue.")
		if err := f.err(); err != nil {
			return err
		}
		if err := c.forwardable(p.ForwardTo, p.ForwardDeadLetteredTo); err != nil {
			return err
		}
		p.Name = q.name // with the case in which it was created
		q.props, q.times.UpdatedAt = p, c.Now()
		q.inlet.reconfigure(q.inletConfig(c.engine), int64(p.DuplicateDetectionWindow))
		c.watchQueue(q)
		q.holders.reconfigure(q.holderConfig(), forwardName(p.ForwardDeadLetteredTo), &a.later)
		info = q.info()
		a.save(q.id, q.record())
		return nil
	})
	return info, err
}

// Queue returns a queue, or NotFound.
func (c *catalog) Queue(name string) (QueueInfo, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if q := c.queues[strings.ToLower(name)]; q != nil {
		return q.info(), nil
	}
	return QueueInfo{}, notFound(name)
}

// Queues lists all queues by name.
func (c *catalog) Queues() []QueueInfo {
	c.mu.RLock()
	defer c.mu.RUnlock()
	list := make([]QueueInfo, 0, len(c.queues))
	for _, q := range c.queues {
		list = append(list, q.info())
	}
	slices.SortFunc(list, func(x, y QueueInfo) int { return cmp.Compare(x.Name, y.Name) })
	return list
}

// DeleteQueue deletes a queue and its messages.
func (c *catalog) DeleteQueue(ctx context.Context, name string) error {
	return c.administer(ctx, func(a *administration) error {
		q := c.queues[strings.ToLower(name)]
		if q == nil {
			return notFound(name)
		}
		c.dropQueue(a, q)
		return nil
	})
}

func (c *catalog) dropQueue(a *administration, q *queue) {
	delete(c.queues, strings.ToLower(q.name))
	c.timers.set(&q.idle, 0)
	q.inlet.retire(detached(q.name), &a.later)
	a.drop(q.id, q.holders)
}

func (q *queue) info() QueueInfo {
	i := QueueInfo{Queue: q.props, Counts: q.holders.counts(), Times: q.times}
	i.SizeBytes = q.inlet.size.Load()
	i.AccessedAt = accessed(q.times, q.inlet.lastUsed.Load(), q.holders.main.lastUsed.Load())
	return i
}

func (q *queue) record() entityRecord {
	return entityRecord{ID: q.id, Name: q.name, Queue: &q.props, Partitions: q.inlet.recorded(), Times: q.times}
}
