package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"feedbox/domain/fault"
)

// Body is a request body. The same description decodes it and documents it. A Body serves
// one request.
type Body interface {
	// Members lists the members and where each goes. It is called for each request, and
	// on an empty body for the document.
	Members() []Member
	// Check applies the domain's rules to what was read and reports every breach, as
	// fault.Fields does; see also fault.Merge and fault.At. What is wrong otherwise is
	// reported already, and what was read of it is the zero value.
	Check() error
}

// bodyOf is a pointer to a B that is a Body.
type bodyOf[B any] interface {
	*B
	Body
}

// Member is one member of a body. The functions that return one make it.
type Member struct {
	name     string
	rule     *Rule
	required bool // must be there
	nullable bool // may be null
	into     any  // *string, **string, *int64, *bool, Setter or []Member
}

// Text is a member that must be there and must not be null. A nil rule allows any text.
func Text(name string, rule *Rule, into *string) Member {
	return Member{name: name, rule: rule, required: true, into: into}
}

// TextOrNothing is a member that may be absent or null, which is the same as
// the empty text.
func TextOrNothing(name string, rule *Rule, into *string) Member {
	return Member{name: name, rule: rule, nullable: true, into: into}
}

// OptionalText is a member that may be null; required says whether it may
// also be absent.
func OptionalText(name string, rule *Rule, required bool, into **string) Member {
	return Member{name: name, rule: rule, required: required, nullable: true, into: into}
}

// Integer is a whole number that must be there.
func Integer(name string, rule *Rule, into *int64) Member {
	return Member{name: name, rule: rule, required: true, into: into}
}

// Boolean is true or false and must be there.
func Boolean(name string, into *bool) Member {
	return Member{name: name, required: true, into: into}
}

// Object is an object with members of its own. It must be there if one of them must.
func Object(name string, members ...Member) Member {
	required := slices.ContainsFunc(members, func(m Member) bool { return m.required })
	return Member{name: name, required: required, into: members}
}

// Setter takes a text of a merge patch.
type Setter interface {
	// Set is called if the member is there; nil is null, which removes.
	Set(text *string)
}

// Part is a text of a merge patch. It may be absent. Removable says that null may remove it;
// it is passed on in either case, for the check to refuse it by the domain's rule.
func Part(name string, rule *Rule, removable bool, into Setter) Member {
	return Member{name: name, rule: rule, nullable: removable, into: into}
}

// wrongMembers lists the members that cannot be filled.
func wrongMembers(members []Member) []error {
	var faults []error
	seen := map[string]bool{}
	for _, m := range members {
		value := reflect.ValueOf(m.into)
		if m.name == "" || !value.IsValid() || value.IsNil() {
			faults = append(faults, fmt.Errorf("member %q needs a name and something that it goes to", m.name))
		}
		if seen[m.name] {
			faults = append(faults, fmt.Errorf("member %q is there twice", m.name))
		}
		seen[m.name] = true
		if inner, ok := m.into.([]Member); ok {
			faults = append(faults, wrongMembers(inner)...)
		}
	}
	return faults
}

// decode reads the body of r into b. Faults of structure and breaches of the
// domain's rules are reported together, at most one for each member.
func (s *Server) decode(w http.ResponseWriter, r *http.Request, b Body) error {
	document, err := s.readJSON(w, r, mediaJSON)
	if err != nil {
		return err
	}
	// The command applies the rules as well. A fault of content is told before a failed
	// precondition (RFC 9110 §13.2.1).
	return fault.Fields(withBreaches(fill(document, b.Members(), notMember), b.Check())...)
}

// withBreaches appends the breaches of members that have no fault yet.
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
