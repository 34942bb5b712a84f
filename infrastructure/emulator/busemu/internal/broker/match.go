package broker

import (
	"fmt"
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// matcher has the compiled rules of a subscription. A nil matcher matches all messages.
type matcher struct {
	rules   []compiledRule
	refused string // why sends are refused, empty if they are not
}

type compiledRule struct {
	condition  sqlfilter.Condition
	needFields bool
	action     sqlfilter.Statements // nil: none
}

// facts are the fields of a message, decoded only if a rule needs them.
type facts struct {
	options *Options
	body    *body
	at      int64 // enqueued time
	fields  *sqlfilter.Fields
	err     error
}

func (f *facts) get() (*sqlfilter.Fields, error) {
	if f.fields == nil && f.err == nil {
		fields, err := f.options.DecodeFields(f.body.payload)
		if err != nil {
			f.err = fmt.Errorf("read the message's fields: %w", err)
			return nil, f.err
		}
		fields.PartitionKey, fields.SequenceNumber, fields.EnqueuedAt = f.body.partition, f.body.sequence, time.Unix(0, f.at)
		f.fields = &fields
	}
	return f.fields, f.err
}

// match reports whether a rule without an action matches the message. It also returns the
// actions of the other matching rules.
func (m *matcher) match(f *facts) (plain bool, actions []sqlfilter.Statements, err error) {
	if m == nil {
		return true, nil, nil
	}
	for _, r := range m.rules {
		if plain && r.action == nil {
			continue
		}
		var fields *sqlfilter.Fields
		if r.needFields {
			if fields, err = f.get(); err != nil {
				return false, nil, err
			}
		}
		switch {
		case !r.condition.Matches(fields):
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
func compileRules(o *Options, path string, rules []Rule) (*matcher, error) {
	m := &matcher{}
	for _, r := range rules {
		c, err := compile(o, r)
		if err != nil {
			return nil, err
		}
		if r.Action != nil {
			if c.action, err = compileAction(o, r); err != nil {
				return nil, err
			}
		}
		if r.Filter.Kind == sqlfilter.KindUnknown {
			m.refused = fmt.Sprintf("the filter of rule '%s' of '%s' is of an unknown type. Remove the rule.", r.Name, path)
		}
		m.rules = append(m.rules, c)
		if c.condition == sqlfilter.Always && c.action == nil && len(rules) == 1 {
			return nil, nil // matches every message, so there is nothing to evaluate
		}
	}
	return m, nil
}

func compile(o *Options, r Rule) (compiledRule, error) {
	switch r.Filter.Kind {
	case sqlfilter.KindTrue, "":
		return compiledRule{condition: sqlfilter.Always}, nil
	case sqlfilter.KindFalse, sqlfilter.KindUnknown:
		return compiledRule{condition: sqlfilter.Never}, nil
	case sqlfilter.KindCorrelation:
		return withFields(o, r, sqlfilter.Correlate(r.Filter.Correlation))
	case sqlfilter.KindSQL:
		e, err := sqlfilter.ParseFilter(r.Filter.Expression, r.Filter.Parameters)
		if err != nil {
			return compiledRule{}, errorf(ArgumentError, "The SQL filter of rule '%s' is not supported: %s.", r.Name, err)
		}
		return withFields(o, r, e)
	}
	return compiledRule{}, errorf(ArgumentError, "The filter of rule '%s' has the unknown kind '%s'.", r.Name, r.Filter.Kind)
}

func compileAction(o *Options, r Rule) (sqlfilter.Statements, error) {
	if o.ApplyChanges == nil || o.DecodeFields == nil {
		return nil, errorf(NotImplemented, "Rule '%s' changes messages, which this broker was not given the means to do.", r.Name)
	}
	a, err := sqlfilter.ParseAction(r.Action.Expression, r.Action.Parameters)
	if err != nil {
		return nil, errorf(ArgumentError, "The SQL action of rule '%s' is not supported: %s.", r.Name, err)
	}
	return a, nil
}

func withFields(o *Options, r Rule, c sqlfilter.Condition) (compiledRule, error) {
	if o.DecodeFields == nil {
		return compiledRule{}, errorf(NotImplemented, "Rule '%s' compares fields of messages, which this broker was not given the means to read.", r.Name)
	}
	return compiledRule{condition: c, needFields: true}, nil
}

// act returns the copy of a message that an action makes.
func act(a sqlfilter.Statements, facts *facts) (*body, error) {
	before, err := facts.get()
	if err != nil {
		return nil, err
	}
	after, changes, err := a.Run(before)
	if err != nil {
		return nil, err
	}
	made := facts.body.unshared()
	if made.payload, err = facts.options.ApplyChanges(facts.body.payload, after, changes); err != nil {
		return nil, fmt.Errorf("change the message: %w", err)
	}
	made.id = after.MessageID
	if made.session = after.SessionID; after.SessionID != before.SessionID {
		made.hasSession = after.SessionID != ""
	}
	return made, nil
}
