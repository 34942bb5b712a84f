package query

import "fmt"

// maxDepth limits the nesting of expressions. A chain of the same operator nests once per
// operator, except AND and OR, which may have any length. maxRecursion limits the parser
// itself, which also recurses for parentheses. It is higher because a printed expression has
// more parentheses, and an expression within maxDepth must parse again when it is printed.
const (
	maxDepth     = 256
	maxRecursion = 16 * maxDepth
)

// parser is a recursive descent parser.
type parser struct {
	tokens
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
	p := &parser{tokens: tokens{lex: lexer{text: text}}, out: &Query{}}
	p.advance()
	return p, nil
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
