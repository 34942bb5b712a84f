package httpapi

import (
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"

	"feedbox/domain/contact"
)

// object is a JSON object of the OpenAPI document.
type object = map[string]any

// The characters that rules speak of, as parts of a character class. They are
// spelt out because not every regular expression dialect knows \p: control
// characters (Unicode category Cc) and separators (Z).
const (
	controls   = `\x00-\x1f\x7f-\x9f`
	separators = " \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
)

// schemaOfRule is the JSON Schema of a field under the domain's rule. The
// patterns say what the rule says: no control characters, no invisible ones but in
// prose, and where a text is required, something besides white space.
func schemaOfRule(rule contact.Rule, nullable bool) object {
	refused := controls
	if !rule.Prose {
		for _, r := range contact.Invisible() {
			refused += string(r[0]) + "-" + string(r[1])
		}
	}
	schema := object{"type": "string", "maxLength": rule.MaxLength, "pattern": "^[^" + refused + "]*$"}
	if rule.Required {
		schema["minLength"] = 1
		schema["pattern"] = "^[^" + refused + "]*[^" + refused + separators + "][^" + refused + "]*$"
	}
	if rule.Email {
		schema["format"] = "email"
		schema["pattern"] = "^[^@" + refused + separators + "]+@[^@" + refused + separators + "]+$"
	}
	if nullable {
		schema["type"] = []string{"string", "null"}
	}
	return schema
}

// schemaOfShape is the schema of a request body.
func schemaOfShape(b shape) object {
	properties := object{}
	required := []string{}
	for _, m := range b.members() {
		properties[m.rule.Field] = schemaOfRule(m.rule, m.nullable)
		if m.required {
			required = append(required, m.rule.Field)
		}
	}
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// schemaOfPatch is the schema of a merge patch. Null removes what may be
// absent; what a contact must have cannot be removed.
func schemaOfPatch() object {
	root := object{"type": "object", "additionalProperties": false}
	properties := object{}
	for _, group := range (&patchBody{}).groups() {
		members := object{}
		for _, m := range group.members {
			rule := ruleOf(m.name)
			members[m.name] = schemaOfRule(rule, !rule.Required || rule.Email)
		}
		if group.name == "" {
			for name, schema := range members {
				properties[name] = schema
			}
			continue
		}
		properties[group.name] = object{"type": "object", "properties": members, "additionalProperties": false}
	}
	root["properties"] = properties
	return root
}

// schemaOfView is the schema of an answer, by the tags that encode it.
func schemaOfView(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[uuid.UUID]():
		return object{"type": "string", "format": "uuid"}
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		schema := schemaOfView(t.Elem())
		schema["type"] = []any{schema["type"], "null"}
		return schema
	case t.Kind() == reflect.Slice:
		return object{"type": "array", "items": schemaOfView(t.Elem())}
	case t.Kind() == reflect.Struct:
		return schemaOfStruct(t)
	case t.Kind() == reflect.Bool:
		return object{"type": "boolean"}
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int64:
		return object{"type": "integer"}
	default:
		return object{"type": "string"}
	}
}

func schemaOfStruct(t reflect.Type) object {
	properties := object{}
	required := []string{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		schema := schemaOfView(field.Type)
		if doc := field.Tag.Get("doc"); doc != "" {
			schema["description"] = doc
		}
		properties[name] = schema
		if !strings.Contains(options, "omitempty") {
			required = append(required, name)
		}
	}
	return object{"type": "object", "properties": properties, "required": required}
}
