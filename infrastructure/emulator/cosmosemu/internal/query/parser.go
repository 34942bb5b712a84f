package query

import (
	"fmt"
	"strconv"
	"strings"
)

// maxDepth limits the nesting of expressions. A chain of the same operator nests once per
// operator, except AND and OR, which may have any length. maxRecursion limits the parser
// itself, which also recurses for parentheses. It is higher because a printed expression has
// more parentheses, and an expression within maxDepth must parse again when it is printed.
const (
	maxDepth     = 256
	maxRecursion = 16 * maxDepth
)

// parser is a recursive descent parser with one token of look-ahead. It keeps the first error.
// From then on the current token is the end of the text, so that every loop ends.
type parser struct {
	lex    lexer
	tok    token
	err    error
	depth  int
	params map[string]int
	out    *Query
	scope  *scope // of the query that is being read
	nested bool   // there are sub-queries
	first  scope  // of the statement
	refs   []ref  // allocated in advance, a few at a time
}

func newParser(text string) (*parser, error) {
	if len(text) > maxText {
		return nil, &SyntaxError{Pos: maxText, Msg: fmt.Sprintf("a query has at most %d bytes", maxText)}
	}
	p := &parser{lex: lexer{text: text}, out: &Query{}}
	p.advance()
	return p, nil
}

// advance moves to the next token.
func (p *parser) advance() {
	if p.err != nil {
		return
	}
	t, err := p.lex.next()
	if err != nil {
		p.fail(err)
		return
	}
	p.tok = t
}

// fail keeps the first error and stops the parser.
func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	p.tok = token{kind: tokEOF, pos: len(p.lex.text)}
}

func (p *parser) syntax(pos int, format string, args ...any) {
	p.fail(&SyntaxError{Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

func (p *parser) unsupported(pos int, construct string) {
	p.fail(&UnsupportedError{Pos: pos, Construct: construct})
}

// unexpected fails at the current token.
func (p *parser) unexpected(want string) {
	if p.tok.kind == tokKeyword && strings.HasSuffix(want, "name") {
		p.syntax(p.tok.pos, "%q is a reserved word: it cannot be %s (a property of that name is [%q])", p.tok.src, want, p.tok.src)
		return
	}
	p.syntax(p.tok.pos, "expected %s, found %s", want, p.tok.describe())
}

// is reports whether the current token is a keyword, operator or bracket.
func (p *parser) is(word string) bool {
	return p.tok.word == word && p.tok.kind != tokEOF
}

// accept advances if the current token is word.
func (p *parser) accept(word string) bool {
	if !p.is(word) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(word string) {
	if !p.accept(word) {
		p.unexpected(strconv.Quote(word))
	}
}

// name reads an identifier.
func (p *parser) name(what string) string {
	if p.tok.kind != tokIdent {
		p.unexpected(what)
		return ""
	}
	text := p.tok.text
	p.advance()
	return text
}

// peek returns the token after the current one.
func (p *parser) peek() token {
	ahead := p.lex
	t, err := ahead.next()
	if err != nil {
		return token{kind: tokEOF}
	}
	return t
}

// enter counts one level of recursion; every call needs a leave.
func (p *parser) enter() {
	p.depth++
	if p.depth > maxRecursion {
		p.tooDeep(p.tok.pos)
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) tooDeep(pos int) {
	p.unsupported(pos, fmt.Sprintf("an expression deeper than %d levels", maxDepth))
}

// clause parses the expression of a clause.
func (p *parser) clause() expr {
	pos := p.tok.pos
	e := p.expr()
	if p.err == nil && deeper(e, maxDepth) {
		p.tooDeep(pos)
	}
	return e
}

// deeper reports whether e has more than a number of levels.
func deeper(e expr, levels int) bool {
	if levels == 0 {
		return true
	}
	found := false
	eachPart(e, func(part expr) {
		found = found || deeper(part, levels-1)
	})
	return found
}
