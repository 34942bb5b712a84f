package query

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
	if b.inner != nil {
		return b.inner.Lookups(paths)
	}
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
	if b.inner != nil {
		return b.inner.PartitionKey(paths)
	}
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
