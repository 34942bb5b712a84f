package query

// Lookup is one document that WHERE names. Other parts of WHERE may still reject it, so the
// caller must check with Match.
type Lookup struct {
	ID string
	// PartitionKey has one value for each path if the same conjunction pins the whole key.
	// Otherwise it is nil, and the id may exist once in each logical partition.
	PartitionKey []Value
}

// Lookups returns the documents that WHERE names if no other document can match: c.id = x,
// c.id IN (...), either of them inside AND, and an OR of these. paths are the partition key
// paths of the container, such as "/a/b". If ok is false, documents must be scanned. Lookups
// are in the order of the query, without repeats. No lookups with ok true means that no
// document can match.
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

// PartitionKey returns the values that WHERE pins the partition key to, by equality (or
// IS_NULL) in its top-level AND. The values are those of the leading pinned paths: as many as
// paths if the whole key is pinned, none if the first path is not. A value may be Undefined:
// NOT IS_DEFINED(c.pk).
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
