package broker

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of an SQL filter: the service's on length, ours on nesting.
const (
	maxSQLLength = 1024
	maxSQLDepth  = 64
)

// parseSQL compiles the subset of the service's SQL filter language that compares
// properties. What it does not know is an error, never ignored:
//
//	or      = and { OR and }
//	and     = not { AND not }
//	not     = NOT not | "(" or ")" | EXISTS "(" property ")" | test
//	test    = operand ( compare operand | [NOT] IN "(" operand { "," operand } ")"
//	                  | [NOT] LIKE text [ESCAPE text] | IS [NOT] NULL )
//	compare = "=" | "<>" | "!=" | "<" | "<=" | ">" | ">="
//	operand = property | @parameter | text | [-] number | TRUE | FALSE
func parseSQL(expression string, parameters []Parameter) (condition, error) {
	if n := utf8.RuneCountInString(expression); n > maxSQLLength {
		return nil, fmt.Errorf("it has %d characters, more than %d", n, maxSQLLength)
	}
	tokens, err := scanSQL(expression)
	if err != nil {
		return nil, err
	}
	p := &sqlParser{tokens: tokens, parameters: parameters}
	c, err := p.or()
	if err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind != endOfText {
		return nil, fmt.Errorf("%s is not expected here", t)
	}
	return c, nil
}

type sqlParser struct {
	tokens     []sqlToken
	parameters []Parameter
	depth      int
}

func (p *sqlParser) peek() sqlToken { return p.tokens[0] }

func (p *sqlParser) next() sqlToken {
	t := p.tokens[0]
	if t.kind != endOfText {
		p.tokens = p.tokens[1:]
	}
	return t
}

// accept takes the next token if it is s.
func (p *sqlParser) accept(s string) bool {
	if !p.peek().is(s) {
		return false
	}
	p.next()
	return true
}

func (p *sqlParser) expect(s string) error {
	if t := p.next(); !t.is(s) {
		return fmt.Errorf("%s where '%s' is expected", t, s)
	}
	return nil
}

func (p *sqlParser) or() (condition, error) {
	return p.chain("OR", p.and, func(terms []condition) condition { return anyOf(terms) })
}

func (p *sqlParser) and() (condition, error) {
	return p.chain("AND", p.not, func(terms []condition) condition { return allOf(terms) })
}

func (p *sqlParser) chain(joint string, term func() (condition, error), join func([]condition) condition) (condition, error) {
	first, err := term()
	if err != nil {
		return nil, err
	}
	terms := []condition{first}
	for p.accept(joint) {
		c, err := term()
		if err != nil {
			return nil, err
		}
		terms = append(terms, c)
	}
	if len(terms) == 1 {
		return first, nil
	}
	return join(terms), nil
}

func (p *sqlParser) not() (condition, error) {
	if p.depth++; p.depth > maxSQLDepth {
		return nil, fmt.Errorf("it is nested more than %d deep", maxSQLDepth)
	}
	defer func() { p.depth-- }()
	switch {
	case p.accept("NOT"):
		c, err := p.not()
		return negation{c}, err
	case p.accept("("):
		c, err := p.or()
		if err != nil {
			return nil, err
		}
		return c, p.expect(")")
	case p.peek().is("EXISTS") && p.tokens[1].is("("):
		p.next()
		p.next()
		property, err := p.operand()
		if err != nil {
			return nil, err
		}
		if _, ok := property.(propertyRef); !ok {
			return nil, fmt.Errorf("EXISTS needs a property")
		}
		return negation{isNull{property}}, p.expect(")")
	}
	return p.test()
}

func (p *sqlParser) test() (condition, error) {
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	t := p.next()
	if t.kind == symbol {
		switch t.text {
		case "=", "<>", "!=", "<", "<=", ">", ">=":
			right, err := p.operand()
			return comparison{t.text, left, right}, err
		case "+", "-", "*", "/", "%":
			return nil, fmt.Errorf("arithmetic (%s) is not supported", t)
		}
	}
	if t.is("IS") {
		negated := p.accept("NOT")
		return negate(isNull{left}, negated), p.expect("NULL")
	}
	negated := t.is("NOT")
	if negated {
		t = p.next()
	}
	var c condition
	switch {
	case t.is("IN"):
		c, err = p.in(left)
	case t.is("LIKE"):
		c, err = p.like(left)
	default:
		err = fmt.Errorf("%s where a comparison is expected", t)
	}
	return negate(c, negated), err
}

func (p *sqlParser) in(left operand) (condition, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var terms []condition
	for {
		right, err := p.operand()
		if err != nil {
			return nil, err
		}
		terms = append(terms, comparison{"=", left, right})
		if !p.accept(",") {
			return anyOf(terms), p.expect(")")
		}
	}
}

func (p *sqlParser) like(left operand) (condition, error) {
	pattern := p.next()
	if pattern.kind != text {
		return nil, fmt.Errorf("LIKE needs a text, not %s", pattern)
	}
	escape := ""
	if p.accept("ESCAPE") {
		t := p.next()
		if t.kind != text || utf8.RuneCountInString(t.text) != 1 {
			return nil, fmt.Errorf("ESCAPE needs a text of one character, not %s", t)
		}
		escape = t.text
	}
	return newLike(left, pattern.text, escape)
}

func (p *sqlParser) operand() (operand, error) {
	switch t := p.next(); {
	case t.kind == text:
		return literal{t.text}, nil
	case t.kind == number:
		return literal{t.value}, nil
	case t.is("-") && p.peek().kind == number:
		switch v := p.next().value.(type) {
		case int64:
			return literal{-v}, nil
		case float64:
			return literal{-v}, nil
		}
	case t.is("TRUE"), t.is("FALSE"):
		return literal{t.is("TRUE")}, nil
	case t.kind == parameter:
		for _, known := range p.parameters {
			if strings.EqualFold(known.Name, t.text) {
				return literal{normal(known.Value)}, nil
			}
		}
		return nil, fmt.Errorf("the parameter %s has no value", t.text)
	case t.kind == quoted || t.kind == word && !reserved(t.text):
		return p.property(t)
	default:
		return nil, fmt.Errorf("%s where a property or a value is expected", t)
	}
	return nil, fmt.Errorf("a number is expected")
}

// property reads the rest of [sys.|user.]name.
func (p *sqlParser) property(first sqlToken) (operand, error) {
	if p.peek().is("(") {
		return nil, fmt.Errorf("the function %s is not supported", first.text)
	}
	if !p.accept(".") {
		return propertyRef{name: first.text}, nil
	}
	name := p.next()
	if name.kind != word && name.kind != quoted {
		return nil, fmt.Errorf("%s where the name of a property is expected", name)
	}
	switch {
	case first.is("user"):
		return propertyRef{name: name.text}, nil
	case first.is("sys"):
		return newSystemProperty(name.text)
	}
	return nil, fmt.Errorf("%s is not a scope: write sys. or user", first)
}

func reserved(word string) bool {
	switch strings.ToUpper(word) {
	case "AND", "OR", "NOT", "IN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE", "FALSE", "EXISTS", "SET", "REMOVE":
		return true
	}
	return false
}
