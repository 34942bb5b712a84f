package query

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// regexNode is REGEXMATCH with its pattern compiled.
type regexNode struct {
	x  scalar
	re *regexp.Regexp
}

// regex compiles REGEXMATCH(text, pattern, modifiers). Pattern and modifiers must be constant
// and valid in Go's regexp package.
func (c *compiler) regex(e *callExpr) scalar {
	args := c.scalars(e.args)
	var texts [2]string // pattern, modifiers
	for i, a := range args[1:] {
		k, ok := a.(constant)
		if !ok {
			c.fail(&UnsupportedError{Pos: e.pos, Construct: "REGEXMATCH with a pattern or modifiers that are not constant"})
			return constant{}
		}
		if k.v.kind != String {
			return constant{}
		}
		texts[i] = k.v.Text()
	}
	pattern, flags := texts[0], texts[1]
	for _, f := range flags {
		if !strings.ContainsRune("imsx", f) {
			c.fail(&UnsupportedError{Pos: e.pos, Construct: fmt.Sprintf("the modifier %q of REGEXMATCH", f)})
			return constant{}
		}
	}
	if bare := strings.ReplaceAll(flags, "x", ""); bare != flags {
		pattern, flags = withoutBlanks(pattern), bare
	}
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		c.fail(&UnsupportedError{Pos: e.pos, Construct: fmt.Sprintf("the pattern of REGEXMATCH (%v)", err)})
		return constant{}
	}
	n := regexNode{args[0], re}
	return c.fold(n, n.x)
}

// withoutBlanks removes the blanks and comments that the modifier x ignores: those outside
// brackets and not after a backslash.
func withoutBlanks(pattern string) string {
	var out strings.Builder
	escaped, class, comment := false, false, false
	for _, r := range pattern {
		switch {
		case comment:
			comment = r != '\n'
			continue
		case escaped:
			escaped = false
		case r == '\\':
			escaped = true
		case class:
			class = r != ']'
		case r == '[':
			class = true
		case r == '#':
			comment = true
			continue
		case unicode.IsSpace(r):
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

func (n regexNode) eval(e *env) Value {
	v := n.x.eval(e)
	if v.kind != String {
		return Value{}
	}
	return boolValue(n.re.Match(v.text()))
}
