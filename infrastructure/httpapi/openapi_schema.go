package httpapi

import (
	"strings"
)

// object is a JSON object of the OpenAPI document.
type object = map[string]any

// Parts of character classes: control characters (Unicode category Cc) and separators (Z).
// They are spelt out because not every regular expression dialect supports \p.
const (
	controls   = `\x00-\x1f\x7f-\x9f`
	separators = " \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
)

// Rule documents the validation of a member in the OpenAPI document. It does not validate;
// the domain does that in Body.Check. No text may contain control characters. The zero
// value allows all others.
type Rule struct {
	// MaxLength is the maximum length in characters; zero means unlimited.
	MaxLength int
	// NotEmpty requires a character other than white space.
	NotEmpty bool
	// Email requires an e-mail address.
	Email bool
	// Refused lists ranges of forbidden characters, from first to last.
	Refused [][2]rune
	// Minimum and Maximum bound an integer; nil means unbounded.
	Minimum, Maximum *int64
}

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

// bodyOfShape documents a body by the members that decode it.
func bodyOfShape(mediaType string, b Body) *bodyDoc {
	members := b.Members()
	return &bodyDoc{mediaType: mediaType, schema: schemaOfMembers(members), faults: wrongMembers(members)}
}

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
