package broker

import (
	"fmt"
	"time"
)

// condition is a compiled filter. Its answer has SQL's three values: an unknown
// (comparison with something absent) is not true.
type condition interface {
	holds(f *Fields) truth
}

type truth int8

const (
	unknown truth = iota
	isTrue
	isFalse
)

func truthOf(b bool) truth {
	if b {
		return isTrue
	}
	return isFalse
}

// always is the true or the false filter.
type always truth

func (a always) holds(*Fields) truth { return truth(a) }

// matcher is the rules of a subscription, compiled. nil matches everything.
type matcher struct {
	rules   []compiledRule
	refused string // why a send cannot be evaluated, empty if it can
}

type compiledRule struct {
	condition  condition
	needFields bool
	action     action // nil: none
}

// facts are a message's fields, decoded when the first rule asks for them.
type facts struct {
	inlet  *inlet
	body   *body
	at     int64 // when it was enqueued
	fields *Fields
	err    error
}

func (f *facts) get() (*Fields, error) {
	if f.fields == nil && f.err == nil {
		fields, err := f.inlet.b.options.DecodeFields(f.body.payload)
		if err != nil {
			f.err = fmt.Errorf("read the message's fields: %w", err)
			return nil, f.err
		}
		fields.PartitionKey, fields.SequenceNumber, fields.EnqueuedAt = f.body.partition, f.body.sequence, time.Unix(0, f.at)
		f.fields = &fields
	}
	return f.fields, f.err
}

// match reports whether a rule without an action is true of the message, and the
// actions of the others that are.
func (m *matcher) match(f *facts) (plain bool, actions []action, err error) {
	if m == nil {
		return true, nil, nil
	}
	for _, r := range m.rules {
		if plain && r.action == nil {
			continue
		}
		var fields *Fields
		if r.needFields {
			if fields, err = f.get(); err != nil {
				return false, nil, err
			}
		}
		switch {
		case r.condition.holds(fields) != isTrue:
		case r.action != nil:
			actions = append(actions, r.action)
		default:
			plain = true
		}
	}
	return plain, actions, nil
}

func (m *matcher) unsupported() string {
	if m == nil {
		return ""
	}
	return m.refused
}

// compileRules compiles all rules of a subscription.
func (b *Broker) compileRules(path string, rules []Rule) (*matcher, error) {
	m := &matcher{}
	for _, r := range rules {
		c, err := b.compile(r)
		if err != nil {
			return nil, err
		}
		if r.Action != nil {
			if c.action, err = b.compileAction(r); err != nil {
				return nil, err
			}
		}
		if r.Filter.Kind == UnknownFilter {
			m.refused = fmt.Sprintf("the filter of rule '%s' of '%s' is of an unknown type. Remove the rule.", r.Name, path)
		}
		m.rules = append(m.rules, c)
		if c.condition == always(isTrue) && c.action == nil && len(rules) == 1 {
			return nil, nil // matches everything: nothing to evaluate
		}
	}
	return m, nil
}

func (b *Broker) compile(r Rule) (compiledRule, error) {
	switch r.Filter.Kind {
	case TrueFilter, "":
		return compiledRule{condition: always(isTrue)}, nil
	case FalseFilter, UnknownFilter:
		return compiledRule{condition: always(isFalse)}, nil
	case CorrelationFilter:
		return b.withFields(r, correlation(r.Filter.Correlation))
	case SQLFilter:
		e, err := parseSQL(r.Filter.Expression, r.Filter.Parameters)
		if err != nil {
			return compiledRule{}, errorf(ArgumentError, "The SQL filter of rule '%s' is not supported: %s.", r.Name, err)
		}
		return b.withFields(r, e)
	}
	return compiledRule{}, errorf(ArgumentError, "The filter of rule '%s' has the unknown kind '%s'.", r.Name, r.Filter.Kind)
}

func (b *Broker) compileAction(r Rule) (action, error) {
	if b.options.ApplyChanges == nil || b.options.DecodeFields == nil {
		return nil, errorf(NotImplemented, "Rule '%s' changes messages, which this broker was not given the means to do.", r.Name)
	}
	a, err := parseAction(r.Action.Expression, r.Action.Parameters)
	if err != nil {
		return nil, errorf(ArgumentError, "The SQL action of rule '%s' is not supported: %s.", r.Name, err)
	}
	return a, nil
}

func (b *Broker) withFields(r Rule, c condition) (compiledRule, error) {
	if b.options.DecodeFields == nil {
		return compiledRule{}, errorf(NotImplemented, "Rule '%s' compares fields of messages, which this broker was not given the means to read.", r.Name)
	}
	return compiledRule{condition: c, needFields: true}, nil
}

// correlation is a correlation filter: everything that is set must be equal, strings
// in upper and lower case too.
type correlation Fields

func (c correlation) holds(f *Fields) truth {
	for _, pair := range [...][2]string{
		{c.MessageID, f.MessageID},
		{c.CorrelationID, f.CorrelationID},
		{c.To, f.To},
		{c.ReplyTo, f.ReplyTo},
		{c.Subject, f.Subject},
		{c.SessionID, f.SessionID},
		{c.ReplyToSessionID, f.ReplyToSessionID},
		{c.ContentType, f.ContentType},
	} {
		if pair[0] != "" && pair[0] != pair[1] {
			return isFalse
		}
	}
	for name, want := range c.Properties {
		if compareEqual(normal(want), normal(f.Properties[name])) != isTrue {
			return isFalse
		}
	}
	return isTrue
}
