// Package bicep parses the Bicep dialect of this repository and computes the resources
// that a deployment would create, so that tests can check them without Azure.
//
// The dialect: parameters, variables, resources (also existing and conditional ones),
// modules by local path, outputs, decorators, and expressions with strings, numbers,
// objects, arrays, calls, members, indexes and the usual operators. Not supported: object
// spread, loops other than [for name in list: item], lambdas, imports,
// user-defined types and functions, registry modules, nested resources, multi-line strings. All of these are refused with file and line.
//
// [Parse] parses one file. [Deploy] evaluates a main file with its modules. Values
// that only Azure knows at run time come from a table ([Standins]); a property that is
// missing in it is an error.
//
// The package starts no goroutines and makes no I/O.
package bicep

import (
	"errors"
	"slices"
)

type parser struct {
	scanner
	// loopAt is the place of the value of a var or a property, where Bicep allows a loop.
	loopAt int
}

// Parse reads a file of the dialect. The error is a *SyntaxError.
func Parse(name, text string) (file *File, err error) {
	p := &parser{scanner: newScanner(name, text)}
	defer func() {
		if r := recover(); r != nil {
			fault, ok := r.(error)
			var syntax *SyntaxError
			if !ok || !errors.As(fault, &syntax) {
				panic(r)
			}
			file, err = nil, syntax
		}
	}()
	return p.parseFile(), nil
}

func (p *parser) parseFile() *File {
	f := &File{Name: p.file}
	var decorators []*Node
	for p.space(true); p.at < len(p.text); p.space(true) {
		if p.accept("@") {
			call := p.expression()
			if call.Kind != Call {
				p.fail("a decorator is a call")
			}
			decorators = append(decorators, call)
			p.lineEnd()
			continue
		}
		pos := p.pos()
		switch keyword := p.name(); keyword {
		case "targetScope":
			p.expect("=")
			f.Scope = p.literal()
		case "using":
			f.Using = p.literal()
		case "param", "var", "resource", "module", "output":
			d := p.declaration(keyword)
			d.Pos, d.Decorators = pos, decorators
			decorators = nil
			if d.Keyword != "output" && f.Find(d.Name) != nil {
				p.fail("%s is declared twice", d.Name)
			}
			f.Declarations = append(f.Declarations, d)
		default:
			p.fail("%q begins no statement of the dialect", keyword)
		}
		p.lineEnd()
	}
	if decorators != nil {
		p.fail("decorators before nothing")
	}
	return f
}

func (p *parser) declaration(keyword string) *Declaration {
	d := &Declaration{Keyword: keyword, Name: p.name()}
	switch keyword {
	case "param":
		if p.accept("=") { // in a parameter file
			d.Value = p.expression()
			return d
		}
		d.Type = p.typeName()
		if p.accept("=") {
			d.Value = p.expression()
		}
	case "output":
		d.Type = p.typeName()
		p.expect("=")
		d.Value = p.expression()
	case "var":
		p.expect("=")
		d.Value = p.loopable()
	default:
		d.Target = p.literal()
		d.Existing = keyword == "resource" && p.keyword("existing")
		p.expect("=")
		if !d.Existing && p.accept("[") {
			if !p.keyword("for") {
				p.fail("expected for")
			}
			d.Loop = p.loopHead(p.pos())
		}
		if p.keyword("if") {
			p.expect("(")
			d.Condition = p.within(")")
		}
		if p.space(false); p.next() != '{' {
			p.fail("expected the body of %s", d.Name)
		}
		d.Value = p.expression()
		if d.Loop != nil {
			p.space(true)
			p.expect("]")
		}
	}
	return d
}

var types = []string{"string", "int", "bool", "object", "array"}

func (p *parser) typeName() string {
	name := p.name()
	if !slices.Contains(types, name) {
		p.fail("type %q is not of the dialect", name)
	}
	return name
}

func (p *parser) literal() string {
	p.space(false)
	if p.next() != '\'' {
		p.fail("expected a string")
	}
	text, ok := p.str().Literal()
	if !ok {
		p.fail("expected a string without interpolation")
	}
	return text
}
