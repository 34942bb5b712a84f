package sqlfilter

import (
	"crypto/rand"
	"fmt"
	"math"
	"slices"
	"strings"
)

func (p *parser) sum() (node, error)     { return p.arithmetic(p.product, "+", "-") }
func (p *parser) product() (node, error) { return p.arithmetic(p.sign, "*", "/", "%") }

// arithmetic reads operands joined by operators of equal precedence, from left to right.
func (p *parser) arithmetic(term func() (node, error), operators ...string) (node, error) {
	first, err := term()
	if err != nil {
		return first, err
	}
	for {
		t := p.peek()
		if t.kind != symbol || !slices.Contains(operators, t.text) {
			return first, nil
		}
		if first.operand == nil {
			return first, fmt.Errorf("a comparison where a value is expected, before %s", t)
		}
		p.next()
		right, err := p.operand(term)
		if err != nil {
			return first, err
		}
		first = isOperand(calculation{t.text[0], first.operand, right})
	}
}

func (p *parser) sign() (node, error) {
	switch t := p.peek(); {
	case t.is("-"), t.is("+"):
		p.next()
		if err := p.deeper(); err != nil {
			return node{}, err
		}
		defer func() { p.depth-- }()
		o, err := p.operand(p.sign)
		return isOperand(calculation{t.text[0], literal{int64(0)}, o}), err
	case t.is("("):
		p.next()
		if err := p.deeper(); err != nil {
			return node{}, err
		}
		defer func() { p.depth-- }()
		n, err := p.or()
		if err != nil {
			return n, err
		}
		return n, p.expect(")")
	default:
		o, err := p.value()
		return isOperand(o), err
	}
}

func (p *parser) value() (operand, error) {
	switch t := p.next(); {
	case t.kind == text:
		return literal{t.text}, nil
	case t.kind == number:
		return literal{t.value}, nil
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
}

// function reads the rest of newid() or property(name).
func (p *parser) function(name token) (operand, error) {
	p.next()
	switch {
	case name.is("newid"):
		return newID{}, p.expect(")")
	case name.is("property"), name.is("p"):
		if err := p.deeper(); err != nil {
			return nil, err
		}
		defer func() { p.depth-- }()
		o, err := p.operand(p.sum)
		if err != nil {
			return nil, err
		}
		return namedProperty{o}, p.expect(")")
	}
	return nil, fmt.Errorf("the function %s is not supported", name.text)
}

// newID is newid(): a new UUID at each evaluation.
type newID struct{}

func (newID) value(*Fields) any {
	var u UUID
	_, _ = rand.Read(u[:]) // never fails
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return u
}

// namedProperty is property(name): the user property whose name is the value of an operand.
type namedProperty struct{ name operand }

func (p namedProperty) value(f *Fields) any {
	name, ok := p.name.value(f).(string)
	if !ok {
		return nil
	}
	return propertyRef{name: name}.value(f)
}

// calculation is arithmetic on numbers. Whole numbers give a whole number. Other operands, a
// division by zero and an overflow give an absent value.
type calculation struct {
	operator    byte
	left, right operand
}

func (c calculation) value(f *Fields) any {
	left, right := c.left.value(f), c.right.value(f)
	l, lok := left.(int64)
	r, rok := right.(int64)
	if lok && rok {
		return c.whole(l, r)
	}
	x, xok := floating(left)
	y, yok := floating(right)
	if !xok || !yok {
		return nil
	}
	var result float64
	switch c.operator {
	case '+':
		result = x + y
	case '-':
		result = x - y
	case '*':
		result = x * y
	case '/':
		result = x / y
	default:
		result = math.Mod(x, y)
	}
	if math.IsNaN(result) || math.IsInf(result, 0) {
		return nil
	}
	return result
}

func (c calculation) whole(l, r int64) any {
	switch c.operator {
	case '+':
		if sum := l + r; (sum > l) == (r > 0) {
			return sum
		}
	case '-':
		if difference := l - r; (difference < l) == (r > 0) {
			return difference
		}
	case '*':
		if l == 0 || r == 0 {
			return int64(0)
		}
		if product := l * r; product/r == l && (l != -1 || r != math.MinInt64) && (r != -1 || l != math.MinInt64) {
			return product
		}
	case '/':
		if r != 0 && (l != math.MinInt64 || r != -1) {
			return l / r
		}
	default:
		if r != 0 {
			return l % r
		}
	}
	return nil
}

func floating(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
