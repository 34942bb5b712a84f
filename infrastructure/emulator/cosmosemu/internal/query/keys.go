package query

import "slices"

// maxKeys limits the partition keys of Keys. With more, a scan of all ranges costs less.
const maxKeys = 1000

// Keys returns the partition keys that WHERE allows, without repeats in its order: each has the
// values of the leading paths that it determines, with any value for the others. If ok is false,
// WHERE may allow any key. No keys with ok true means that WHERE is never true.
func (b *Bound) Keys(paths []string) (keys [][]Value, ok bool) {
	if b.inner != nil {
		return b.inner.Keys(paths)
	}
	if b.q.root.where == nil {
		return nil, false
	}
	found, ok := newFinder(b, paths).keys(b.q.root.where)
	if !ok || len(found) > maxKeys {
		return nil, false
	}
	seen := map[string]bool{}
	for _, key := range found {
		var id []byte
		for _, v := range key {
			id = appendCanonical(id, v)
		}
		if !seen[string(id)] {
			seen[string(id)] = true
			keys = append(keys, key)
		}
	}
	return keys, true
}

// keys returns the keys for which e can be true.
func (f *finder) keys(e expr) ([][]Value, bool) {
	if v, constant := f.c.value(e); constant {
		return nil, !v.truth
	}
	if l, ok := e.(*logicalExpr); ok && l.op == "OR" {
		var all [][]Value
		for _, t := range l.terms {
			some, ok := f.keys(t)
			if !ok || len(all)+len(some) > maxKeys {
				return nil, false
			}
			all = append(all, some...)
		}
		return all, true
	}
	allowed := make([][]Value, len(f.paths)) // by path; nil: any
	var others [][]Value                     // of an OR within AND
	found := false
	for _, t := range conjuncts(e) {
		if at, values, ok := f.equality(t); ok {
			if !f.narrow(allowed, at, values) {
				return nil, true
			}
			continue
		}
		if l, isLogical := t.(*logicalExpr); !isLogical || l == e {
			if v, constant := f.c.value(t); constant && !v.truth {
				return nil, true
			}
			continue
		}
		if some, ok := f.keys(t); ok {
			if len(some) == 0 {
				return nil, true
			}
			others, found = some, true
		}
	}
	if len(allowed) == 0 || allowed[0] == nil {
		return others, found
	}
	return combinations(allowed), true
}

// narrow keeps the values that a path may have. It returns false if none is left. Arrays and
// objects are not part of partition keys, so they narrow nothing.
func (f *finder) narrow(allowed [][]Value, at []step, values []Value) bool {
	for _, v := range values {
		if v.kind >= Array {
			return true
		}
	}
	if len(values) == 0 {
		return false
	}
	for i, p := range f.paths {
		if !slices.Equal(p, at) {
			continue
		}
		if allowed[i] == nil {
			allowed[i] = values
			continue
		}
		both := []Value{}
		for _, v := range allowed[i] {
			for _, w := range values {
				if v.kind == w.kind && (v.kind == Undefined || equal(v, w)) {
					both = append(both, v)
					break
				}
			}
		}
		if allowed[i] = both; len(both) == 0 {
			return false
		}
	}
	return true
}

// combinations returns all keys of the leading paths that have values.
func combinations(allowed [][]Value) [][]Value {
	keys := [][]Value{nil}
	for _, values := range allowed {
		if values == nil || len(keys)*len(values) > maxKeys {
			break
		}
		var longer [][]Value
		for _, key := range keys {
			for _, v := range values {
				longer = append(longer, append(key[:len(key):len(key)], v))
			}
		}
		keys = longer
	}
	return keys
}
