package broker

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

const maxSubscriptions = 2000

// CreateSubscription creates a subscription with its first rules.
func (b *Broker) CreateSubscription(ctx context.Context, topic string, p Subscription) (SubscriptionInfo, error) {
	if err := b.validateSubscription(&p); err != nil {
		return SubscriptionInfo{}, err
	}
	if p.Rules == nil {
		p.Rules = []Rule{{Name: DefaultRule, Filter: sqlfilter.Filter{Kind: sqlfilter.KindTrue}}}
	}
	var info SubscriptionInfo
	err := b.administer(ctx, func(a *administration) error {
		t, err := b.topic(topic)
		if err != nil {
			return err
		}
		if t.subscriptions[strings.ToLower(p.Name)] != nil {
			return errorf(EntityExists, "The messaging entity '%s%s%s' already exists.", t.name, subscriptionsIn, p.Name)
		}
		if len(t.subscriptions) == maxSubscriptions {
			return errorf(ResourceLimitExceeded, "The topic '%s' has %d subscriptions already.", t.name, maxSubscriptions)
		}
		if err := b.forwardable(p.ForwardTo, p.ForwardDeadLetteredTo); err != nil {
			return err
		}
		rules, err := b.newRules(p.Rules)
		if err != nil {
			return err
		}
		p.Rules = rules
		b.lastID++
		s, err := b.newSubscription(t, entityRecord{ID: b.lastID, Of: t.id, Name: p.Name, Subscription: &p, Times: b.newTimes()})
		if err != nil {
			return err
		}
		info = s.info()
		a.save(s.id, s.record())
		return nil
	})
	return info, err
}

// newSubscription builds a subscription and puts it into the catalog.
func (b *Broker) newSubscription(t *topic, r entityRecord) (*subscription, error) {
	s := &subscription{id: r.ID, topic: t, name: r.Name, props: *r.Subscription, times: r.Times}
	s.props.Name = r.Name
	m, err := b.compileRules(s.path(), s.props.Rules)
	if err != nil {
		return nil, err
	}
	s.holders = b.newHolders(s.id, s.path(), t.inlet, s.props.RequiresSession, s.holderConfig(), forwardName(s.props.ForwardDeadLetteredTo))
	s.target = &target{holder: s.holders.main, session: s.props.RequiresSession, matcher: m}
	s.configureTarget()
	t.inlet.mu.Lock()
	t.inlet.targets = append(t.inlet.targets, s.target)
	t.inlet.mu.Unlock()
	t.subscriptions[strings.ToLower(s.name)] = s
	b.watchSubscription(s)
	return s, nil
}

func (s *subscription) configureTarget() {
	s.target.ttl, s.target.deadLetterErrors = limit(s.props.DefaultTTL), s.props.DeadLetteringOnFilterErrors
}

func (s *subscription) holderConfig() holderConfig {
	p := &s.props
	return holderConfig{
		lockDuration: int64(p.LockDuration), maxDelivery: uint32(p.MaxDeliveryCount), deadLetterExpired: p.DeadLetteringOnExpiration,
		receiveDisabled: p.Status == StatusDisabled || p.Status == StatusReceiveDisabled,
		forwardTo:       forwardName(p.ForwardTo),
	}
}

// UpdateSubscription changes a subscription, not its rules. Links stay open (see
// DetachAll).
func (b *Broker) UpdateSubscription(ctx context.Context, topic string, p Subscription) (SubscriptionInfo, error) {
	if err := b.validateSubscription(&p); err != nil {
		return SubscriptionInfo{}, err
	}
	var info SubscriptionInfo
	err := b.administer(ctx, func(a *administration) error {
		s, err := b.subscription(topic, p.Name)
		if err != nil {
			return err
		}
		if p.RequiresSession != s.props.RequiresSession {
			return errorf(ArgumentError, "The value for the RequiresSession property of an existing Subscription cannot be changed.")
		}
		if err := b.forwardable(p.ForwardTo, p.ForwardDeadLetteredTo); err != nil {
			return err
		}
		p.Name, p.Rules = s.name, s.props.Rules
		s.props, s.times.UpdatedAt = p, b.Now()
		in := s.topic.inlet
		in.mu.Lock()
		s.configureTarget()
		in.mu.Unlock()
		b.watchSubscription(s)
		s.holders.reconfigure(s.holderConfig(), forwardName(p.ForwardDeadLetteredTo), &a.later)
		info = s.info()
		a.save(s.id, s.record())
		return nil
	})
	return info, err
}

// Subscription returns a subscription, or NotFound.
func (b *Broker) Subscription(topic, name string) (SubscriptionInfo, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	s, err := b.subscription(topic, name)
	if err != nil {
		return SubscriptionInfo{}, err
	}
	return s.info(), nil
}

func (b *Broker) subscription(topic, name string) (*subscription, error) {
	if t := b.topics[strings.ToLower(topic)]; t != nil {
		if s := t.subscriptions[strings.ToLower(name)]; s != nil {
			return s, nil
		}
	}
	return nil, notFound(topic + subscriptionsIn + name)
}

// Subscriptions lists the subscriptions of a topic by name.
func (b *Broker) Subscriptions(topic string) ([]SubscriptionInfo, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	t, err := b.topic(topic)
	if err != nil {
		return nil, err
	}
	list := make([]SubscriptionInfo, 0, len(t.subscriptions))
	for _, s := range t.subscriptions {
		list = append(list, s.info())
	}
	slices.SortFunc(list, func(x, y SubscriptionInfo) int { return cmp.Compare(x.Name, y.Name) })
	return list, nil
}

// DeleteSubscription deletes a subscription and its messages.
func (b *Broker) DeleteSubscription(ctx context.Context, topic, name string) error {
	return b.administer(ctx, func(a *administration) error {
		s, err := b.subscription(topic, name)
		if err != nil {
			return err
		}
		b.dropSubscription(a, s)
		return nil
	})
}

func (b *Broker) dropSubscription(a *administration, s *subscription) {
	in := s.topic.inlet
	in.mu.Lock()
	in.targets = slices.DeleteFunc(slices.Clone(in.targets), func(t *target) bool { return t == s.target })
	in.mu.Unlock()
	delete(s.topic.subscriptions, strings.ToLower(s.name))
	b.timers.set(&s.idle, 0)
	a.drop(s.id, s.holders)
}

func (s *subscription) info() SubscriptionInfo {
	i := SubscriptionInfo{Topic: s.topic.name, Subscription: s.props, Counts: s.holders.counts(), Times: s.times}
	i.Rules = slices.Clone(s.props.Rules)
	i.AccessedAt = accessed(s.times, s.holders.main.lastUsed.Load())
	return i
}

func (s *subscription) record() entityRecord {
	return entityRecord{ID: s.id, Of: s.topic.id, Name: s.name, Subscription: &s.props, Times: s.times}
}
