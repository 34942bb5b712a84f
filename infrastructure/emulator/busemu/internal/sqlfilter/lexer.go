package sqlfilter

import (
	"fmt"
	"strconv"
	"strings"
)

// tokenKind is the kind of an SQL token.
type tokenKind uint8

const (
	endOfText tokenKind = iota
	word                // keyword or identifier
	quoted              // [identifier] or "identifier"
	parameter           // @name
	text                // 'literal'
	number
	symbol
)

type token struct {
	kind  tokenKind
	text  string // symbol in upper case; otherwise as written, without quotes
	value any    // of a number: int64 or float64
}

// is reports whether t is the given keyword or symbol.
func (t token) is(s string) bool {
	return t.kind == symbol && t.text == s || t.kind == word && strings.EqualFold(t.text, s)
}

func (t token) String() string {
	if t.kind == endOfText {
		return "the end of the expression"
	}
	return "'" + t.text + "'"
}

// scan splits an expression into tokens. The last one is endOfText.
func scan(s string) ([]token, error) {
	var tokens []token
	for i := 0; ; {
		for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r') {
			i++
		}
		if i == len(s) {
			return append(tokens, token{}), nil
		}
		t, n, err := scanToken(s[i:])
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, t)
		i += n
	}
}

func scanToken(s string) (t token, n int, err error) {
	switch c := s[0]; {
	case c == '\'':
		return scanQuoted(s, text, '\'')
	case c == '"':
		return scanQuoted(s, quoted, '"')
	case c == '[':
		return scanQuoted(s, quoted, ']')
	case c == '@':
		n = 1 + wordLength(s[1:])
		if n == 1 {
			return t, 0, fmt.Errorf("'@' without a name")
		}
		return token{kind: parameter, text: s[:n]}, n, nil
	case isDigit(c) || c == '.' && len(s) > 1 && isDigit(s[1]):
		return scanNumber(s)
	case isLetter(c):
		n = wordLength(s)
		return token{kind: word, text: s[:n]}, n, nil
	}
	for _, two := range []string{"<>", "!=", "<=", ">="} {
		if strings.HasPrefix(s, two) {
			return token{kind: symbol, text: two}, 2, nil
		}
	}
	if strings.IndexByte("=<>(),.-+*/%;", s[0]) >= 0 {
		return token{kind: symbol, text: s[:1]}, 1, nil
	}
	return t, 0, fmt.Errorf("unexpected character %q", s[:1])
}

// scanQuoted reads a text up to end. Inside the text, end is written twice.
func scanQuoted(s string, kind tokenKind, end byte) (token, int, error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != end {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == end {
			b.WriteByte(end)
			i++
			continue
		}
		return token{kind: kind, text: b.String()}, i + 1, nil
	}
	return token{}, 0, fmt.Errorf("%q has no end", s)
}

func scanNumber(s string) (token, int, error) {
	n, whole := 0, true
	for n < len(s) && (isDigit(s[n]) || s[n] == '.' || s[n] == 'e' || s[n] == 'E' ||
		(s[n] == '-' || s[n] == '+') && (s[n-1] == 'e' || s[n-1] == 'E')) {
		whole = whole && isDigit(s[n])
		n++
	}
	t := token{kind: number, text: s[:n]}
	if n < len(s) && isLetter(s[n]) {
		return t, 0, fmt.Errorf("%q is not a number", s[:n+1])
	}
	if whole {
		if v, err := strconv.ParseInt(t.text, 10, 64); err == nil {
			t.value = v
			return t, n, nil
		}
	}
	v, err := strconv.ParseFloat(t.text, 64)
	if err != nil {
		return t, 0, fmt.Errorf("%q is not a number", t.text)
	}
	t.value = v
	return t, n, nil
}

func wordLength(s string) int {
	n := 0
	for n < len(s) && (isLetter(s[n]) || isDigit(s[n])) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' }
