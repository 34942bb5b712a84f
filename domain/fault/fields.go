package fault

import "errors"

// Fields returns an Invalid fault that lists the broken rules, or nil when there
// are none.
func Fields(fields ...Field) error {
	if len(fields) == 0 {
		return nil
	}
	return &Error{
		Kind:    Invalid,
		Code:    CodeValidation,
		Message: "the request breaks the rules of its fields",
		Fields:  fields,
	}
}

// Merge joins several validation faults into one, so that a caller sees every broken rule at
// once. Nil errors are skipped. The first error that is not a list of fields is returned
// unchanged instead.
func Merge(errs ...error) error {
	var fields []Field
	for _, err := range errs {
		if err == nil {
			continue
		}
		f, ok := errors.AsType[*Error](err)
		if !ok || f.Kind != Invalid || len(f.Fields) == 0 {
			return err
		}
		fields = append(fields, f.Fields...)
	}
	return Fields(fields...)
}

// At returns err with prefix before the pointer of each field, for a value that is nested in
// the request body. Other errors are returned unchanged.
func At(prefix string, err error) error {
	f, ok := errors.AsType[*Error](err)
	if !ok || len(f.Fields) == 0 {
		return err
	}
	moved := *f
	moved.Fields = make([]Field, len(f.Fields))
	for i, field := range f.Fields {
		moved.Fields[i] = Field{Pointer: prefix + field.Pointer, Message: field.Message}
	}
	return &moved
}
