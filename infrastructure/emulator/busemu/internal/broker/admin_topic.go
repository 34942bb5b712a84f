package broker

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// CreateTopic creates a topic and returns it with its defaults filled in.
// EntityExists, ArgumentError.
func (b *Broker) CreateTopic(ctx context.Context, p Topic) (TopicInfo, error) {
	if err := b.validateTopic(&p); err != nil {
		return TopicInfo{}, err
	}
	var info TopicInfo
	err := b.administer(ctx, func(a *administration) error {
		if err := b.checkNameFree(p.Name); err != nil {
			return err
		}
		partitions, err := b.newPartitions(p.Partitioned)
		if err != nil {
			return err
		}
		b.lastID++
		t := b.newTopic(entityRecord{ID: b.lastID, Name: p.Name, Topic: &p, Partitions: partitions, Times: b.newTimes()})
		info = t.info()
		a.save(t.id, t.record())
		return nil
	})
	return info, err
}

// newTopic builds a topic and puts it into the catalog.
func (b *Broker) newTopic(r entityRecord) *topic {
	t := &topic{id: r.ID, name: r.Name, props: *r.Topic, times: r.Times, subscriptions: make(map[string]*subscription)}
	t.props.Name = r.Name
	t.inlet = b.newInlet(KindTopic, t.name, t.props.Partitioned, r.Partitions)
	t.inlet.rest = b.newHolder(holderID(t.id, 0), t.name, t.inlet, false, holderConfig{keepsExpired: true})
	if t.props.RequiresDuplicateDetection {
		t.inlet.history = newHistory(t.props.DuplicateDetectionWindow)
	}
	t.inlet.config = t.inletConfig(b)
	b.topics[strings.ToLower(t.name)] = t
	b.watchTopic(t)
	return t
}

func (t *topic) inletConfig(b *Broker) inletConfig {
	p := &t.props
	return inletConfig{
		maxMessage: b.messageLimit(p.MaxMessageSizeKB), maxBatch: b.messageLimit(p.MaxMessageSizeKB),
		quota: int64(p.MaxSizeMB) << 20, defaultTTL: limit(p.DefaultTTL),
		sendDisabled: p.Status == StatusDisabled || p.Status == StatusSendDisabled,
	}
}

// UpdateTopic changes a topic. Links stay open (see DetachAll).
func (b *Broker) UpdateTopic(ctx context.Context, p Topic) (TopicInfo, error) {
	if err := b.validateTopic(&p); err != nil {
		return TopicInfo{}, err
	}
	var info TopicInfo
	err := b.administer(ctx, func(a *administration) error {
		t, err := b.topic(p.Name)
		if err != nil {
			return err
		}
		var f faults
		f.unless(p.RequiresDuplicateDetection == t.props.RequiresDuplicateDetection, "The value for the RequiresDuplicateDetection property of an existing Topic cannot be changed.")
		f.unless(p.Partitioned == t.props.Partitioned, "Partitioning cannot be changed for Topic.")
		if err := f.err(); err != nil {
			return err
		}
		p.Name = t.name // as it was created
		t.props, t.times.UpdatedAt = p, b.Now()
		b.watchTopic(t)
		t.inlet.reconfigure(t.inletConfig(b), int64(p.DuplicateDetectionWindow))
		info = t.info()
		a.save(t.id, t.record())
		return nil
	})
	return info, err
}

// Topic returns a topic, or NotFound.
func (b *Broker) Topic(name string) (TopicInfo, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	t, err := b.topic(name)
	if err != nil {
		return TopicInfo{}, err
	}
	return t.info(), nil
}

func (b *Broker) topic(name string) (*topic, error) {
	if t := b.topics[strings.ToLower(name)]; t != nil {
		return t, nil
	}
	return nil, notFound(name)
}

// Topics lists all topics by name.
func (b *Broker) Topics() []TopicInfo {
	b.mu.RLock()
	defer b.mu.RUnlock()
	list := make([]TopicInfo, 0, len(b.topics))
	for _, t := range b.topics {
		list = append(list, t.info())
	}
	slices.SortFunc(list, func(x, y TopicInfo) int { return cmp.Compare(x.Name, y.Name) })
	return list
}

// DeleteTopic deletes a topic and its subscriptions.
func (b *Broker) DeleteTopic(ctx context.Context, name string) error {
	return b.administer(ctx, func(a *administration) error {
		t, err := b.topic(name)
		if err != nil {
			return err
		}
		b.dropTopic(a, t)
		return nil
	})
}

func (b *Broker) dropTopic(a *administration, t *topic) {
	delete(b.topics, strings.ToLower(t.name))
	b.timers.set(&t.idle, 0)
	t.inlet.retire(detached(t.name), &a.later)
	for _, s := range t.subscriptions {
		b.timers.set(&s.idle, 0)
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
