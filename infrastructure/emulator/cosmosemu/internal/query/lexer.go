package query

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText is the length of the longest query that the service accepts.
// https://learn.microsoft.com/azure/cosmos-db/concepts-limits#sql-query-limits
const maxText = 512 << 10

type tokenKind uint8

const (
	tokEOF     tokenKind = iota
	tokIdent             // text is the identifier
	tokKeyword           // word is the keyword in upper case
	tokParam             // text has the leading @
	tokString            // text is the decoded content
	tokNumber            // text is the number in JSON
	tokPunct             // word is the operator or bracket
)

// token is one lexical element. src is its text in the query, pos its byte offset.
type token struct {
	kind tokenKind
	pos  int
	src  string
	word string
	text string
}

// describe names the token in an error message.
func (t token) describe() string {
	if t.kind == tokEOF {
		return "the end of the query"
	}
	return strconv.Quote(t.src)
}

// lexer splits a query into tokens on demand. Whitespace and comments (-- to the end of the
// line) separate tokens.
type lexer struct {
	text string
	pos  int
}

// next returns the next token. A non-nil error is a *SyntaxError.
func (l *lexer) next() (token, error) {
	l.skipBlank()
	start := l.pos
	if start >= len(l.text) {
		return token{kind: tokEOF, pos: len(l.text)}, nil
	}
	switch c := l.text[start]; {
	case c == '"' || c == '\'':
		return l.quoted(c)
	case c == '@':
		l.pos++
		if l.word() == "" {
			return token{}, &SyntaxError{Pos: start, Msg: "a parameter needs a name after @"}
		}
		return token{kind: tokParam, pos: start, src: l.text[start:l.pos], text: l.text[start:l.pos]}, nil
	case isDigit(c) || c == '.' && start+1 < len(l.text) && isDigit(l.text[start+1]):
		return l.number()
	}
	if w := l.word(); w != "" {
		if kw := keyword(w); kw != "" {
			return token{kind: tokKeyword, pos: start, src: w, word: kw, text: w}, nil
		}
		return token{kind: tokIdent, pos: start, src: w, text: w}, nil
	}
	return l.punct()
}

func (l *lexer) skipBlank() {
	for l.pos < len(l.text) {
		switch c := l.text[l.pos]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			l.pos++
		case strings.HasPrefix(l.text[l.pos:], "--"):
			end := strings.IndexByte(l.text[l.pos:], '\n')
			if end < 0 {
				end = len(l.text) - l.pos
			}
			l.pos += end
		default:
			return
		}
	}
}

// word reads an identifier or keyword: a letter or underscore, then also digits.
func (l *lexer) word() string {
	start := l.pos
	for l.pos < len(l.text) {
		c := l.text[l.pos]
		if c < utf8.RuneSelf {
			if c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' || l.pos > start && isDigit(c) {
				l.pos++
				continue
			}
			break
		}
		r, size := utf8.DecodeRuneInString(l.text[l.pos:])
		if !unicode.IsLetter(r) && (l.pos == start || !unicode.IsDigit(r)) {
			break
		}
		l.pos += size
	}
	return l.text[start:l.pos]
}

// singles are the operators and brackets of one character.
const singles = "=<>+-*/%&^|~?:,.()[]{}"

// punct reads an operator or bracket.
func (l *lexer) punct() (token, error) {
	rest := l.text[l.pos:]
	size := 0
	if strings.IndexByte(singles, rest[0]) >= 0 {
		size = 1
	}
	if len(rest) > 1 {
		switch rest[:2] {
		case "!=", "<>", "<=", ">=", "||", "??", "<<", ">>":
			size = 2
		}
	}
	if strings.HasPrefix(rest, ">>>") {
		size = 3
	}
	if size == 0 {
		return token{}, l.stray(rest)
	}
	t := token{kind: tokPunct, pos: l.pos, src: rest[:size], word: rest[:size]}
	if t.word == "<>" {
		t.word = "!="
	}
	l.pos += size
	return t, nil
}

// stray returns the error for a character that cannot start a token.
func (l *lexer) stray(rest string) error {
	r, size := utf8.DecodeRuneInString(rest)
	if r == utf8.RuneError && size == 1 {
		return &SyntaxError{Pos: l.pos, Msg: fmt.Sprintf("byte 0x%02x is not UTF-8", rest[0])}
	}
	return &SyntaxError{Pos: l.pos, Msg: fmt.Sprintf("unexpected character %q", r)}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// keywords are the reserved words, which cannot name a property after a dot, an alias or a
// source. The set is from the grammar of the .NET SDK (Query/Core/Parser/sql.g4), without
// RANK, FIRST, LAST and ALL. These are also names there or were added to the language late,
// so the parser checks for them only where they are relevant.
var keywords = map[string]bool{
	"AND": true, "ARRAY": true, "AS": true, "ASC": true, "BETWEEN": true, "BY": true, "DESC": true,
	"DISTINCT": true, "ESCAPE": true, "EXISTS": true, "FROM": true, "GROUP": true, "IN": true, "JOIN": true,
	"LEFT": true, "LIKE": true, "LIMIT": true, "NOT": true, "OFFSET": true, "OR": true, "ORDER": true,
	"RIGHT": true, "SELECT": true, "TOP": true, "VALUE": true, "WHERE": true,
}

// keyword returns w in upper case if it is a keyword, otherwise "". The constants and udf are
// keywords in lower case only, all others in any case.
func keyword(w string) string {
	switch w {
	case "true", "false", "null", "undefined", "udf":
		return w
	}
	if len(w) > len("DISTINCT") || len(w) < 2 {
		return ""
	}
	if upper := strings.ToUpper(w); keywords[upper] {
		return upper
	}
	return ""
}
