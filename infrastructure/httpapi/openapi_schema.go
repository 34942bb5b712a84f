package httpapi

import (
	"strings"
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

// Rule is what a member takes, for the OpenAPI document: what is sent is judged by the
// domain, in Body.Check. No text takes control characters. The zero value allows all others.
type Rule struct {
	// MaxLength is the longest text in characters; zero is no bound.
	MaxLength int
	// NotEmpty demands something besides white space.
	NotEmpty bool
	// Email demands an e-mail address.
	Email bool
	// Refused are the characters that a text must not hold, as ranges from first to last.
	Refused [][2]rune
	// Minimum and Maximum bound an integer; nil is no bound.
	Minimum, Maximum *int64
}

// schemaOfText is the JSON Schema of a text under a rule. The patterns say what the rule
// says.
func schemaOfText(rule *Rule, nullable bool) object {
	schema := object{"type": "string"}
	if nullable {
		schema["type"] = []string{"string", "null"}
	}
	if rule == nil {
		return schema
	}
	var characters strings.Builder
	characters.WriteString(controls)
	for _, r := range rule.Refused {
		characters.WriteString(string(r[0]) + "-" + string(r[1]))
	}
	refused := characters.String()
	if rule.MaxLength > 0 {
		schema["maxLength"] = rule.MaxLength
	}
	schema["pattern"] = "^[^" + refused + "]*$"
	if rule.NotEmpty {
		schema["minLength"] = 1
		schema["pattern"] = "^[^" + refused + "]*[^" + refused + separators + "][^" + refused + "]*$"
	}
	if rule.Email {
		schema["format"] = "email"
		schema["pattern"] = "^[^@" + refused + separators + "]+@[^@" + refused + separators + "]+$"
	}
	return schema
}

func schemaOfInteger(rule *Rule) object {
	schema := object{"type": "integer", "format": "int64"}
	if rule != nil && rule.Minimum != nil {
		schema["minimum"] = *rule.Minimum
	}
	if rule != nil && rule.Maximum != nil {
		schema["maximum"] = *rule.Maximum
	}
	return schema
}

// bodyOfShape documents a body by the shape that decodes it.
func bodyOfShape(mediaType string, b Body) *bodyDoc {
	members := b.Members()
	return &bodyDoc{mediaType: mediaType, schema: schemaOfMembers(members), faults: wrongMembers(members)}
}

// schemaOfMembers is the schema of an object.
func schemaOfMembers(members []Member) object {
	properties := object{}
	required := []string{}
	for _, m := range members {
		switch into := m.into.(type) {
		case []Member:
			properties[m.name] = schemaOfMembers(into)
		case *int64:
			properties[m.name] = schemaOfInteger(m.rule)
		case *bool:
			properties[m.name] = object{"type": "boolean"}
		default:
			properties[m.name] = schemaOfText(m.rule, m.nullable)
		}
		if m.required {
			required = append(required, m.name)
		}
	}
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}
