package cosmosemu

import (
	"slices"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/indexing"
	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// readIndexing parses the indexing policy of a definition. It refuses an invalid one, unless
// policies are ignored.
func (o *Options) readIndexing(def *store.Definition) error {
	if o.IgnoreIndexingPolicy {
		return nil
	}
	text, _ := document.Member([]byte("{"+def.Raw+"}"), "indexingPolicy")
	policy, err := indexing.Parse(text)
	if err != nil {
		return refuseInputs("%v", err)
	}
	if policy.Off && def.DefaultTTL != 0 {
		return refuseInputs("The indexing mode is none, so the container cannot have a defaultTtl: expiry needs an index.")
	}
	def.Indexing = policy
	return nil
}

// checkIndexing refuses a query that the indexing policy of its container does not serve. A
// filter on an excluded path is served, because the service then reads all documents.
func checkIndexing(x *request, def *store.Definition, b *query.Bound) error {
	policy := def.Indexing
	if policy == nil || b == nil || x.account.options.IgnoreIndexingPolicy {
		return nil
	}
	keys, derived := b.OrderKeys(), b.Inner() != nil // the rows of a sub-query have no index
	for b.Inner() != nil {
		b = b.Inner()
	}
	if policy.Off && b.FiltersProperties() && !isTrue(x.header, headerEnableScan) {
		return refuseInputs("An invalid query has been specified with filters against path(s) excluded from indexing. Consider adding allow scan header in the request.")
	}
	if len(keys) > 1 && (derived || !policy.Ordered(keys)) {
		return refuseInputs("The order by query does not have a corresponding composite index that it can be served from.")
	}
	if len(keys) == 1 && !derived && !policy.Indexed(keys[0].Path, isComputed(def, keys[0].Path)) {
		return refuseInputs("The index path corresponding to the specified order-by item is excluded.")
	}
	return nil
}

func isComputed(def *store.Definition, path []string) bool {
	return slices.ContainsFunc(def.Computed, func(c store.ComputedProperty) bool { return c.Name == path[0] })
}
