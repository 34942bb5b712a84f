package query

import "strings"

// Lookup is one document that WHERE points at. Other parts of WHERE may still
// refuse it: Match decides.
type Lookup struct {
	ID string
	// PartitionKey has one value for each path when the same conjunction pins the
	// whole key. Else it is nil: the id may exist once in each logical partition.
	PartitionKey []Value
}

// Lookups returns the documents that WHERE names, when it is certain that no other
// document can match: c.id = x, c.id IN (...), either of them inside AND, and an
// OR of such. paths are the partition key paths of the container, as "/a/b". ok is
// false when WHERE names none: then documents must be scanned. Lookups come in the
// order of the query, without repeats; none at all with ok means that nothing
// can match.
func (b *Bound) Lookups(paths []string) (at []Lookup, ok bool) {
	if b.q.root.where == nil {
		return nil, false
	}
	f := newFinder(b, paths)
	found, ok := f.alternatives(b.q.root.where, make([]pin, len(paths)))
	if !ok {
		return nil, false
	}
	if len(found) < 2 {
		return found, true
	}
	seen := make(map[string]bool, len(found))
	for _, l := range found {
		key := appendText(nil, []byte(l.ID))
		for _, v := range l.PartitionKey {
			key = appendCanonical(key, v)
		}
		if !seen[string(key)] {
			seen[string(key)] = true
			at = append(at, l)
		}
	}
	return at, true
}

// PartitionKey returns the values that WHERE pins the partition key to, by
// equality (or IS_NULL) in its top-level AND. It holds the leading paths that are
// pinned: as many values as paths when the whole key is, none when the first path
// is free. A pinned value may be Undefined: NOT IS_DEFINED(c.pk).
func (b *Bound) PartitionKey(paths []string) []Value {
	if b.q.root.where == nil {
		return nil
	}
	f := newFinder(b, paths)
	pins := make([]pin, len(paths))
	for _, t := range conjuncts(b.q.root.where) {
		f.pin(t, pins)
	}
	var key []Value
	for _, p := range pins {
		if !p.set {
			break
		}
		key = append(key, p.v)
	}
	return key
}

// pin is the value that a condition forces on one partition key path.
type pin struct {
	v   Value
	set bool
}

// finder looks for constants that the id and the partition key are compared with.
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

// pathSteps reads a partition key path: /a/b, with quotes around a name that
// holds a slash.
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

// alternatives returns the documents e can be true for, given what the conditions
// around it pin already.
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

// ids returns the ids a condition allows: c.id = x or c.id IN (...). Ids are
// strings, so other values allow none.
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

// pin notes what a condition pins a partition key path to.
func (f *finder) pin(e expr, pins []pin) {
	at, values, ok := f.equality(e)
	if !ok || len(values) != 1 || values[0].kind >= Array {
		return
	}
	for i, p := range f.paths {
		if sameSteps(p, at) && !pins[i].set {
			pins[i] = pin{values[0], true}
		}
	}
}

// equality returns the path that a condition compares and the only values it can
// have: path = x, x = path, path IN (...), IS_NULL(path), NOT IS_DEFINED(path).
func (f *finder) equality(e expr) (at []step, values []Value, ok bool) {
	switch e := e.(type) {
	case *binaryExpr:
		if e.op != "=" {
			break
		}
		x, y := e.x, e.y
		p, isPath := x.(*path)
		if !isPath {
			if p, isPath = y.(*path); !isPath {
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
		p, isPath := e.x.(*path)
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
		if p, ok := testedPath(e, "IS_NULL"); ok {
			return p.steps, []Value{{kind: Null}}, true
		}
	case *unaryExpr:
		if c, isCall := e.x.(*callExpr); isCall && e.op == "NOT" {
			if p, ok := testedPath(c, "IS_DEFINED"); ok {
				return p.steps, []Value{{}}, true
			}
		}
	}
	return nil, nil, false
}

func testedPath(c *callExpr, name string) (*path, bool) {
	if c.fn.name != name {
		return nil, false
	}
	p, ok := c.args[0].(*path)
	return p, ok
}

// sameSteps
func sameSteps(a, b []step) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
