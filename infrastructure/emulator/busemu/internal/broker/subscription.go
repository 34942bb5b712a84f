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
func (c *catalog) CreateSubscription(ctx context.Context, topic string, p Subscription) (SubscriptionInfo, error) {
	if err := validateSubscription(&p); err != nil {
		return SubscriptionInfo{}, err
	}
	if p.Rules == nil {
		p.Rules = []Rule{{Name: DefaultRule, Filter: sqlfilter.Filter{Kind: sqlfilter.KindTrue}}}
	}
	var info SubscriptionInfo
	err := c.administer(ctx, func(a *administration) error {
		t, err := c.topic(topic)
		if err != nil {
			return err
		}
		if t.subscriptions[strings.ToLower(p.Name)] != nil {
			return errorf(EntityExists, "The messaging entity '%s%s%s' already exists.", t.name, subscriptionsIn, p.Name)
		}
		if len(t.subscriptions) == maxSubscriptions {
			return errorf(ResourceLimitExceeded, "The topic '%s' has %d subscriptions already.", t.name, maxSubscriptions)
		}
		if err := c.forwardable(p.ForwardTo, p.ForwardDeadLetteredTo); err != nil {
			return err
		}
		rules, err := newRules(c.Now(), p.Rules)
		if err != nil {
			return err
		}
		p.Rules = rules
		c.lastID++
		s, err := c.newSubscription(t, entityRecord{ID: c.lastID, Of: t.id, Name: p.Name, Subscription: &p, Times: c.newTimes()})
		if err != nil {
			return err
		}
		info = s.info()
		a.save(s.id, s.record())
		return nil
	})
	return info, err
}

// newSubscription adds a subscription to the catalog.
func (c *catalog) newSubscription(t *topic, r entityRecord) (*subscription, error) {
	s := &subscription{id: r.ID, topic: t, name: r.Name, props: *r.Subscription, times: r.Times}
	s.props.Name = r.Name
	m, err := compileRules(&c.options, s.path(), s.props.Rules)
	if err != nil {
		return nil, err
	}
	s.holders = newHolders(t.inlet, s.id, s.path(), s.props.RequiresSession, s.holderConfig(), forwardName(s.props.ForwardDeadLetteredTo))
	s.target = &target{holder: s.holders.main, session: s.props.RequiresSession, matcher: m}
	s.configureTarget()
	t.inlet.mu.Lock()
	t.inlet.targets = append(t.inlet.targets, s.target)
	t.inlet.mu.Unlock()
	t.subscriptions[strings.ToLower(s.name)] = s
	c.watchSubscription(s)
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

// UpdateSubscription changes a subscription without its rules. Links stay open (see
// DetachAll).
func (c *catalog) UpdateSubscription(ctx context.Context, topic string, p Subscription) (SubscriptionInfo, error) {
	if err := validateSubscription(&p); err != nil {
		return SubscriptionInfo{}, err
	}
	var info SubscriptionInfo
	err := c.administer(ctx, func(a *administration) error {
		s, err := c.subscription(topic, p.Name)
		if err != nil {
			return err
		}
		if p.RequiresSession != s.props.RequiresSession {
			return errorf(ArgumentError, "The value for the RequiresSession property of an existing Subscription cannot be changed.")
		}
		if err := c.forwardable(p.ForwardTo, p.ForwardDeadLetteredTo); err != nil {
			return err
		}
		p.Name, p.Rules = s.name, s.props.Rules
		s.props, s.times.UpdatedAt = p, c.Now()
		in := s.topic.inlet
		in.mu.Lock()
		s.configureTarget()
		in.mu.Unlock()
		c.watchSubscription(s)
		s.holders.reconfigure(s.holderConfig(), forwardName(p.ForwardDeadLetteredTo), &a.later)
		info = s.info()
		a.save(s.id, s.record())
		return nil
	})
	return info, err
}

// Subscription returns a subscription, or NotFound.
func (c *catalog) Subscription(topic, name string) (SubscriptionInfo, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s, err := c.subscription(topic, name)
	if err != nil {
		return SubscriptionInfo{}, err
	}
	return s.info(), nil
}

// Subscriptions lists the subscriptions of a topic by name.
func (c *catalog) Subscriptions(topic string) ([]SubscriptionInfo, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	t, err := c.topic(topic)
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
func (c *catalog) DeleteSubscription(ctx context.Context, topic, name string) error {
	return c.administer(ctx, func(a *administration) error {
		s, err := c.subscription(topic, name)
		if err != nil {
			return err
		}
		c.dropSubscription(a, s)
		return nil
	})
}

func (c *catalog) dropSubscription(a *administration, s *subscription) {
	in := s.topic.inlet
	in.mu.Lock()
	in.targets = slices.DeleteFunc(slices.Clone(in.targets), func(t *target) bool { return t == s.target })
	in.mu.Unlock()
	delete(s.topic.subscriptions, strings.ToLower(s.name))
	c.timers.set(&s.idle, 0)
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
