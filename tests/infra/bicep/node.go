package bicep

import (
	"fmt"
	"strings"
)

// Kind is the kind of a [Node].
type Kind int

// The kinds of nodes, with the contents of Text and Kids.
const (
	Text     Kind = iota // Text: a piece of a string, unescaped
	String               // Kids: pieces and interpolated expressions
	Number               // Text: digits
	Bool                 // Text: true or false
	Null                 // -
	Ident                // Text: name
	Member               // Kids: of; Text: name
	Index                // Kids: of, index
	Call                 // Kids: callee, arguments
	Unary                // Text: operator; Kids: operand
	Binary               // Text: operator; Kids: left, right
	Ternary              // Kids: condition, then, else
	Object               // Kids: properties
	Property             // Kids: key (a String), value
	Array                // Kids: items
	For                  // Text: variable; Kids: list, item
)

// Node is an expression or a part of one.
type Node struct {
	Kind Kind
	Text string
	Kids []*Node
	Pos  Pos
}

// Pos is a place in a file, counted from 1.
type Pos struct {
	File      string
	Line, Col int
}

func (p Pos) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) }

// Declaration is one statement of a file.
type Declaration struct {
	// Keyword is param, var, resource, module or output; in a parameter file param.
	Keyword string
	// Name is the symbol.
	Name string
	// Type is the type of a parameter or output.
	Type string
	// Target is the type@version of a resource or the path of a module.
	Target string
	// Existing resources are referred to, not created.
	Existing bool
	// Condition, if not nil, decides whether a resource or module is created.
	Condition *Node
	// Loop is a For without an item: the module exists once for each value of its list.
	Loop *Node
	// Value is the default of a parameter, or the body.
	Value *Node
	// Decorators are the calls before it, for example description('...').
	Decorators []*Node
	Pos        Pos
}

// Decorator returns the arguments of a decorator and whether it exists.
func (d *Declaration) Decorator(name string) ([]*Node, bool) {
	for _, call := range d.Decorators {
		if call.Kids[0].Kind == Ident && call.Kids[0].Text == name {
			return call.Kids[1:], true
		}
	}
	return nil, false
}

// File is a parsed .bicep or .bicepparam file.
type File struct {
	Name string
	// Scope is the targetScope; empty means resourceGroup.
	Scope string
	// Using is the template of a parameter file.
	Using        string
	Declarations []*Declaration
}

// Find returns the declaration of a symbol, or nil.
func (f *File) Find(name string) *Declaration {
	for _, d := range f.Declarations {
		if d.Name == name && d.Keyword != "output" {
			return d
		}
	}
	return nil
}

// All returns the declarations with a keyword, in their order.
func (f *File) All(keyword string) []*Declaration {
	var found []*Declaration
	for _, d := range f.Declarations {
		if d.Keyword == keyword {
			found = append(found, d)
		}
	}
	return found
}

// Walk calls visit for n, which may be nil, and everything below it, parents first.
func Walk(n *Node, visit func(*Node)) {
	if n == nil {
		return
	}
	visit(n)
	for _, kid := range n.Kids {
		Walk(kid, visit)
	}
}

// Literal returns the value of a string without interpolation.
func (n *Node) Literal() (string, bool) {
	if n == nil || n.Kind != String {
		return "", false
	}
	switch {
	case len(n.Kids) == 0:
		return "", true
	case len(n.Kids) == 1 && n.Kids[0].Kind == Text:
		return n.Kids[0].Text, true
	}
	return "", false
}

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
	case For:
		wrap("[for "+n.Text+" in ", n.Kids, ": ", "]")
	case Array:
		wrap("[", n.Kids, ", ", "]")
	}
}
