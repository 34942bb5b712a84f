package sqlfilter

import (
	"fmt"
	"maps"
	"strings"
)

// Change is one change of a message by an action.
type Change struct {
	// Property is the name of an application property. It is empty for a change of a system
	// property; then the text in Fields is the new value.
	Property string
	// Value is the new value, nil if the property is removed.
	Value any
}

// Statements are a compiled SQL action. Each works on the result of the ones before it.
type Statements []statement

type statement struct {
	name   string
	system func(*Fields) *string // nil: an application property
	value  operand               // nil: remove
}

// ParseAction compiles an SQL action:
//
//	action    = statement { [";"] statement } [";"]
//	statement = SET property "=" sum | REMOVE property
func ParseAction(expression string, parameters []Parameter) (Statements, error) {
	p, err := newParser(expression, parameters)
	if err != nil {
		return nil, err
	}
	var a Statements
	for {
		t := p.next()
		if !t.is("SET") && !t.is("REMOVE") {
			return nil, fmt.Errorf("%s where SET or REMOVE is expected", t)
		}
		s, err := p.changed()
		if err != nil {
			return nil, err
		}
		if t.is("SET") {
			if err := p.expect("="); err != nil {
				return nil, err
			}
			if s.value, err = p.operand(p.sum); err != nil {
				return nil, err
			}
		}
		a = append(a, s)
		p.accept(";")
		if p.peek().kind == endOfText {
			return a, nil
		}
	}
}

// changed reads the property that a statement changes.
func (p *parser) changed() (statement, error) {
	t := p.next()
	if t.kind != quoted && (t.kind != word || reserved(t.text)) {
		return statement{}, fmt.Errorf("%s where a property is expected", t)
	}
	o, err := p.property(t)
	if err != nil {
		return statement{}, err
	}
	ref, ok := o.(propertyRef)
	switch {
	case !ok:
		return statement{}, fmt.Errorf("a function cannot be changed")
	case ref.system == nil:
		return statement{name: ref.name}, nil
	}
	at, ok := systemText[strings.ToLower(ref.name)]
	if !ok {
		return statement{}, fmt.Errorf("the system property sys.%s cannot be changed", ref.name)
	}
	return statement{name: ref.name, system: at}, nil
}

// Run returns the fields after the action, and the changes that lead there. It leaves
// before unchanged. An action that sets a property to an unknown value fails.
func (a Statements) Run(before *Fields) (*Fields, []Change, error) {
	f := *before
	f.Properties = maps.Clone(before.Properties)
	if f.Properties == nil {
		f.Properties = make(map[string]any)
	}
	changes := make([]Change, 0, len(a))
	for _, s := range a {
		var v any
		if s.value != nil {
			if v = s.value.value(&f); v == nil {
				return nil, nil, fmt.Errorf("the value that the action sets %s to is unknown", s.name)
			}
		}
		if s.system != nil {
			text, ok := v.(string)
			if u, isUUID := v.(UUID); isUUID {
				text, ok = u.String(), true
			}
			if v != nil && !ok {
				return nil, nil, fmt.Errorf("the action sets sys.%s to what is no text", s.name)
			}
			*s.system(&f) = text
			changes = append(changes, Change{})
			continue
		}
		name := s.name
		if _, exact := f.Properties[name]; !exact {
			for known := range f.Properties {
				if strings.EqualFold(known, name) {
					name = known
				}
			}
		}
		if delete(f.Properties, name); v != nil {
			f.Properties[name] = v
		}
		changes = append(changes, Change{Property: name, Value: v})
	}
	return &f, changes, nil
}
