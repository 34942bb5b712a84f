package query

import (
	"encoding/json"
	"fmt"

	"feedbox/infrastructure/emulator/cosmosemu/internal/indexing"
)

// SortKey is the ORDER BY key of one document: one value per ORDER BY item. It contains copies
// and does not refer to the document.
type SortKey []Value

// SortKey computes the key of a document; nil without ORDER BY. All rows of the document share
// it.
func (b *Bound) SortKey(doc []byte) SortKey {
	if b.keys == nil {
		return nil
	}
	b.order.fresh = false
	e := b.order.at(doc)
	key := make(SortKey, len(b.keys))
	for i, k := range b.keys {
		key[i] = parsedNumber(k.eval(e).clone())
	}
	return key
}

// Compare orders two keys by ORDER BY, with the direction of each item. It is negative if x is
// first, and 0 for equal keys, whose order the caller decides. Types sort as undefined, null,
// false, true, numbers, strings, arrays, objects.
func (b *Bound) Compare(x, y SortKey) int {
	for i, it := range b.q.root.orderBy[:len(b.keys)] {
		c := compare(x[i], y[i])
		if c == 0 {
			continue
		}
		if it.desc {
			return -c
		}
		return c
	}
	return 0
}

// Descending reports whether the first ORDER BY item is DESC. Ties must then be in descending
// order of _rid, otherwise in ascending order, because SDKs that resume a merge of several
// ranges skip ties by that rule (RidSkipCountFilter of @azure/cosmos 4.9.3). In any other
// order they would repeat or lose rows.
func (b *Bound) Descending() bool {
	return len(b.q.root.orderBy) > 0 && b.q.root.orderBy[0].desc
}

// OrderKeys returns the properties of ORDER BY, for the check against the indexing policy.
func (b *Bound) OrderKeys() []indexing.Key {
	var keys []indexing.Key
	for _, it := range b.q.root.orderBy {
		k := indexing.Key{Descending: it.desc}
		for _, s := range it.path.steps {
			name := s.name
			if s.index >= 0 {
				name = indexing.Element
			}
			k.Path = append(k.Path, name)
		}
		keys = append(keys, k)
	}
	return keys
}

// FiltersProperties reports whether WHERE reads a property.
func (b *Bound) FiltersProperties() bool {
	return b.q.root.where != nil && hasPath(b.q.root.where)
}

func hasPath(e expr) bool {
	_, found := e.(*path)
	eachPart(e, func(part expr) { found = found || hasPath(part) })
	return found
}

// AppendJSON appends the key as JSON for a continuation token: an array with one
// array per value, which is empty for undefined.
func (k SortKey) AppendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	for i, v := range k {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(v.AppendJSON(append(dst, '[')), ']')
	}
	return append(dst, ']')
}

// ParseSortKey reads the output of SortKey.AppendJSON. It refuses anything else, and a key
// without one value for each ORDER BY item.
func (b *Bound) ParseSortKey(text []byte) (SortKey, error) {
	var values [][]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return nil, fmt.Errorf("sort key: %w", err)
	}
	if len(values) != len(b.keys) {
		return nil, fmt.Errorf("sort key has %d values, the query orders by %d", len(values), len(b.keys))
	}
	var key SortKey
	for _, v := range values {
		switch len(v) {
		case 0:
			key = append(key, Value{})
		case 1:
			key = append(key, parsedNumber(jsonValue(trim(v[0]))))
		default:
			return nil, fmt.Errorf("sort key has a list of %d instead of one value", len(v))
		}
	}
	return key, nil
}
