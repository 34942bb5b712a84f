package sqlfilter

import (
	"fmt"
	"regexp"
	"strings"
)

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

// like is a compiled LIKE: % matches any text, _ any character.
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
