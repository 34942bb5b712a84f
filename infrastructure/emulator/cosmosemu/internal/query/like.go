package query

import "unicode/utf8"

// likeNode is x LIKE pattern. A constant pattern is compiled once.
type likeNode struct {
	x, pattern scalar
	escape     rune
	compiled   []likePart // of a constant pattern
	constant   bool
}

// likePart is one element of a pattern: any run of characters (%), any one
// character (_), one character of a set ([a-z], [^a-z]), or one character.
type likePart struct {
	kind  byte // '%', '_', '[' or 0
	char  rune
	not   bool
	spans [][2]rune
}

func (c *compiler) like(e *likeExpr) cond {
	n := likeNode{x: c.scalar(e.x), pattern: c.scalar(e.pattern), escape: e.escape}
	if k, ok := n.pattern.(constant); ok && k.v.kind == String {
		if n.compiled, n.constant = compileLike(k.v.text(), e.escape); !n.constant {
			c.fail(&UnsupportedError{Pos: e.pos, Construct: "a LIKE pattern with [ but no ], or that ends in its escape character"})
		}
	}
	return n
}

func (n likeNode) test(e *env) tri {
	x, parts := n.x.eval(e), n.compiled
	if !n.constant {
		p := n.pattern.eval(e)
		if p.kind != String {
			return unknown
		}
		var ok bool
		if parts, ok = compileLike(p.text(), n.escape); !ok {
			return unknown
		}
	}
	if x.kind != String {
		return unknown
	}
	return truthOf(matchLike(x.text(), parts))
}

// compileLike parses a pattern. ok is false if a set is not closed or nothing follows the
// escape character.
func compileLike(pattern []byte, escape rune) (parts []likePart, ok bool) {
	for len(pattern) > 0 {
		r, size := utf8.DecodeRune(pattern)
		pattern = pattern[size:]
		switch {
		case escape != 0 && r == escape:
			if len(pattern) == 0 {
				return nil, false
			}
			r, size = utf8.DecodeRune(pattern)
			pattern = pattern[size:]
			parts = append(parts, likePart{char: r})
		case r == '%':
			if n := len(parts); n == 0 || parts[n-1].kind != '%' {
				parts = append(parts, likePart{kind: '%'})
			}
		case r == '_':
			parts = append(parts, likePart{kind: '_'})
		case r == '[':
			var set likePart
			if set, pattern, ok = likeSet(pattern); !ok {
				return nil, false
			}
			parts = append(parts, set)
		default:
			parts = append(parts, likePart{char: r})
		}
	}
	return parts, true
}

// likeSet reads a set after its opening bracket.
func likeSet(pattern []byte) (set likePart, rest []byte, ok bool) {
	set.kind = '['
	if len(pattern) > 0 && pattern[0] == '^' {
		set.not = true
		pattern = pattern[1:]
	}
	runes := []rune(string(pattern))
	for i := 0; i < len(runes); i++ {
		if runes[i] == ']' && i > 0 {
			return set, []byte(string(runes[i+1:])), true
		}
		span := [2]rune{runes[i], runes[i]}
		if i+2 < len(runes) && runes[i+1] == '-' && runes[i+2] != ']' {
			span[1] = runes[i+2]
			i += 2
		}
		set.spans = append(set.spans, span)
	}
	return set, nil, false
}

func (p *likePart) fits(r rune) bool {
	switch p.kind {
	case '_':
		return true
	case '[':
		for _, s := range p.spans {
			if s[0] <= r && r <= s[1] {
				return !p.not
			}
		}
		return p.not
	default:
		return p.char == r
	}
}

// matchLike matches the whole text. On a mismatch it returns to the last % and extends its
// match by one character.
func matchLike(text []byte, parts []likePart) bool {
	at, part := 0, 0
	retryAt, retryPart := 0, -1
	for at < len(text) {
		if part < len(parts) && parts[part].kind == '%' {
			part++
			retryAt, retryPart = at, part
			continue
		}
		r, size := utf8.DecodeRune(text[at:])
		if part < len(parts) && parts[part].fits(r) {
			at += size
			part++
			continue
		}
		if retryPart < 0 {
			return false
		}
		_, size = utf8.DecodeRune(text[retryAt:])
		retryAt += size
		at, part = retryAt, retryPart
	}
	for part < len(parts) && parts[part].kind == '%' {
		part++
	}
	return part == len(parts)
}
