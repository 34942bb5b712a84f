package broker

import (
	"fmt"
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
}

// facts are a message's fields, decoded when the first rule asks for them.
type facts struct {
	inlet  *inlet
	body   *body
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
		f.fields = &fields
	}
	return f.fields, f.err
}

// match reports whether one of the rules is true of the message.
func (m *matcher) match(f *facts) (bool, error) {
	if m == nil {
		return true, nil
	}
	for _, r := range m.rules {
		var fields *Fields
		if r.needFields {
			var err error
			if fields, err = f.get(); err != nil {
				return false, err
			}
		}
		if r.condition.holds(fields) == isTrue {
			return true, nil
		}
	}
	return false, nil
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
		switch {
		case r.Action != nil:
			m.refused = fmt.Sprintf("rule '%s' of '%s' has an SQL action, and actions are not supported. Remove the action.", r.Name, path)
		case r.Filter.Kind == UnknownFilter:
			m.refused = fmt.Sprintf("the filter of rule '%s' of '%s' is of an unknown type. Remove the rule.", r.Name, path)
		}
		m.rules = append(m.rules, c)
		if c.condition == always(isTrue) && m.refused == "" && len(rules) == 1 {
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
			return compiledRule{}, errorf(ArgumentError, "The SQL filter of rule '%s' is not supported: %s. Supported are comparisons of properties, literals and parameters, "+
				"IN, LIKE, IS NULL and EXISTS, joined by AND, OR and NOT.", r.Name, err)
		}
		return b.withFields(r, e)
	}
	return compiledRule{}, errorf(ArgumentError, "The filter of rule '%s' has the unknown kind '%s'.", r.Name, r.Filter.Kind)
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
