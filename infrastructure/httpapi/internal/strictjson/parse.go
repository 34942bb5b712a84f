package strictjson

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Parse parses one JSON text of at most maxDepth nested arrays and objects. The error is a
// *SyntaxError or a *LimitError.
func Parse(data []byte, maxDepth int) (*Document, error) {
	p := &parser{data: data, maxDepth: maxDepth}
	document := &Document{}
	p.document = document
	p.space()
	root, err := p.value()
	if err != nil {
		return nil, err
	}
	p.space()
	if p.at < len(p.data) {
		return nil, p.fail("there is data after the end of the value")
	}
	document.Root = root
	return document, nil
}

type parser struct {
	data     []byte
	at       int
	maxDepth int
	depth    int
	path     []step // to the current value
	document *Document
}

// step is one token of the path to a value. Pointers are built only if one is reported,
// because most bodies have no faults.
type step struct {
	name  string // of a member
	index int    // of an element, if array is set
	array bool
}

func (p *parser) pointer() string {
	pointer := ""
	for _, s := range p.path {
		if len(pointer) >= maxPointer-utf8.UTFMax {
			break // Pointer truncates the rest
		}
		name := s.name
		if s.array {
			name = strconv.Itoa(s.index)
		}
		pointer = Pointer(pointer, name)
	}
	return pointer
}

func (p *parser) fail(problem string) error { return &SyntaxError{Offset: p.at, Problem: problem} }

func (p *parser) beyond(limit string, of int) error {
	return &LimitError{Pointer: p.pointer(), Problem: fmt.Sprintf(limit, of)}
}

// unexpected describes the byte at which reading stopped.
func (p *parser) unexpected(wanted string) error {
	if p.at >= len(p.data) {
		return p.fail("the text ends where " + wanted + " is expected")
	}
	return p.fail("unexpected " + strconv.QuoteRune(rune(p.data[p.at])) + " where " + wanted + " is expected")
}

func (p *parser) space() {
	for p.at < len(p.data) {
		switch p.data[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end; no value starts with NUL.
func (p *parser) peek() byte {
	if p.at < len(p.data) {
		return p.data[p.at]
	}
	return 0
}

func (p *parser) value() (Value, error) {
	switch c := p.peek(); {
	case c == '{' || c == '[':
		if p.depth >= p.maxDepth {
			return Value{}, p.beyond("be nested deeper than %d levels", p.maxDepth)
		}
		p.at++
		p.depth++
		defer func() { p.depth-- }()
		if c == '{' {
			return p.object()
		}
		return p.array()
	case c == '"':
		text, err := p.text()
		return Value{Kind: String, Text: text}, err
	case c == '-' || isDigit(c):
		return p.number()
	case p.literal("true"):
		return Value{Kind: Bool, True: true}, nil
	case p.literal("false"):
		return Value{Kind: Bool}, nil
	case p.literal("null"):
		return Value{Kind: Null}, nil
	default:
		return Value{}, p.unexpected("a value")
	}
}

func (p *parser) literal(word string) bool {
	if len(p.data)-p.at < len(word) || string(p.data[p.at:p.at+len(word)]) != word {
		return false
	}
	p.at += len(word)
	return true
}

func (p *parser) object() (Value, error) {
	object := Value{Kind: Object}
	p.space()
	if p.peek() == '}' {
		p.at++
		return object, nil
	}
	for {
		if len(object.Members) == maxMembers {
			return Value{}, p.beyond("have more than %d members", maxMembers)
		}
		p.space()
		if p.peek() != '"' {
			return Value{}, p.unexpected("a member name")
		}
		name, err := p.text()
		if err != nil {
			return Value{}, err
		}
		p.space()
		if p.peek() != ':' {
			return Value{}, p.unexpected("a colon")
		}
		p.at++
		p.space()
		p.path = append(p.path, step{name: name})
		value, err := p.value()
		if err != nil {
			return Value{}, err
		}
		if len(p.document.Duplicates) < maxDuplicates && object.Has(name) {
			p.document.Duplicates = append(p.document.Duplicates, p.pointer())
		}
		p.path = p.path[:len(p.path)-1]
		object.Members = append(object.Members, Member{Name: name, Value: value})
		p.space()
		switch p.peek() {
		case ',':
			p.at++
		case '}':
			p.at++
			return object, nil
		default:
			return Value{}, p.unexpected("a comma or the end of the object")
		}
	}
}

// Has reports whether an Object has a member of that name.
func (v Value) Has(name string) bool {
	for _, m := range v.Members {
		if m.Name == name {
			return true
		}
	}
	return false
}

func (p *parser) array() (Value, error) {
	array := Value{Kind: Array}
	p.space()
	if p.peek() == ']' {
		p.at++
		return array, nil
	}
	for i := 0; ; i++ {
		p.space()
		p.path = append(p.path, step{index: i, array: true})
		if _, err := p.value(); err != nil {
			return Value{}, err
		}
		p.path = p.path[:len(p.path)-1]
		p.space()
		switch p.peek() {
		case ',':
			p.at++
		case ']':
			p.at++
			return array, nil
		default:
			return Value{}, p.unexpected("a comma or the end of the array")
		}
	}
}

// number reads -? int frac? exp? of RFC 8259 §6.
func (p *parser) number() (Value, error) {
	start := p.at
	if p.peek() == '-' {
		p.at++
	}
	switch {
	case p.peek() == '0':
		p.at++
	case !p.digits():
		return Value{}, p.unexpected("a digit")
	}
	if p.peek() == '.' {
		p.at++
		if !p.digits() {
			return Value{}, p.unexpected("a digit")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		if !p.digits() {
			return Value{}, p.unexpected("a digit")
		}
	}
	return Value{Kind: Number, Text: string(p.data[start:p.at])}, nil
}

// digits reads one or more digits and reports whether there was one.
func (p *parser) digits() bool {
	start := p.at
	for isDigit(p.peek()) {
		p.at++
	}
	return p.at > start
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// text reads a string with its quotes. A string without escapes, which is the usual case,
// is copied at once.
func (p *parser) text() (string, error) {
	p.at++
	start := p.at
	var decoded []byte // the part before start, if it has escapes
	for p.at < len(p.data) {
		switch p.data[p.at] {
		case '"':
			rest := p.data[start:p.at]
			p.at++
			if decoded == nil {
				return string(rest), nil
			}
			return string(append(decoded, rest...)), nil
		case '\\':
			decoded = append(decoded, p.data[start:p.at]...)
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			decoded, start = utf8.AppendRune(decoded, r), p.at
		default:
			if err := p.character(); err != nil {
				return "", err
			}
		}
	}
	return "", p.fail("the text ends inside a string")
}

// character skips one unescaped character.
func (p *parser) character() error {
	c := p.data[p.at]
	if c < 0x20 {
		return p.fail("a control character must be escaped")
	}
	if c < utf8.RuneSelf {
		p.at++
		return nil
	}
	r, size := utf8.DecodeRune(p.data[p.at:])
	if r == utf8.RuneError && size <= 1 {
		return p.fail("the text is not valid UTF-8")
	}
	p.at += size
	return nil
}
