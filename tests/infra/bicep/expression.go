package bicep

import (
	"strings"
	"unicode/utf8"
)

// levels lists the binary operators by precedence, the lowest first.
var levels = [][]string{
	{"??"}, {"||"}, {"&&"}, {"==", "!=", "=~", "!~"}, {"<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/", "%"},
}

// expression reads one expression; it ends with its line unless a bracket is open.
func (p *parser) expression() *Node {
	p.enter()
	defer p.leave()
	condition := p.binary(0)
	p.space(false)
	if p.next() != '?' || strings.HasPrefix(p.rest(), "??") || strings.HasPrefix(p.rest(), "?.") {
		return condition
	}
	p.at++
	then := p.expression()
	p.expect(":")
	return &Node{Kind: Ternary, Kids: []*Node{condition, then, p.expression()}, Pos: condition.Pos}
}

// within reads an expression up to a closing bracket, over lines.
func (p *parser) within(closing string) *Node {
	p.space(true)
	n := p.expression()
	p.space(true)
	p.expect(closing)
	return n
}

func (p *parser) binary(level int) *Node {
	if level == len(levels) {
		return p.unary()
	}
	left := p.binary(level + 1)
	for {
		operator := p.operator(level)
		if operator == "" {
			return left
		}
		left = &Node{Kind: Binary, Text: operator, Kids: []*Node{left, p.binary(level + 1)}, Pos: left.Pos}
	}
}

func (p *parser) operator(level int) string {
	p.space(false)
	for _, operator := range levels[level] {
		if strings.HasPrefix(p.rest(), operator) {
			p.at += len(operator)
			return operator
		}
	}
	return ""
}

func (p *parser) unary() *Node {
	p.enter()
	defer p.leave()
	p.space(false)
	pos := p.pos()
	if c := p.next(); c == '!' || c == '-' {
		p.at++
		return &Node{Kind: Unary, Text: string(c), Kids: []*Node{p.unary()}, Pos: pos}
	}
	return p.postfix(p.primary())
}

func (p *parser) postfix(n *Node) *Node {
	for {
		switch {
		case p.next() == '.':
			p.at++
			n = &Node{Kind: Member, Text: p.name(), Kids: []*Node{n}, Pos: n.Pos}
		case p.next() == '[':
			p.at++
			n = &Node{Kind: Index, Kids: []*Node{n, p.within("]")}, Pos: n.Pos}
		case p.next() == '(':
			if n.Kind != Ident && n.Kind != Member {
				p.fail("only a function can be called")
			}
			p.at++
			n = &Node{Kind: Call, Kids: append([]*Node{n}, p.list(")", true)...), Pos: n.Pos}
		case p.next() == '!' && !strings.HasPrefix(p.rest(), "!=") && !strings.HasPrefix(p.rest(), "!~"):
			p.at++ // the operator ! ("not null") does not affect the value
		default:
			return n
		}
	}
}

func (p *parser) primary() *Node {
	pos := p.pos()
	switch c := p.next(); {
	case c == '\'':
		return p.str()
	case c == '(':
		p.at++
		return p.within(")")
	case c == '[':
		allowed := p.loopAt == p.at
		p.at++
		if p.space(true); p.keyword("for") {
			if !allowed {
				p.fail("a loop is the whole value of a var or a property")
			}
			return p.loop(pos)
		}
		return &Node{Kind: Array, Kids: p.list("]", false), Pos: pos}
	case c == '{':
		p.at++
		return &Node{Kind: Object, Kids: p.properties(), Pos: pos}
	case digit(c):
		start := p.at
		for digit(p.next()) {
			p.at++
		}
		return &Node{Kind: Number, Text: p.text[start:p.at], Pos: pos}
	}
	switch w := p.word(); w {
	case "":
		p.fail("expected an expression")
		return nil
	case "true", "false":
		return &Node{Kind: Bool, Text: w, Pos: pos}
	case "null":
		return &Node{Kind: Null, Pos: pos}
	case "for", "if":
		p.fail("%q is not of the dialect here", w)
		return nil
	default:
		return &Node{Kind: Ident, Text: w, Pos: pos}
	}
}

// loopable reads an expression that may be a loop.
func (p *parser) loopable() *Node {
	p.space(false)
	p.loopAt = p.at
	return p.expression()
}

// loop reads the rest of [for name in list: item].
func (p *parser) loop(pos Pos) *Node {
	n := p.loopHead(pos)
	n.Kids = append(n.Kids, p.within("]"))
	return n
}

// loopHead reads name in list, and the colon.
func (p *parser) loopHead(pos Pos) *Node {
	n := &Node{Kind: For, Text: p.name(), Pos: pos}
	if !p.keyword("in") {
		p.fail("expected in")
	}
	n.Kids = []*Node{p.expression()}
	p.expect(":")
	return n
}

// list reads items up to the closing bracket. Arguments are separated by commas,
// items of an array by commas or line ends.
func (p *parser) list(closing string, arguments bool) []*Node {
	var items []*Node
	for {
		p.space(true)
		if p.accept(closing) {
			return items
		}
		items = append(items, p.expression())
		p.separator(closing, !arguments)
	}
}

func (p *parser) properties() []*Node {
	var properties []*Node
	for {
		p.space(true)
		if p.accept("}") {
			return properties
		}
		pos := p.pos()
		var key *Node
		if p.next() == '\'' {
			key = p.str()
		} else {
			key = &Node{Kind: String, Kids: []*Node{{Kind: Text, Text: p.name(), Pos: pos}}, Pos: pos}
		}
		p.expect(":")
		properties = append(properties, &Node{Kind: Property, Kids: []*Node{key, p.loopable()}, Pos: pos})
		p.separator("}", true)
	}
}

// separator demands a comma, a line end if that will do, or the closing bracket.
func (p *parser) separator(closing string, lines bool) {
	p.space(!lines)
	switch {
	case p.accept(","):
	case lines && p.next() == '\n':
	case strings.HasPrefix(p.rest(), closing):
	default:
		p.fail("expected %q or a separator", closing)
	}
}

// str reads a string in single quotes with its interpolations.
func (p *parser) str() *Node {
	n := &Node{Kind: String, Pos: p.pos()}
	if strings.HasPrefix(p.rest(), "'''") {
		p.fail("multi-line strings are not of the dialect")
	}
	p.at++
	var piece strings.Builder
	flush := func() {
		if piece.Len() > 0 {
			n.Kids = append(n.Kids, &Node{Kind: Text, Text: piece.String(), Pos: n.Pos})
			piece.Reset()
		}
	}
	for {
		c := p.next()
		switch {
		case c == 0 || c == '\n':
			p.fail("string without an end")
		case c == '\'':
			p.at++
			flush()
			return n
		case c == '\\':
			p.at++
			piece.WriteString(p.escape())
		case strings.HasPrefix(p.rest(), "${"):
			flush()
			p.at += 2
			n.Kids = append(n.Kids, p.within("}"))
		default:
			r, size := utf8.DecodeRuneInString(p.rest())
			if r == utf8.RuneError && size == 1 {
				p.fail("not UTF-8")
			}
			piece.WriteRune(r)
			p.at += size
		}
	}
}

func (p *parser) escape() string {
	c := p.next()
	p.at++
	switch c {
	case 'n':
		return "\n"
	case 'r':
		return "\r"
	case 't':
		return "\t"
	case '\\', '\'', '$':
		return string(c)
	default:
		p.at--
		p.fail("unknown escape")
		return ""
	}
}
