package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"feedbox/domain/fault"
)

// Body is a request body. Its Members both decode and document it. A Body serves one
// request.
type Body interface {
	// Members lists the members and their targets. It is called for each request, and on an
	// empty body for the OpenAPI document.
	Members() []Member
	// Check applies the domain's rules and reports every breach like fault.Fields; see also
	// fault.Merge and fault.At. Members with a fault of structure have the zero value; their
	// faults are already reported.
	Check() error
}

// bodyOf is a pointer to a B that is a Body.
type bodyOf[B any] interface {
	*B
	Body
}

// Member is one member of a body, built by Text and so on.
type Member struct {
	name     string
	rule     *Rule
	required bool // must be present
	nullable bool // may be null
	into     any  // *string, **string, *int64, *bool, Setter or []Member
}

// Text is a required text that must not be null. A nil rule allows any text.
func Text(name string, rule *Rule, into *string) Member {
	return Member{name: name, rule: rule, required: true, into: into}
}

// TextOrNothing is a text that may be absent or null, which both mean empty.
func TextOrNothing(name string, rule *Rule, into *string) Member {
	return Member{name: name, rule: rule, nullable: true, into: into}
}

// OptionalText is a text that may be null. Unless it is required, it may also be absent.
func OptionalText(name string, rule *Rule, required bool, into **string) Member {
	return Member{name: name, rule: rule, required: required, nullable: true, into: into}
}

// Integer is a required whole number.
func Integer(name string, rule *Rule, into *int64) Member {
	return Member{name: name, rule: rule, required: true, into: into}
}

// Boolean is a required true or false.
func Boolean(name string, into *bool) Member {
	return Member{name: name, required: true, into: into}
}

// Object is an object with members. It is required if one of them is.
func Object(name string, members ...Member) Member {
	required := slices.ContainsFunc(members, func(m Member) bool { return m.required })
	return Member{name: name, required: required, into: members}
}

// Setter receives a text of a merge patch.
type Setter interface {
	// Set is called if the member is present; nil means null, which removes the text.
	Set(text *string)
}

// Part is a text of a merge patch. It may be absent. Removable documents that null may
// remove it. Null is passed on in either case, so that Check can refuse it with the
// domain's message.
func Part(name string, rule *Rule, removable bool, into Setter) Member {
	return Member{name: name, rule: rule, nullable: removable, into: into}
}

// wrongMembers lists faults of members without a valid target or name.
func wrongMembers(members []Member) []error {
	var faults []error
	seen := map[string]bool{}
	for _, m := range members {
		value := reflect.ValueOf(m.into)
		if m.name == "" || !value.IsValid() || value.IsNil() {
			faults = append(faults, fmt.Errorf("member %q needs a name and a target", m.name))
		}
		if seen[m.name] {
			faults = append(faults, fmt.Errorf("member %q is listed twice", m.name))
		}
		seen[m.name] = true
		if inner, ok := m.into.([]Member); ok {
			faults = append(faults, wrongMembers(inner)...)
		}
	}
	return faults
}

// decode reads the body of r into b. It reports faults of structure and breaches of the
// domain's rules together, at most one per member.
func (s *Server) decode(w http.ResponseWriter, r *http.Request, b Body) error {
	document, err := s.readJSON(w, r, mediaJSON)
	if err != nil {
		return err
	}
	// The command applies the rules too. They are checked here because a fault of content
	// has precedence over a failed precondition (RFC 9110 §13.2.1).
	return fault.Fields(withBreaches(fill(document, b.Members(), notMember), b.Check())...)
}

// withBreaches appends the breaches of members without a fault.
func withBreaches(fields []fault.Field, breaches error) []fault.Field {
	var f *fault.Error
	if !errors.As(breaches, &f) {
		return fields
	}
	for _, breach := range f.Fields {
		if !slices.ContainsFunc(fields, func(known fault.Field) bool { return known.Pointer == breach.Pointer }) {
			fields = append(fields, breach)
		}
	}
	return fields
}
