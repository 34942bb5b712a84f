package sqlfilter

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of an SQL filter: the length is the service's, the nesting ours.
const (
	maxLength = 1024
	maxDepth  = 64
)

// ParseFilter compiles an SQL filter. An expression outside this grammar is refused:
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
func ParseFilter(expression string, parameters []Parameter) (Condition, error) {
	p, err := newParser(expression, parameters)
	if err != nil {
		return Condition{}, err
	}
	c, err := p.condition(p.or)
	if err != nil {
		return Condition{}, err
	}
	return Condition{c}, p.end()
}

func newParser(expression string, parameters []Parameter) (*parser, error) {
	if n := utf8.RuneCountInString(expression); n > maxLength {
		return nil, fmt.Errorf("it has %d characters, more than %d", n, maxLength)
	}
	tokens, err := scan(expression)
	if err != nil {
		return nil, err
	}
	return &parser{tokens: tokens, parameters: parameters}, nil
}

// end checks that nothing follows.
func (p *parser) end() error {
	if t := p.peek(); t.kind != endOfText {
		return fmt.Errorf("%s is not expected here", t)
	}
	return nil
}

// node is a part of an expression, either a condition or an operand. The kind of a part in
// parentheses is known only when it has been read.
type node struct {
	condition condition
	operand   operand
}

func isCondition(c condition) node { return node{condition: c} }
func isOperand(o operand) node     { return node{operand: o} }

// condition reads a part that must be true or false.
func (p *parser) condition(read func() (node, error)) (condition, error) {
	n, err := read()
	if err == nil && n.condition == nil {
		err = fmt.Errorf("%s where a comparison is expected", p.peek())
	}
	return n.condition, err
}

// operand reads a part that must be a value.
func (p *parser) operand(read func() (node, error)) (operand, error) {
	n, err := read()
	if err == nil && n.operand == nil {
		err = fmt.Errorf("a comparison where a value is expected, before %s", p.peek())
	}
	return n.operand, err
}

type parser struct {
	tokens     []token
	parameters []Parameter
	depth      int
}

func (p *parser) peek() token { return p.tokens[0] }

func (p *parser) next() token {
	t := p.tokens[0]
	if t.kind != endOfText {
		p.tokens = p.tokens[1:]
	}
	return t
}

// accept takes the next token if it is s.
func (p *parser) accept(s string) bool {
	if !p.peek().is(s) {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(s string) error {
	if t := p.next(); !t.is(s) {
		return fmt.Errorf("%s where '%s' is expected", t, s)
	}
	return nil
}

func (p *parser) or() (node, error) {
	return p.chain("OR", p.and, func(terms []condition) condition { return anyOf(terms) })
}

func (p *parser) and() (node, error) {
	return p.chain("AND", p.not, func(terms []condition) condition { return allOf(terms) })
}

func (p *parser) chain(joint string, term func() (node, error), join func([]condition) condition) (node, error) {
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
			return node{}, err
		}
		terms = append(terms, c)
	}
	return isCondition(join(terms)), nil
}

// deeper limits the recursion.
func (p *parser) deeper() error {
	if p.depth++; p.depth > maxDepth {
		return fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	return nil
}

func (p *parser) not() (node, error) {
	switch {
	case p.peek().is("NOT"):
		p.next()
		if err := p.deeper(); err != nil {
			return node{}, err
		}
		defer func() { p.depth-- }()
		c, err := p.condition(p.not)
		return isCondition(negation{c}), err
	case p.peek().is("EXISTS") && p.tokens[1].is("("):
		p.next()
		p.next()
		property, err := p.value()
		if err != nil {
			return node{}, err
		}
		if _, ok := property.(propertyRef); !ok {
			return node{}, fmt.Errorf("EXISTS needs a property")
		}
		return isCondition(negation{isNull{property}}), p.expect(")")
	}
	return p.test()
}

func (p *parser) test() (node, error) {
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

func (p *parser) in(left operand) (condition, error) {
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

func (p *parser) between(value operand) (condition, error) {
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

func (p *parser) like(left operand) (condition, error) {
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
func (p *parser) property(first token) (operand, error) {
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
