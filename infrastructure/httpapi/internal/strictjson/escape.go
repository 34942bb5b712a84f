package strictjson

import "unicode/utf16"

// escape reads one escape sequence, or the two of a surrogate pair.
func (p *parser) escape() (rune, error) {
	p.at++ // the backslash
	switch c := p.peek(); c {
	case '"', '\\', '/':
		p.at++
		return rune(c), nil
	case 'b':
		p.at++
		return '\b', nil
	case 'f':
		p.at++
		return '\f', nil
	case 'n':
		p.at++
		return '\n', nil
	case 'r':
		p.at++
		return '\r', nil
	case 't':
		p.at++
		return '\t', nil
	case 'u':
		return p.unicodeEscape()
	default:
		return 0, p.unexpected("an escape sequence")
	}
}

// unicodeEscape reads uXXXX, and a second \uXXXX if the first starts a surrogate pair. Half
// a pair is refused, because it has no UTF-8 form and a replacement character would change
// the data of the client.
func (p *parser) unicodeEscape() (rune, error) {
	first, err := p.hex4()
	if err != nil || !utf16.IsSurrogate(first) {
		return first, err
	}
	if p.peek() == '\\' && p.at+1 < len(p.data) && p.data[p.at+1] == 'u' {
		p.at++
		second, err := p.hex4()
		if err != nil {
			return 0, err
		}
		if r := utf16.DecodeRune(first, second); r != '\uFFFD' {
			return r, nil
		}
	}
	return 0, p.fail("half of a surrogate pair is not a character")
}

func (p *parser) hex4() (rune, error) {
	p.at++ // the u
	var r rune
	for range 4 {
		c := p.peek()
		switch {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, p.unexpected("a hexadecimal digit")
		}
		p.at++
	}
	return r, nil
}
