package httpapi

import (
	"slices"
	"strconv"

	"feedbox/domain/fault"
	"feedbox/infrastructure/httpapi/internal/strictjson"
)

// Messages for an unknown member.
const (
	notMember  = "is not a member of this body"
	notPatched = "is not a member that can be changed"
)

// notDigits completes "must be" for a number that does not fit int64.
const notDigits = "a whole number of at most 18 digits, without fraction and exponent"

// filler copies an object into members.
type filler struct {
	unknown    string
	duplicates bool // the document has duplicate members
	refused    map[string]bool
	fields     []fault.Field
}

// fill copies the members of an object to their targets. It returns at most one fault per
// member. Unknown is the message for unknown members.
func fill(document *strictjson.Document, members []Member, unknown string) []fault.Field {
	if document.Root.Kind != strictjson.Object {
		return []fault.Field{{Pointer: "", Message: "must be an object, not " + document.Root.Kind.String()}}
	}
	f := filler{unknown: unknown, duplicates: len(document.Duplicates) > 0}
	for _, pointer := range document.Duplicates {
		f.refuse(pointer, "must not be named twice")
	}
	f.object("", document.Root, members)
	return f.fields
}

func (f *filler) refuse(pointer, message string) {
	if f.refused == nil {
		f.refused = map[string]bool{}
	}
	if !f.refused[pointer] {
		f.refused[pointer] = true
		f.fields = append(f.fields, fault.Field{Pointer: pointer, Message: message})
	}
}

func (f *filler) object(at string, value strictjson.Value, members []Member) {
	for n := range value.Members {
		got := &value.Members[n]
		if f.duplicates && f.refused[strictjson.Pointer(at, got.Name)] {
			continue // ambiguous
		}
		i := slices.IndexFunc(members, func(m Member) bool { return m.name == got.Name })
		if i < 0 {
			f.refuse(strictjson.Pointer(at, got.Name), f.unknown)
			continue
		}
		m := &members[i]
		if inner, ok := m.into.([]Member); ok && got.Value.Kind == strictjson.Object {
			f.object(strictjson.Pointer(at, got.Name), got.Value, inner)
		} else if want := m.take(&got.Value); want != "" {
			if want != notDigits {
				want += ", not " + got.Value.Kind.String()
			}
			f.refuse(strictjson.Pointer(at, got.Name), "must be "+want)
		}
	}
	for i := range members {
		if m := &members[i]; m.required && !value.Has(m.name) {
			f.refuse(strictjson.Pointer(at, m.name), "is required")
		}
	}
}

// take sets the member, or returns a text that completes "must be".
func (m *Member) take(value *strictjson.Value) (want string) {
	kind := value.Kind
	switch into := m.into.(type) {
	case *string:
		switch {
		case kind == strictjson.String:
			*into = value.Text
		case kind != strictjson.Null || !m.nullable:
			return m.wantText()
		}
	case **string:
		text, ok := textOrNull(value)
		if !ok {
			return "a string or null"
		}
		*into = text
	case Setter:
		text, ok := textOrNull(value)
		if !ok {
			return "a string or null"
		}
		into.Set(text)
	case *int64:
		if kind != strictjson.Number {
			return "a whole number"
		}
		number, err := strconv.ParseInt(value.Text, 10, 64)
		if err != nil {
			return notDigits
		}
		*into = number
	case *bool:
		if kind != strictjson.Bool {
			return "true or false"
		}
		*into = value.True
	case []Member:
		return "an object"
	}
	return ""
}

func (m *Member) wantText() string {
	if m.nullable {
		return "a string or null"
	}
	return "a string"
}

// textOrNull returns the text of a string, nil for null, and false for other kinds.
func textOrNull(value *strictjson.Value) (text *string, ok bool) {
	if value.Kind == strictjson.String {
		return &value.Text, true
	}
	return nil, value.Kind == strictjson.Null
}
