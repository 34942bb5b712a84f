package query

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// tokens is the input of the parser, with one token of look-ahead. It keeps the first error.
// From then on the current token is the end of the text, so that every loop ends.
type tokens struct {
	lex   lexer
	tok   token
	err   error
	depth int // of the recursion

	plan     bool // only a plan is needed
	disputed *UnsupportedError
}

// advance moves to the next token.
func (t *tokens) advance() {
	if t.err != nil {
		return
	}
	next, err := t.lex.next()
	if err != nil {
		t.fail(err)
		return
	}
	t.tok = next
}

// fail keeps the first error and stops the parser.
func (t *tokens) fail(err error) {
	if t.err == nil {
		t.err = err
	}
	t.tok = token{kind: tokEOF, pos: len(t.lex.text)}
}

func (t *tokens) syntax(pos int, format string, args ...any) {
	t.fail(&SyntaxError{Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

// refuse fails with an error code of the service.
func (t *tokens) refuse(pos int, code, msg string) {
	t.fail(&SyntaxError{Pos: pos, Msg: msg, Code: code})
}

func (t *tokens) unsupported(pos int, construct string) {
	t.fail(&UnsupportedError{Pos: pos, Construct: construct})
}

// dispute refuses a construct that two published grammars read differently. A plan only notes it.
func (t *tokens) dispute(pos int, construct string) {
	switch {
	case !t.plan:
		t.unsupported(pos, construct)
	case t.disputed == nil:
		t.disputed = &UnsupportedError{Pos: pos, Construct: construct}
	}
}

// unexpected fails at the current token.
func (t *tokens) unexpected(want string) {
	if t.tok.kind == tokKeyword && strings.HasSuffix(want, "name") {
		t.syntax(t.tok.pos, "%q is a reserved word: it cannot be %s (a property of that name is [%q])", t.tok.src, want, t.tok.src)
		return
	}
	t.syntax(t.tok.pos, "expected %s, found %s", want, t.tok.describe())
}

// is reports whether the current token is a keyword, operator or bracket.
func (t *tokens) is(word string) bool {
	return t.tok.word == word && t.tok.kind != tokEOF
}

// accept advances if the current token is word.
func (t *tokens) accept(word string) bool {
	if !t.is(word) {
		return false
	}
	t.advance()
	return true
}

func (t *tokens) expect(word string) {
	if !t.accept(word) {
		t.unexpected(strconv.Quote(word))
	}
}

// name reads an identifier.
func (t *tokens) name(what string) string {
	if t.tok.kind != tokIdent {
		t.unexpected(what)
		return ""
	}
	text := t.tok.text
	t.advance()
	return text
}

// peek returns the token after the current one.
func (t *tokens) peek() token {
	ahead := t.lex
	next, err := ahead.next()
	if err != nil {
		return token{kind: tokEOF}
	}
	return next
}

// enter counts one level of recursion; every call needs a leave.
func (t *tokens) enter() {
	t.depth++
	if t.depth > maxRecursion {
		t.tooDeep(t.tok.pos)
	}
}

func (t *tokens) leave() { t.depth-- }

func (t *tokens) tooDeep(pos int) {
	t.unsupported(pos, fmt.Sprintf("an expression deeper than %d levels", maxDepth))
}

func (t *tokens) unknownFunction(name token, upper string) {
	if serviceFunctions[upper] || strings.HasPrefix(upper, "ST_") {
		t.unsupported(name.pos, "the function "+name.text)
		return
	}
	t.syntax(name.pos, "there is no function %q", name.text)
}

// escape reads the one character after ESCAPE.
func (t *tokens) escape() rune {
	r, size := utf8.DecodeRuneInString(t.tok.text)
	if t.tok.kind != tokString || size == 0 || size != len(t.tok.text) {
		t.unexpected("a string of one character after ESCAPE")
		return 0
	}
	t.advance()
	return r
}

// checkOperand refuses an ambiguous operand without parentheses.
func (t *tokens) checkOperand(op string, pos int, x expr) {
	t.refuseNot(pos, x)
	switch op {
	case "||", "|", "^", "&":
		if b, ok := x.(*binaryExpr); ok && isComparison(b.op) {
			t.dispute(pos, fmt.Sprintf("%s beside a comparison without parentheses", op))
		}
	}
}

func (t *tokens) refuseNot(pos int, x expr) {
	if u, ok := x.(*unaryExpr); ok && u.op == "NOT" {
		t.dispute(pos, "NOT before a comparison without parentheses")
	}
}
