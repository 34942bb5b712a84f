package broker

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of an SQL filter: the service's on length, ours on nesting.
const (
	maxSQLLength = 1024
	maxSQLDepth  = 64
)

// parseSQL compiles the service's SQL filter language. What it does not know is an
// error, never ignored:
//
//	or      = and { OR and }
//	and     = not { AND not }
//	not     = NOT not | EXISTS "(" property ")" | test
//	test    = sum [ compare sum | [NOT] IN "(" sum { "," sum } ")" | [NOT] BETWEEN sum AND sum
//	              | [NOT] LIKE text [ESCAPE text] | IS [NOT] NULL ]
//	compare = "=" | "<>" | "!=" | "<" | "<=" | ">" | ">="
//	sum     = product { ("+" | "-") product }
//	product = sign { ("*" | "/" | "%") sign }
//	sign    = ("+" | "-") sign | "(" or ")" | value
//	value   = property | @parameter | text | number | TRUE | FALSE
//	          | newid "(" ")" | (property | p) "(" sum ")"
func parseSQL(expression string, parameters []Parameter) (condition, error) {
	p, err := newSQLParser(expression, parameters)
	if err != nil {
		return nil, err
	}
	c, err := p.condition(p.or)
	if err != nil {
		return nil, err
	}
	return c, p.end()
}

func newSQLParser(expression string, parameters []Parameter) (*sqlParser, error) {
	if n := utf8.RuneCountInString(expression); n > maxSQLLength {
		return nil, fmt.Errorf("it has %d characters, more than %d", n, maxSQLLength)
	}
	tokens, err := scanSQL(expression)
	if err != nil {
		return nil, err
	}
	return &sqlParser{tokens: tokens, parameters: parameters}, nil
}

// end checks that nothing follows.
func (p *sqlParser) end() error {
	if t := p.peek(); t.kind != endOfText {
		return fmt.Errorf("%s is not expected here", t)
	}
	return nil
}

// sqlNode is a part of an expression: one of the two is set. What stands in
// parentheses is known to be the one or the other only when it has been read.
type sqlNode struct {
	condition condition
	operand   operand
}

func isCondition(c condition) sqlNode { return sqlNode{condition: c} }
func isOperand(o operand) sqlNode     { return sqlNode{operand: o} }

// condition reads a part that must be true or false.
func (p *sqlParser) condition(read func() (sqlNode, error)) (condition, error) {
	n, err := read()
	if err == nil && n.condition == nil {
		err = fmt.Errorf("%s where a comparison is expected", p.peek())
	}
	return n.condition, err
}

// operand reads a part that must be a value.
func (p *sqlParser) operand(read func() (sqlNode, error)) (operand, error) {
	n, err := read()
	if err == nil && n.operand == nil {
		err = fmt.Errorf("a comparison where a value is expected, before %s", p.peek())
	}
	return n.operand, err
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

func (p *sqlParser) or() (sqlNode, error) {
	return p.chain("OR", p.and, func(terms []condition) condition { return anyOf(terms) })
}

func (p *sqlParser) and() (sqlNode, error) {
	return p.chain("AND", p.not, func(terms []condition) condition { return allOf(terms) })
}

func (p *sqlParser) chain(joint string, term func() (sqlNode, error), join func([]condition) condition) (sqlNode, error) {
	first, err := term()
	if err != nil || !p.peek().is(joint) {
		return first, err
	}
	if first.condition == nil {
		return first, fmt.Errorf("a value where a comparison is expected, before %s", p.peek())
	}
	terms := []condition{first.condition}
	for p.accept(joint) {
		c, err := p.condition(term)
		if err != nil {
			return sqlNode{}, err
		}
		terms = append(terms, c)
	}
	return isCondition(join(terms)), nil
}

// deeper bounds the nesting of what is read by recursion.
func (p *sqlParser) deeper() error {
	if p.depth++; p.depth > maxSQLDepth {
		return fmt.Errorf("it is nested more than %d deep", maxSQLDepth)
	}
	return nil
}

func (p *sqlParser) not() (sqlNode, error) {
	switch {
	case p.peek().is("NOT"):
		p.next()
		if err := p.deeper(); err != nil {
			return sqlNode{}, err
		}
		defer func() { p.depth-- }()
		c, err := p.condition(p.not)
		return isCondition(negation{c}), err
	case p.peek().is("EXISTS") && p.tokens[1].is("("):
		p.next()
		p.next()
		property, err := p.value()
		if err != nil {
			return sqlNode{}, err
		}
		if _, ok := property.(propertyRef); !ok {
			return sqlNode{}, fmt.Errorf("EXISTS needs a property")
		}
		return isCondition(negation{isNull{property}}), p.expect(")")
	}
	return p.test()
}

func (p *sqlParser) test() (sqlNode, error) {
	first, err := p.sum()
	if err != nil {
		return first, err
	}
	t := p.peek()
	comparing := t.kind == symbol && slices.Contains(comparisons, t.text)
	if !comparing && !slices.ContainsFunc(tests, t.is) {
		return first, nil
	}
	left := first.operand
	if left == nil {
		return first, fmt.Errorf("a comparison where a value is expected, before %s", t)
	}
	p.next()
	if comparing {
		right, err := p.operand(p.sum)
		return isCondition(comparison{t.text, left, right}), err
	}
	if t.is("IS") {
		negated := p.accept("NOT")
		return isCondition(negate(isNull{left}, negated)), p.expect("NULL")
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
	case t.is("BETWEEN"):
		c, err = p.between(left)
	default:
		err = fmt.Errorf("%s where a comparison is expected", t)
	}
	return isCondition(negate(c, negated)), err
}

var (
	comparisons = []string{"=", "<>", "!=", "<", "<=", ">", ">="}
	tests       = []string{"IS", "NOT", "IN", "LIKE", "BETWEEN"}
)

func (p *sqlParser) in(left operand) (condition, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var terms []condition
	for {
		right, err := p.operand(p.sum)
		if err != nil {
			return nil, err
		}
		terms = append(terms, comparison{"=", left, right})
		if !p.accept(",") {
			return anyOf(terms), p.expect(")")
		}
	}
}

func (p *sqlParser) between(value operand) (condition, error) {
	low, err := p.operand(p.sum)
	if err != nil {
		return nil, err
	}
	if err := p.expect("AND"); err != nil {
		return nil, err
	}
	high, err := p.operand(p.sum)
	return allOf{comparison{">=", value, low}, comparison{"<=", value, high}}, err
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

// property reads the rest of [sys.|user.]name.
func (p *sqlParser) property(first sqlToken) (operand, error) {
	if p.peek().is("(") {
		return p.function(first)
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
	case "AND", "OR", "NOT", "IN", "LIKE", "ESCAPE", "IS", "NULL", "TRUE", "FALSE", "EXISTS", "BETWEEN", "SET", "REMOVE":
		return true
	}
	return false
}
