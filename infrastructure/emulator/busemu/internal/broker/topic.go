package broker

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// CreateTopic creates a topic and returns it with its defaults. EntityExists, ArgumentError.
func (c *catalog) CreateTopic(ctx context.Context, p Topic) (TopicInfo, error) {
	if err := validateTopic(c.engine, &p); err != nil {
		return TopicInfo{}, err
	}
	p.Subscriptions = nil // the catalog has them
	var info TopicInfo
	err := c.administer(ctx, func(a *administration) error {
		if err := c.checkNameFree(p.Name); err != nil {
			return err
		}
		partitions, err := c.newPartitions(p.Partitioned)
		if err != nil {
			return err
		}
		c.lastID++
		t := c.newTopic(entityRecord{ID: c.lastID, Name: p.Name, Topic: &p, Partitions: partitions, Times: c.newTimes()})
		info = t.info()
		a.save(t.id, t.record())
		return nil
	})
	return info, err
}

// newTopic adds a topic to the catalog.
func (c *catalog) newTopic(r entityRecord) *topic {
	t := &topic{id: r.ID, name: r.Name, props: *r.Topic, times: r.Times, subscriptions: make(map[string]*subscription)}
	t.props.Name = r.Name
	t.inlet = newInlet(c.engine, c.inletAt, holderID(t.id, 0), t.name, t.props.Partitioned, r.Partitions)
	t.inlet.rest = newHolder(kept(t.inlet.site(t.name)), holderID(t.id, 0), t.inlet, false, holderConfig{})
	if t.props.RequiresDuplicateDetection {
		t.inlet.history = newHistory(t.props.DuplicateDetectionWindow)
	}
	t.inlet.config = t.inletConfig(c.engine)
	c.topics[strings.ToLower(t.name)] = t
	c.watchTopic(t)
	return t
}

func (t *topic) inletConfig(e *engine) inletConfig {
	p := &t.props
	return inletConfig{
		maxMessage: e.messageLimit(p.MaxMessageSizeKB), maxBatch: e.messageLimit(p.MaxMessageSizeKB),
		quota: int64(p.MaxSizeMB) << 20, defaultTTL: limit(p.DefaultTTL),
		sendDisabled: p.Status == StatusDisabled || p.Status == StatusSendDisabled,
	}
}

// UpdateTopic changes a topic. Links stay open (see DetachAll).
func (c *catalog) UpdateTopic(ctx context.Context, p Topic) (TopicInfo, error) {
	if err := validateTopic(c.engine, &p); err != nil {
		return TopicInfo{}, err
	}
	var info TopicInfo
	err := c.administer(ctx, func(a *administration) error {
		t, err := c.topic(p.Name)
		if err != nil {
			return err
		}
		var f faults
		f.unless(p.RequiresDuplicateDetection == t.props.RequiresDuplicateDetection, "The value for the RequiresDuplicateDetection property of an existing Topic cannot be changed.")
		f.unless(p.Partitioned == t.props.Partitioned, "Partitioning cannot be changed for Topic.")
		if err := f.err(); err != nil {
			return err
		}
		p.Name = t.name // with the case in which it was created
		t.props, t.times.UpdatedAt = p, c.Now()
		c.watchTopic(t)
		t.inlet.reconfigure(t.inletConfig(c.engine), int64(p.DuplicateDetectionWindow))
		info = t.info()
		a.save(t.id, t.record())
		return nil
	})
	return info, err
}

// Topic returns a topic, or NotFound.
func (c *catalog) Topic(name string) (TopicInfo, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	t, err := c.topic(name)
	if err != nil {
		return TopicInfo{}, err
	}
	return t.info(), nil
}

// Topics lists all topics by name.
func (c *catalog) Topics() []TopicInfo {
	c.mu.RLock()
	defer c.mu.RUnlock()
	list := make([]TopicInfo, 0, len(c.topics))
	for _, t := range c.topics {
		list = append(list, t.info())
	}
	slices.SortFunc(list, func(x, y TopicInfo) int { return cmp.Compare(x.Name, y.Name) })
	return list
}

// DeleteTopic deletes a topic and its subscriptions.
func (c *catalog) DeleteTopic(ctx context.Context, name string) error {
	return c.administer(ctx, func(a *administration) error {
		t, err := c.topic(name)
		if err != nil {
			return err
		}
		c.dropTopic(a, t)
		return nil
	})
}

func (c *catalog) dropTopic(a *administration, t *topic) {
	delete(c.topics, strings.ToLower(t.name))
	c.timers.set(&t.idle, 0)
	t.inlet.retire(detached(t.name), &a.later)
	for _, s := range t.subscriptions {
		c.timers.set(&s.idle, 0)
		a.drop(s.id, s.holders)
	}
	a.drop(t.id, holders{main: t.inlet.rest})
}

func (t *topic) info() TopicInfo {
	i := TopicInfo{Topic: t.props, Times: t.times}
	rest := t.inlet.rest
	rest.mu.Lock()
	i.Scheduled = int64(rest.waitingForTime())
	rest.mu.Unlock()
	i.SubscriptionCount = len(t.subscriptions)
	for _, s := range t.subscriptions {
		for _, r := range s.props.Rules {
			if r.Filter.Kind == sqlfilter.KindCorrelation {
				i.CorrelationFilters++
			} else {
				i.SQLFilters++
			}
		}
	}
	i.SizeBytes = t.inlet.size.Load()
	i.AccessedAt = accessed(t.times, t.inlet.lastUsed.Load())
	return i
}

func (t *topic) record() entityRecord {
	return entityRecord{ID: t.id, Name: t.name, Topic: &t.props, Partitions: t.inlet.recorded(), Times: t.times}
}
