package epk

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrHeader is wrapped by every error of ParseHeader.
var ErrHeader = errors.New("malformed partition key header")

// ParseHeader reads the x-ms-documentdb-partitionkey header: a JSON array of scalars, in which
// {} is an absent property.
//
// It accepts the escapes of JSON and of Go, because azcosmos writes strings with
// strconv.QuoteToASCII, whose escapes JSON does not allow (\U0001f600, \x01, \v, \a;
// partition_key.go).
func ParseHeader(text string) (Key, error) {
	p := headerParser{rest: strings.TrimSpace(text)}
	if !p.eat('[') {
		return nil, fmt.Errorf("%w: %q does not start with [", ErrHeader, text)
	}
	var key Key
	for !p.eat(']') {
		if len(key) > 0 && !p.eat(',') {
			return nil, fmt.Errorf("%w: %q lacks a comma or the closing ]", ErrHeader, text)
		}
		v, err := p.value()
		if err != nil {
			return nil, fmt.Errorf("%w: %q: %w", ErrHeader, text, err)
		}
		key = append(key, v)
	}
	if p.space(); p.rest != "" {
		return nil, fmt.Errorf("%w: %q continues after the closing ]", ErrHeader, text)
	}
	return key, nil
}

type headerParser struct{ rest string }

func (p *headerParser) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

func (p *headerParser) eat(c byte) bool {
	p.space()
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *headerParser) word(w string) (found bool) {
	p.rest, found = strings.CutPrefix(p.rest, w)
	return found
}

func (p *headerParser) value() (Value, error) {
	p.space()
	switch {
	case p.rest == "":
		return Value{}, errors.New("a value is missing")
	case p.rest[0] == '"':
		return p.text()
	case p.word("null"):
		return Null(), nil
	case p.word("true"):
		return Bool(true), nil
	case p.word("false"):
		return Bool(false), nil
	case p.eat('{'):
		if !p.eat('}') {
			return Value{}, errors.New("an object is not a partition key value")
		}
		return Undefined(), nil
	}
	end := strings.IndexAny(p.rest, ", ]\t\r\n")
	if end < 0 {
		end = len(p.rest)
	}
	number := p.rest[:end]
	if strings.Trim(number, "0123456789+-.eE") != "" {
		return Value{}, fmt.Errorf("%q is not a partition key value", number)
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return Value{}, fmt.Errorf("%q is not a number", number)
	}
	p.rest = p.rest[end:]
	return Number(f), nil
}

func (p *headerParser) text() (Value, error) {
	p.rest = p.rest[1:]
	if end := strings.IndexAny(p.rest, `"\`); end >= 0 && p.rest[end] == '"' {
		v := String(p.rest[:end])
		p.rest = p.rest[end+1:]
		return v, checkText(v.str)
	}
	var out strings.Builder
	for p.rest != "" {
		switch p.rest[0] {
		case '"':
			p.rest = p.rest[1:]
			return String(out.String()), checkText(out.String())
		case '\\':
			r, err := p.escape()
			if err != nil {
				return Value{}, err
			}
			out.WriteRune(r)
		default:
			out.WriteByte(p.rest[0])
			p.rest = p.rest[1:]
		}
	}
	return Value{}, errors.New("a string is not closed")
}

func checkText(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("a string is not UTF-8")
	}
	return nil
}

func (p *headerParser) escape() (rune, error) {
	if len(p.rest) >= 2 && p.rest[1] == '/' { // an escape of JSON, but not of Go
		p.rest = p.rest[2:]
		return '/', nil
	}
	if high, ok := p.surrogate(0); ok {
		if low, ok := p.surrogate(6); ok && high < 0xDC00 && low >= 0xDC00 {
			p.rest = p.rest[12:]
			return (high-0xD800)<<10 | (low - 0xDC00) + 0x10000, nil
		}
		return 0, errors.New("half a surrogate pair")
	}
	r, _, tail, err := strconv.UnquoteChar(p.rest, '"')
	if err != nil {
		return 0, fmt.Errorf("unknown escape near %.12q", p.rest)
	}
	p.rest = tail
	return r, nil
}

// surrogate reads a JSON \uD800..\uDFFF escape at offset, without consuming it.
func (p *headerParser) surrogate(offset int) (rune, bool) {
	if len(p.rest) < offset+6 || p.rest[offset] != '\\' || p.rest[offset+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(p.rest[offset+2:offset+6], 16, 16)
	return rune(n), err == nil && n >= 0xD800 && n <= 0xDFFF
}
