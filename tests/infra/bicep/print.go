package bicep

import "strings"

// Print writes an expression, fully bracketed and on one line, so that Parse returns the
// same expression.
func Print(n *Node) string {
	var b strings.Builder
	printTo(&b, n)
	return b.String()
}

var escaper = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "$", `\$`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

func printTo(b *strings.Builder, n *Node) {
	join := func(kids []*Node, between string) {
		for i, kid := range kids {
			if i > 0 {
				b.WriteString(between)
			}
			printTo(b, kid)
		}
	}
	wrap := func(before string, kids []*Node, between, after string) {
		b.WriteString(before)
		join(kids, between)
		b.WriteString(after)
	}
	switch n.Kind {
	case Text:
		b.WriteString(escaper.Replace(n.Text))
	case String:
		b.WriteByte('\'')
		for _, kid := range n.Kids {
			if kid.Kind == Text {
				printTo(b, kid)
				continue
			}
			wrap("${", []*Node{kid}, "", "}")
		}
		b.WriteByte('\'')
	case Number, Bool, Ident:
		b.WriteString(n.Text)
	case Null:
		b.WriteString("null")
	case Member:
		wrap("", n.Kids, "", "."+n.Text)
	case Index:
		wrap("", n.Kids[:1], "", "")
		wrap("[", n.Kids[1:], "", "]")
	case Call:
		wrap("", n.Kids[:1], "", "")
		wrap("(", n.Kids[1:], ", ", ")")
	case Unary:
		wrap("("+n.Text, n.Kids, "", ")")
	case Binary:
		wrap("(", n.Kids, " "+n.Text+" ", ")")
	case Ternary:
		wrap("(", n.Kids[:1], "", " ? ")
		wrap("", n.Kids[1:], " : ", ")")
	case Object:
		wrap("{ ", n.Kids, ", ", " }")
	case Property:
		join(n.Kids, ": ")
	case Array:
		wrap("[", n.Kids, ", ", "]")
	}
}
