package query

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted reads a string literal in single or double quotes, with the escapes of JSON and \'.
func (l *lexer) quoted(quote byte) (token, error) {
	start := l.pos
	l.pos++
	var b strings.Builder
	kept := l.pos // start of the part not yet copied to b
	for l.pos < len(l.text) {
		switch c := l.text[l.pos]; {
		case c == quote:
			b.WriteString(l.text[kept:l.pos])
			l.pos++
			return token{kind: tokString, pos: start, src: l.text[start:l.pos], text: b.String()}, nil
		case c == '\\':
			b.WriteString(l.text[kept:l.pos])
			r, err := l.escape()
			if err != nil {
				return token{}, err
			}
			b.WriteRune(r)
			kept = l.pos
		case c < utf8.RuneSelf:
			l.pos++
		default:
			r, size := utf8.DecodeRuneInString(l.text[l.pos:])
			if r == utf8.RuneError && size == 1 {
				return token{}, &SyntaxError{Pos: l.pos, Msg: fmt.Sprintf("byte 0x%02x is not UTF-8", c)}
			}
			l.pos += size
		}
	}
	return token{}, &SyntaxError{Pos: start, Msg: "the string that starts here has no closing quote"}
}

// escape reads one escape sequence; l.pos is at its backslash. A surrogate pair is one
// character, half of one becomes U+FFFD.
func (l *lexer) escape() (rune, error) {
	start := l.pos
	bad := &SyntaxError{Pos: start, Msg: `unknown escape in a string: use \" \' \\ \/ \b \f \n \r \t or \uXXXX`}
	if start+1 >= len(l.text) {
		return 0, bad
	}
	l.pos += 2
	switch c := l.text[start+1]; c {
	case '"', '\'', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		r, ok := hex4(l.text[l.pos:])
		if !ok {
			return 0, bad
		}
		l.pos += 4
		if !utf16.IsSurrogate(r) {
			return r, nil
		}
		if rest := l.text[l.pos:]; strings.HasPrefix(rest, `\u`) {
			if low, ok := hex4(rest[2:]); ok {
				if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
					l.pos += 6
					return both, nil
				}
			}
		}
		return utf8.RuneError, nil
	}
	return 0, bad
}

// hex4 reads four hexadecimal digits at the start of s.
func hex4[T string | []byte](s T) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	var r rune
	for i := range 4 {
		c := s[i]
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// number reads a number literal: decimal with an optional fraction and exponent (either side
// of the point may be empty), or hexadecimal after 0x.
func (l *lexer) number() (token, error) {
	start := l.pos
	if rest := l.text[start:]; len(rest) > 2 && rest[0] == '0' && rest[1]|0x20 == 'x' {
		l.pos += 2
		digits := l.run(isHexDigit)
		n, err := strconv.ParseUint(digits, 16, 64)
		if err != nil {
			return token{}, &SyntaxError{Pos: start, Msg: "a hexadecimal number has 1 to 16 digits after 0x"}
		}
		return l.finishNumber(start, strconv.FormatUint(n, 10))
	}
	whole := strings.TrimLeft(l.run(isDigit), "0")
	if whole == "" {
		whole = "0"
	}
	text := whole
	if l.pos < len(l.text) && l.text[l.pos] == '.' {
		l.pos++
		if fraction := l.run(isDigit); fraction != "" {
			text += "." + fraction
		}
	}
	if l.pos < len(l.text) && l.text[l.pos]|0x20 == 'e' {
		l.pos++
		sign := ""
		if l.pos < len(l.text) && (l.text[l.pos] == '+' || l.text[l.pos] == '-') {
			sign = l.text[l.pos : l.pos+1]
			l.pos++
		}
		digits := l.run(isDigit)
		if digits == "" {
			return token{}, &SyntaxError{Pos: start, Msg: "the exponent of a number needs digits"}
		}
		text += "e" + sign + digits
	}
	return l.finishNumber(start, text)
}

func (l *lexer) finishNumber(start int, text string) (token, error) {
	if l.word() != "" {
		return token{}, &SyntaxError{Pos: start, Msg: fmt.Sprintf("%q is neither a number nor a name", l.text[start:l.pos])}
	}
	if f, err := strconv.ParseFloat(text, 64); err != nil || math.IsInf(f, 0) {
		return token{}, &SyntaxError{Pos: start, Msg: "the number is too large"}
	}
	return token{kind: tokNumber, pos: start, src: l.text[start:l.pos], text: text}, nil
}

// run reads the longest run of bytes of a class.
func (l *lexer) run(class func(byte) bool) string {
	start := l.pos
	for l.pos < len(l.text) && class(l.text[l.pos]) {
		l.pos++
	}
	return l.text[start:l.pos]
}

func isHexDigit(c byte) bool {
	return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f'
}
