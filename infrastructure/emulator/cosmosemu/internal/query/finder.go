package query

import (
	"slices"
	"strings"
)

// pin is the only value that a condition allows for one partition key path.
type pin struct {
	v   Value
	set bool
}

// finder finds the constants that the id and the partition key are compared with.
type finder struct {
	c     *compiler
	paths [][]step
}

func newFinder(b *Bound, paths []string) *finder {
	f := &finder{c: &compiler{b: b}}
	for _, p := range paths {
		f.paths = append(f.paths, pathSteps(p))
	}
	return f
}

// pathSteps reads a partition key path: /a/b, with quotes around a name that contains a
// slash.
func pathSteps(p string) []step {
	var steps []step
	for p != "" {
		p = strings.TrimPrefix(p, "/")
		var name string
		if quote := strings.IndexByte(p, '"'); quote == 0 {
			name, p, _ = strings.Cut(p[1:], `"`)
		} else {
			end := strings.IndexByte(p, '/')
			if end < 0 {
				end = len(p)
			}
			name, p = p[:end], p[end:]
		}
		steps = append(steps, step{name: name, index: -1})
	}
	return steps
}

// conjuncts flattens AND.
func conjuncts(e expr) []expr {
	l, ok := e.(*logicalExpr)
	if !ok || l.op != "AND" {
		return []expr{e}
	}
	var list []expr
	for _, t := range l.terms {
		list = append(list, conjuncts(t)...)
	}
	return list
}

// alternatives returns the documents for which e can be true, given the pins of the outer
// conditions.
func (f *finder) alternatives(e expr, outer []pin) ([]Lookup, bool) {
	if l, ok := e.(*logicalExpr); ok && l.op == "OR" {
		var all []Lookup
		for _, t := range l.terms {
			some, ok := f.alternatives(t, outer)
			if !ok {
				return nil, false
			}
			all = append(all, some...)
		}
		return all, true
	}
	terms := conjuncts(e)
	pins := append([]pin(nil), outer...)
	for _, t := range terms {
		f.pin(t, pins)
	}
	for _, t := range terms {
		if ids, ok := f.ids(t); ok {
			return f.lookups(ids, pins), true
		}
	}
	for _, t := range terms {
		if l, ok := t.(*logicalExpr); ok && l.op == "OR" {
			if some, ok := f.alternatives(t, pins); ok {
				return some, true
			}
		}
	}
	return nil, false
}

func (f *finder) lookups(ids []string, pins []pin) []Lookup {
	var list []Lookup
	for _, id := range ids {
		l := Lookup{ID: id}
		for i, p := range pins {
			if len(f.paths[i]) == 1 && f.paths[i][0].name == "id" {
				p = pin{textValue(id), true}
			}
			if !p.set {
				l.PartitionKey = nil
				break
			}
			l.PartitionKey = append(l.PartitionKey, p.v)
		}
		list = append(list, l)
	}
	return list
}

// ids returns the ids that a condition allows: c.id = x or c.id IN (...). Values other than
// strings are dropped, because ids are strings.
func (f *finder) ids(e expr) ([]string, bool) {
	at, values, ok := f.equality(e)
	if !ok || len(at) != 1 || at[0].index >= 0 || at[0].name != "id" {
		return nil, false
	}
	var ids []string
	for _, v := range values {
		if v.kind == String {
			ids = append(ids, v.Text())
		}
	}
	return ids, true
}

// pin records the value that a condition pins a partition key path to.
func (f *finder) pin(e expr, pins []pin) {
	at, values, ok := f.equality(e)
	if !ok || len(values) != 1 || values[0].kind >= Array {
		return
	}
	for i, p := range f.paths {
		if slices.Equal(p, at) && !pins[i].set {
			pins[i] = pin{values[0], true}
		}
	}
}

// equality returns the path that a condition compares and the only values that it can have:
// path = x, x = path, path IN (...), ARRAY_CONTAINS(list, path), IS_NULL(path), IS_BOOL(path),
// path, NOT path, NOT IS_DEFINED(path).
func (f *finder) equality(e expr) (at []step, values []Value, ok bool) {
	switch e := e.(type) {
	case *binaryExpr:
		if e.op != "=" {
			break
		}
		x, y := e.x, e.y
		p, isPath := f.path(x)
		if !isPath {
			if p, isPath = f.path(y); !isPath {
				break
			}
			y = x
		}
		if v, ok := f.c.value(y); ok {
			if v.kind == Undefined {
				return p.steps, nil, true
			}
			return p.steps, []Value{v}, true
		}
	case *inExpr:
		p, isPath := f.path(e.x)
		if !isPath || e.not {
			break
		}
		for _, x := range e.list {
			v, ok := f.c.value(x)
			if !ok {
				return nil, nil, false
			}
			if v.kind != Undefined {
				values = append(values, v)
			}
		}
		return p.steps, values, true
	case *callExpr:
		if p, ok := f.tested(e, "IS_BOOL"); ok {
			return p.steps, []Value{boolValue(false), boolValue(true)}, true
		}
		if p, ok := f.tested(e, "IS_NULL"); ok {
			return p.steps, []Value{{kind: Null}}, true
		}
		return f.listed(e)
	case *path:
		if p, ok := f.path(e); ok {
			return p.steps, []Value{boolValue(true)}, true
		}
	case *unaryExpr:
		if p, ok := f.path(e.x); ok && e.op == "NOT" {
			return p.steps, []Value{boolValue(false)}, true
		}
		if c, isCall := e.x.(*callExpr); isCall && e.op == "NOT" {
			if p, ok := f.tested(c, "IS_DEFINED"); ok {
				return p.steps, []Value{{}}, true
			}
		}
	}
	return nil, nil, false
}

// listed reads ARRAY_CONTAINS(list, path) with a constant list.
func (f *finder) listed(e *callExpr) (at []step, values []Value, ok bool) {
	if e.fn.name != "ARRAY_CONTAINS" || len(e.args) != 2 {
		return nil, nil, false
	}
	list, constant := f.c.value(e.args[0])
	p, isPath := f.path(e.args[1])
	if !constant || !isPath {
		return nil, nil, false
	}
	if list.kind == Array {
		values = slices.AppendSeq(values, items(list.raw))
	}
	return p.steps, values, true
}

func (f *finder) tested(c *callExpr, name string) (*path, bool) {
	if c.fn.name != name {
		return nil, false
	}
	return f.path(c.args[0])
}

// path returns e if it is a path of the document, but not of a computed property.
func (f *finder) path(e expr) (*path, bool) {
	p, ok := e.(*path)
	if !ok || p.at.src.index != isDocument {
		return nil, false
	}
	if len(p.steps) > 0 && f.c.b.computed[p.steps[0].name] != nil {
		return nil, false
	}
	return p, true
}
