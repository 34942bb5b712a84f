package httpapi

import (
	"errors"
	"net/http"
	"slices"

	"feedbox/domain/contact"
	"feedbox/domain/fault"
	"feedbox/infrastructure/httpapi/internal/strictjson"
)

// shape is a request body whose members are texts. The same description
// decodes it and documents it.
type shape interface {
	// members lists the members and where each goes.
	members() []member
	// check applies the domain's rules and reports every breach.
	check() error
}

// member is one member of a body.
type member struct {
	rule     contact.Rule
	required bool // must be there
	nullable bool // may be null
	set      func(text *string)
}

// ruleOf finds the domain's rule of a field.
func ruleOf(field string) contact.Rule {
	rule, ok := contact.RuleOf(field)
	if !ok {
		panic("httpapi: the domain has no rule for " + field) // caught by any test
	}
	return rule
}

// text is a member that must be there and must not be null.
func text(field string, into *string) member {
	return member{rule: ruleOf(field), required: true, set: func(text *string) { *into = *text }}
}

// textOrNothing is a member that may be absent or null, which is the same as
// the empty text.
func textOrNothing(field string, into *string) member {
	return member{rule: ruleOf(field), nullable: true, set: func(text *string) {
		if text != nil {
			*into = *text
		}
	}}
}

// optionalText is a member that may be null; required says whether it may
// also be absent.
func optionalText(field string, required bool, into **string) member {
	return member{rule: ruleOf(field), required: required, nullable: true, set: func(text *string) { *into = text }}
}

// decode reads the body of r into b. Faults of structure and breaches of the
// domain's rules are reported together, at most one for each member.
func (s *Server) decode(w http.ResponseWriter, r *http.Request, b shape) error {
	document, err := s.readJSON(w, r, mediaJSON)
	if err != nil {
		return err
	}
	// The command applies the rules as well. A fault of content is told before a failed
	// precondition (RFC 9110 §13.2.1).
	return fault.Fields(withBreaches(fill(document, b), b.check())...)
}

// fill copies the members of an object into b and returns what does not fit.
func fill(document *strictjson.Document, b shape) []fault.Field {
	if document.Root.Kind != strictjson.Object {
		return []fault.Field{{Pointer: "", Message: "must be an object, not " + document.Root.Kind.String()}}
	}
	var fields []fault.Field
	var refused map[string]bool
	refuse := func(pointer, message string) {
		if refused == nil {
			refused = map[string]bool{}
		}
		if !refused[pointer] {
			refused[pointer] = true
			fields = append(fields, fault.Field{Pointer: pointer, Message: message})
		}
	}
	for _, pointer := range document.Duplicates {
		refuse(pointer, "must not be named twice")
	}
	members := b.members()
	seen := make([]bool, len(members))
	for _, got := range document.Root.Members {
		i := slices.IndexFunc(members, func(m member) bool { return m.rule.Field == got.Name })
		if i < 0 {
			refuse(strictjson.Pointer("", got.Name), "is not a member of this body")
			continue
		}
		if seen[i] {
			continue // reported as a duplicate
		}
		seen[i] = true
		switch m := members[i]; {
		case got.Value.Kind == strictjson.String:
			m.set(&got.Value.Text)
		case got.Value.Kind == strictjson.Null && m.nullable:
			m.set(nil)
		case m.nullable:
			refuse(strictjson.Pointer("", got.Name), "must be a string or null, not "+got.Value.Kind.String())
		default:
			refuse(strictjson.Pointer("", got.Name), "must be a string, not "+got.Value.Kind.String())
		}
	}
	for i, m := range members {
		if m.required && !seen[i] {
			refuse(strictjson.Pointer("", m.rule.Field), "is required")
		}
	}
	return fields
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
