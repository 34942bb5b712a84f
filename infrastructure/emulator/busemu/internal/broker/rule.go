package broker

import (
	"context"
	"slices"
	"strings"
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// CreateRule adds a rule. EntityExists, ArgumentError (a filter that does not parse).
func (c *catalog) CreateRule(ctx context.Context, topic, subscription string, r Rule) (Rule, error) {
	return c.changeRules(ctx, topic, subscription, r, func(rules []Rule, r Rule, i int) ([]Rule, error) {
		if i >= 0 {
			return nil, errorf(EntityExists, "The rule '%s' of '%s%s%s' already exists.", r.Name, topic, subscriptionsIn, subscription)
		}
		return append(slices.Clone(rules), r), nil
	})
}

// UpdateRule replaces a rule.
func (c *catalog) UpdateRule(ctx context.Context, topic, subscription string, r Rule) (Rule, error) {
	return c.changeRules(ctx, topic, subscription, r, func(rules []Rule, r Rule, i int) ([]Rule, error) {
		if i < 0 {
			return nil, ruleNotFound(topic, subscription, r.Name)
		}
		rules = slices.Clone(rules)
		r.CreatedAt = rules[i].CreatedAt
		rules[i] = r
		return rules, nil
	})
}

// DeleteRule removes a rule, or NotFound.
func (c *catalog) DeleteRule(ctx context.Context, topic, subscription, name string) error {
	_, err := c.changeRules(ctx, topic, subscription, Rule{Name: name}, func(rules []Rule, r Rule, i int) ([]Rule, error) {
		if i < 0 {
			return nil, ruleNotFound(topic, subscription, r.Name)
		}
		return slices.Delete(slices.Clone(rules), i, i+1), nil
	})
	return err
}

// changeRules replaces the rules of a subscription by the result of change. i is the index of
// the rule with r's name, -1 if there is none.
func (c *catalog) changeRules(ctx context.Context, topic, subscription string, r Rule, change func(rules []Rule, r Rule, i int) ([]Rule, error)) (Rule, error) {
	err := c.administer(ctx, func(a *administration) error {
		s, err := c.subscription(topic, subscription)
		if err != nil {
			return err
		}
		created, err := newRules(c.Now(), []Rule{r})
		if err != nil {
			return err
		}
		r = created[0]
		at := slices.IndexFunc(s.props.Rules, func(x Rule) bool { return strings.EqualFold(x.Name, r.Name) })
		rules, err := change(s.props.Rules, r, at)
		if err != nil {
			return err
		}
		m, err := compileRules(&c.options, s.path(), rules)
		if err != nil {
			return err
		}
		s.props.Rules, s.times.UpdatedAt = rules, c.Now()
		in := s.topic.inlet
		in.mu.Lock()
		s.target.matcher = m
		in.mu.Unlock()
		a.save(s.id, s.record())
		return nil
	})
	return r, err
}

// newRules checks rules and sets their creation time.
func newRules(now time.Time, rules []Rule) ([]Rule, error) {
	var f faults
	made := make([]Rule, len(rules))
	for i, r := range rules {
		f.name("rule", r.Name, maxShortName)
		if r.Filter.Kind == "" {
			r.Filter.Kind = sqlfilter.KindTrue
		}
		for _, p := range r.Filter.Parameters {
			f.value("parameter "+p.Name, p.Value)
		}
		c := r.Filter.Correlation
		f.unless(c.PartitionKey == "" && c.EnqueuedAt.IsZero() && c.SequenceNumber == 0,
			"The rule '%s' sets PartitionKey, EnqueuedAt or SequenceNumber, which a correlation filter does not compare.", r.Name)
		for name, v := range r.Filter.Correlation.Properties {
			f.value("property "+name, v)
		}
		if r.Action != nil {
			for _, p := range r.Action.Parameters {
				f.value("parameter "+p.Name, p.Value)
			}
		}
		r.CreatedAt = now
		made[i] = r
	}
	return made, f.err()
}

func ruleNotFound(topic, subscription, name string) *Error {
	return errorf(NotFound, "The rule '%s' of '%s%s%s' could not be found.", name, topic, subscriptionsIn, subscription)
}
