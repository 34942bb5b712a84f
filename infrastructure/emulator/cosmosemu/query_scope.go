package cosmosemu

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// queryScope decides which documents a query reads, and refuses it if it must not read
// them. rng is set if they are all in one physical partition.
func queryScope(h http.Header, c *store.Container, b *query.Bound) (scope store.Scope, rng *store.Range, err error) {
	def, t := c.Definition(), c.Topology()
	key, err := keyHeader(h)
	if err != nil {
		return scope, nil, err
	}
	if len(key) > len(def.Paths) {
		return scope, nil, keyMismatch(key, def)
	}
	if scope.Window, err = keyWindow(h); err != nil {
		return scope, nil, err
	}
	paths := keyPaths(def)
	if id := first(h, headerRangeID); id != "" {
		if _, after, found := strings.Cut(id, ","); found {
			id = after
		}
		if rng, err = t.Find(id); err != nil {
			return scope, nil, err
		}
		bounds := rng.Bounds()
		if scope.Window != nil {
			bounds, _ = bounds.Intersect(*scope.Window)
		}
		scope.Window = &bounds
	}
	pinned, byWhere := key, rng == nil
	if pinned == nil && b != nil {
		pinned = keyValues(b.PartitionKey(paths))
	}
	if len(pinned) > 0 && (len(pinned) == len(def.Paths) || def.Hierarchical) {
		scope.Part = store.NewPartition(pinned, def.Hash())
		if len(pinned) == len(def.Paths) && rng == nil {
			rng = t.Locate(scope.Part.EPK)
		}
	}
	if key == nil && b != nil && (rng == nil || byWhere && b.NamesAggregates() && isTrue(h, headerCrossPartition)) {
		if err := checkCrossPartition(h, b); err != nil {
			return scope, nil, err
		}
	}
	if b != nil {
		scope.Items = lookups(b, paths, def, scope.Part, len(pinned) == len(def.Paths))
	}
	return scope, rng, nil
}

// scopeRanges returns the physical partitions that a query reads.
func scopeRanges(c *store.Container, scope store.Scope, rng *store.Range) []store.Range {
	if rng != nil {
		return []store.Range{*rng}
	}
	var all []store.Range
	for _, r := range c.Topology().Ranges {
		if _, overlaps := r.Bounds().Intersect(*cmp.Or(scope.Window, &fullKeys)); overlaps {
			all = append(all, r)
		}
	}
	return all
}

var fullKeys = epk.Full()

// checkCrossPartition refuses queries that the gateway does not serve over several
// partitions. It also refuses aggregates without VALUE if WHERE determines the key, because
// the SDK for Python cannot merge them and expects the refusal (test_aggregate.py of 4.17.1).
func checkCrossPartition(h http.Header, b *query.Bound) error {
	if !isTrue(h, headerCrossPartition) {
		return crossPartitionDisabled()
	}
	if b.Query().Shape().Plain() {
		return nil
	}
	info, err := b.Info()
	if err != nil {
		return err
	}
	full := epk.Full()
	plan, err := encodePlan(info, queryRange{Min: epk.Format(full.Min), Max: epk.Format(full.Max), IsMinInclusive: true})
	if err != nil {
		return err
	}
	text, err := json.Marshal(string(plan))
	if err != nil {
		return fmt.Errorf("encode query plan: %w", err)
	}
	e := refuse(http.StatusBadRequest, "The provided cross partition query can not be directly served by the gateway. "+
		"This is a first chance (internal) exception that all newer clients will know how to handle gracefully. "+
		"This exception is traced, but unless you see it bubble up as an exception (which only happens on older SDK clients), then you can safely ignore this message.")
	e.Extra = `"additionalErrorInfo":` + string(text)
	return e.sub(subCrossPartition)
}

func crossPartitionDisabled() *wireError {
	return refuse(http.StatusBadRequest, "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception.")
}

// lookups returns the items that WHERE names, nil if documents must be scanned.
func lookups(b *query.Bound, paths []string, def *store.Definition, part *store.Partition, whole bool) []store.ItemRef {
	named, ok := b.Lookups(paths)
	if !ok {
		return nil
	}
	refs := make([]store.ItemRef, 0, len(named))
	for _, l := range named {
		ref := store.ItemRef{ID: l.ID}
		switch {
		case whole:
			ref.Part = part
		case l.PartitionKey != nil:
			ref.Part = store.NewPartition(keyValues(l.PartitionKey), def.Hash())
		}
		refs = append(refs, ref)
	}
	return refs
}

// keyPaths returns the partition key paths in the form of the query engine.
func keyPaths(def *store.Definition) []string {
	out := make([]string, len(def.Paths))
	for i, path := range def.Paths {
		for _, name := range path {
			if strings.Contains(name, "/") {
				name = strconv.Quote(name)
			}
			out[i] += "/" + name
		}
	}
	return out
}

// keyValues converts values of the query engine to a partition key; nil if one is an array
// or object, which cannot be part of a key.
func keyValues(values []query.Value) epk.Key {
	var key epk.Key
	for _, v := range values {
		switch v.Kind() {
		case query.Undefined:
			key = append(key, epk.Undefined())
		case query.Null:
			key = append(key, epk.Null())
		case query.Boolean:
			key = append(key, epk.Bool(v.Bool()))
		case query.Number:
			key = append(key, epk.Number(v.Float()))
		case query.String:
			key = append(key, epk.String(v.Text()))
		default:
			return nil
		}
	}
	return key
}
