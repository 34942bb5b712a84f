package broker

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// operand is a value in a comparison; nil stands for something absent.
type operand interface{ value(f *Fields) any }

type literal struct{ v any }

func (l literal) value(*Fields) any { return l.v }

// propertyRef is a user property, or one of the system. Names differ in case only if
// both exist.
type propertyRef struct {
	name   string
	system func(*Fields) any // of a system property; nil otherwise
}

func (p propertyRef) value(f *Fields) any {
	if p.system != nil {
		return p.system(f)
	}
	if v, ok := f.Properties[p.name]; ok {
		return normal(v)
	}
	for name, v := range f.Properties {
		if strings.EqualFold(name, p.name) {
			return normal(v)
		}
	}
	return nil
}

// systemText is where the system properties are that are texts, by lower-case name. An
// action can set them.
var systemText = map[string]func(*Fields) *string{
	"messageid":        func(f *Fields) *string { return &f.MessageID },
	"correlationid":    func(f *Fields) *string { return &f.CorrelationID },
	"to":               func(f *Fields) *string { return &f.To },
	"replyto":          func(f *Fields) *string { return &f.ReplyTo },
	"label":            func(f *Fields) *string { return &f.Subject },
	"subject":          func(f *Fields) *string { return &f.Subject },
	"sessionid":        func(f *Fields) *string { return &f.SessionID },
	"replytosessionid": func(f *Fields) *string { return &f.ReplyToSessionID },
	"contenttype":      func(f *Fields) *string { return &f.ContentType },
}

// systemFacts are the system properties that the broker sets.
var systemFacts = map[string]func(*Fields) any{
	"partitionkey": func(f *Fields) any {
		if f.PartitionKey == "" {
			return nil
		}
		return f.PartitionKey
	},
	"enqueuedtimeutc": func(f *Fields) any { return f.EnqueuedAt },
	"sequencenumber":  func(f *Fields) any { return f.SequenceNumber },
}

func newSystemProperty(name string) (operand, error) {
	lower := strings.ToLower(name)
	if get, ok := systemFacts[lower]; ok {
		return propertyRef{name: name, system: get}, nil
	}
	at, ok := systemText[lower]
	if !ok {
		return nil, fmt.Errorf("the system property sys.%s is not supported", name)
	}
	return propertyRef{name: name, system: func(f *Fields) any {
		if s := *at(f); s != "" {
			return s
		}
		return nil
	}}, nil
}

// comparison compares two operands. Absent operands and different types give unknown.
type comparison struct {
	operator    string
	left, right operand
}

func (c comparison) holds(f *Fields) truth {
	left, right := c.left.value(f), c.right.value(f)
	switch c.operator {
	case "=":
		return compareEqual(left, right)
	case "<>", "!=":
		return not(compareEqual(left, right))
	}
	order, ok := compareOrder(left, right)
	if !ok {
		return unknown
	}
	switch c.operator {
	case "<":
		return truthOf(order < 0)
	case "<=":
		return truthOf(order <= 0)
	case ">":
		return truthOf(order > 0)
	default:
		return truthOf(order >= 0)
	}
}

func compareEqual(left, right any) truth {
	if u, ok := left.(UUID); ok {
		return equalUUID(u, right)
	}
	if u, ok := right.(UUID); ok {
		return equalUUID(u, left)
	}
	if l, ok := left.(bool); ok {
		if r, ok := right.(bool); ok {
			return truthOf(l == r)
		}
		return unknown
	}
	order, ok := compareOrder(left, right)
	if !ok {
		return unknown
	}
	return truthOf(order == 0)
}

// equalUUID compares a UUID with another, or with its text.
func equalUUID(u UUID, other any) truth {
	switch o := other.(type) {
	case UUID:
		return truthOf(u == o)
	case string:
		return truthOf(strings.EqualFold(u.String(), o))
	}
	return unknown
}

func compareOrder(left, right any) (order int, ok bool) {
	switch l := left.(type) {
	case string:
		if r, ok := right.(string); ok {
			return strings.Compare(l, r), true
		}
	case time.Time:
		if r, ok := right.(time.Time); ok {
			return l.Compare(r), true
		}
	case int64:
		switch r := right.(type) {
		case int64:
			return cmp.Compare(l, r), true
		case float64:
			return cmp.Compare(float64(l), r), true
		}
	case float64:
		switch r := right.(type) {
		case int64:
			return cmp.Compare(l, float64(r)), true
		case float64:
			return cmp.Compare(l, r), true
		}
	}
	return 0, false
}

// normal brings a value to one of the types that are compared: string, bool, int64,
// float64, time.Time. Anything else is returned as it is and compares with nothing.
func normal(v any) any {
	switch n := v.(type) {
	case int:
		return int64(n)
	case int8:
		return int64(n)
	case int16:
		return int64(n)
	case int32:
		return int64(n)
	case uint:
		return normal(uint64(n))
	case uint8:
		return int64(n)
	case uint16:
		return int64(n)
	case uint32:
		return int64(n)
	case uint64:
		if n > 1<<63-1 {
			return float64(n)
		}
		return int64(n)
	case float32:
		return float64(n)
	}
	return v
}

type allOf []condition

func (c allOf) holds(f *Fields) truth {
	result := isTrue
	for _, term := range c {
		switch term.holds(f) {
		case isFalse:
			return isFalse
		case unknown:
			result = unknown
		case isTrue:
		}
	}
	return result
}

type anyOf []condition

func (c anyOf) holds(f *Fields) truth {
	result := isFalse
	for _, term := range c {
		switch term.holds(f) {
		case isTrue:
			return isTrue
		case unknown:
			result = unknown
		case isFalse:
		}
	}
	return result
}

type negation struct{ c condition }

func (n negation) holds(f *Fields) truth { return not(n.c.holds(f)) }

func negate(c condition, negated bool) condition {
	if negated {
		return negation{c}
	}
	return c
}

func not(t truth) truth {
	switch t {
	case isTrue:
		return isFalse
	case isFalse:
		return isTrue
	case unknown:
	}
	return unknown
}

type isNull struct{ o operand }

func (n isNull) holds(f *Fields) truth { return truthOf(n.o.value(f) == nil) }

// like is a LIKE test, compiled: % is any text, _ is any character.
type like struct {
	left    operand
	pattern *regexp.Regexp
}

func newLike(left operand, pattern, escape string) (condition, error) {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	escaped := false
	for _, c := range pattern {
		switch {
		case !escaped && escape != "" && string(c) == escape:
			escaped = true
			continue
		case !escaped && c == '%':
			b.WriteString(".*")
		case !escaped && c == '_':
			b.WriteString(".")
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
		escaped = false
	}
	if escaped {
		return nil, fmt.Errorf("the LIKE pattern ends with its escape character")
	}
	b.WriteString(`\z`)
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, fmt.Errorf("the LIKE pattern is not valid: %w", err)
	}
	return like{left, re}, nil
}

func (l like) holds(f *Fields) truth {
	s, ok := l.left.value(f).(string)
	if !ok {
		return unknown
	}
	return truthOf(l.pattern.MatchString(s))
}
