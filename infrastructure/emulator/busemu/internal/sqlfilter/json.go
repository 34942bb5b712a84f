package sqlfilter

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// typedValue is a value whose type survives JSON.
type typedValue struct {
	Name  string
	Type  string
	Value string
}

func typed(name string, v any) (typedValue, error) {
	switch x := v.(type) {
	case string:
		return typedValue{name, "string", x}, nil
	case bool:
		return typedValue{name, "bool", strconv.FormatBool(x)}, nil
	case int32:
		return typedValue{name, "int32", strconv.FormatInt(int64(x), 10)}, nil
	case int64:
		return typedValue{name, "int64", strconv.FormatInt(x, 10)}, nil
	case float64:
		return typedValue{name, "float64", strconv.FormatFloat(x, 'g', -1, 64)}, nil
	case time.Time:
		return typedValue{name, "time", x.Format(time.RFC3339Nano)}, nil
	}
	return typedValue{}, fmt.Errorf("a value of type %T is not supported", v)
}

func (t typedValue) value() (any, error) {
	switch t.Type {
	case "string":
		return t.Value, nil
	case "bool":
		return strconv.ParseBool(t.Value)
	case "int32":
		n, err := strconv.ParseInt(t.Value, 10, 32)
		return int32(n), err
	case "int64":
		return strconv.ParseInt(t.Value, 10, 64)
	case "float64":
		return strconv.ParseFloat(t.Value, 64)
	case "time":
		return time.Parse(time.RFC3339Nano, t.Value)
	}
	return nil, fmt.Errorf("a value of type %s is not supported", t.Type)
}

// CheckValue returns an error if a parameter or property cannot be stored.
func CheckValue(v any) error {
	_, err := typed("", v)
	return err
}

// MarshalJSON keeps the type of the value.
func (p Parameter) MarshalJSON() ([]byte, error) {
	t, err := typed(p.Name, p.Value)
	if err != nil {
		return nil, err
	}
	return json.Marshal(t)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (p *Parameter) UnmarshalJSON(data []byte) error {
	var t typedValue
	if err := json.Unmarshal(data, &t); err != nil {
		return err
	}
	v, err := t.value()
	p.Name, p.Value = t.Name, v
	return err
}

type plainFields Fields

type fieldsRecord struct {
	plainFields
	Properties []Parameter `json:",omitempty"`
}

// MarshalJSON keeps the types of the properties.
func (f Fields) MarshalJSON() ([]byte, error) {
	r := fieldsRecord{plainFields: plainFields(f)}
	for name, v := range f.Properties {
		r.Properties = append(r.Properties, Parameter{name, v})
	}
	slices.SortFunc(r.Properties, func(a, b Parameter) int { return cmp.Compare(a.Name, b.Name) })
	return json.Marshal(r)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (f *Fields) UnmarshalJSON(data []byte) error {
	var r fieldsRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	*f = Fields(r.plainFields)
	f.Properties = nil
	for _, p := range r.Properties {
		if f.Properties == nil {
			f.Properties = make(map[string]any)
		}
		f.Properties[p.Name] = p.Value
	}
	return nil
}
