package httpapi

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"
)

// schemaOfView returns the schema of an answer type from its struct tags: json, and doc for
// the description, into which words are inserted. The schema of a type that encodes itself
// is unrestricted.
func schemaOfView(t reflect.Type, w words) object {
	switch t {
	case reflect.TypeFor[uuid.UUID]():
		return object{"type": "string", "format": "uuid"}
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	}
	switch {
	case t.Kind() == reflect.Pointer:
		schema := schemaOfView(t.Elem(), w)
		if of, known := schema["type"]; known {
			schema["type"] = []any{of, "null"}
		}
		return schema
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		return object{}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "contentEncoding": "base64"}
		}
		return object{"type": "array", "items": schemaOfView(t.Elem(), w)}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": schemaOfView(t.Elem(), w)}
	case reflect.Struct:
		schema := object{"type": "object", "properties": object{}, "required": []string{}}
		addFields(schema, t, w)
		return schema
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer"}
	default:
		return object{}
	}
}

// addFields adds the fields of a struct to the schema of an object, including those of
// embedded structs without a JSON name.
func addFields(schema object, t reflect.Type, w words) {
	for i := range t.NumField() {
		field := t.Field(i)
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case field.Anonymous && name == "" && field.Type.Kind() == reflect.Struct:
			addFields(schema, field.Type, w)
			continue
		case !field.IsExported() || tag == "-":
			continue
		case name == "":
			name = field.Name
		}
		one := schemaOfView(field.Type, w)
		if doc := field.Tag.Get("doc"); doc != "" {
			one["description"] = w.say(doc)
		}
		schema["properties"].(object)[name] = one //nolint:forcetypeassert // set by schemaOfView
		if !strings.Contains(options, "omit") {
			schema["required"] = append(schema["required"].([]string), name) //nolint:forcetypeassert // set by schemaOfView
		}
	}
}
