package cosmosemu

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// queryItems answers POST .../docs with a query.
//
// A query runs on one logical partition (partition key header, or WHERE pins the
// key), on one physical partition (range id header), or on all. Over all, the
// gateway serves only filters and projections; for the rest it answers 400 with
// the query plan, and the SDK sends a query per range (errors of @azure/cosmos
// 4.9.3, emulator_cosmos_query_test.go of azcosmos v1.5.0).
func queryItems(x *exchange) (*reply, error) {
	c, err := x.container()
	if err != nil {
		return nil, err
	}
	b, err := x.parseQuery()
	if err != nil {
		return nil, err
	}
	return x.runQuery(c, b)
}

// parseQuery reads the query and parameters in the request's body.
func (x *exchange) parseQuery() (*query.Bound, error) {
	var in struct {
		Query      string `json:"query"`
		Parameters []struct {
			Name  string          `json:"name"`
			Value json.RawMessage `json:"value"`
		} `json:"parameters"`
	}
	if err := json.Unmarshal(x.body, &in); err != nil {
		return nil, refuse(http.StatusBadRequest, "The request body is not a query: %v", err)
	}
	q, err := query.Parse(in.Query)
	if err != nil {
		return nil, err
	}
	params := make(query.Params, len(in.Parameters))
	for _, p := range in.Parameters {
		params[p.Name] = p.Value
	}
	return q.Bind(params)
}

// runQuery pages through the rows of a query; b is nil for all items as they are.
func (x *exchange) runQuery(c *store.Container, b *query.Bound) (*reply, error) {
	limit, err := x.maxItemCount()
	if err != nil {
		return nil, err
	}
	scope, rng, err := x.queryScope(c, b)
	if err != nil {
		return nil, err
	}
	if err := x.checkSession(c, rng); err != nil {
		return nil, err
	}
	from, err := parseContinuation(first(x.header, headerContinuation), c.RID, b)
	if err != nil {
		return nil, err
	}
	scope.At = x.moment()
	defer scope.At.Release()
	lsn := scope.At.LSN(c)
	p := &queryPage{c: c, b: b, scope: scope, limit: pageLimit(limit), from: from}
	p.rows = fmt.Appendf(x.buffer, `{"_rid":%q,"Documents":[`, c.RID)
	p.head = len(p.rows)
	if err := p.run(); err != nil {
		return nil, err
	}
	body := p.rows
	body = append(body, `],"_count":`...)
	body = append(strconv.AppendInt(body, int64(p.count), 10), '}')
	a := ok(http.StatusOK, body, queryCharge(p.scanned, len(body)))
	a.count, a.session = p.count, querySession(c, rng, lsn)
	if p.next != nil {
		a.continuation = p.next.text(c.RID, b)
	}
	a.extra = append(a.extra, headerValue{headerQueryMetrics, fmt.Sprintf(
		"totalExecutionTimeInMs=0.10;queryCompileTimeInMs=0.01;queryLogicalPlanBuildTimeInMs=0.01;queryPhysicalPlanBuildTimeInMs=0.01;"+
			"queryOptimizationTimeInMs=0.00;VMExecutionTimeInMs=0.01;indexLookupTimeInMs=0.00;documentLoadTimeInMs=0.01;systemFunctionExecuteTimeInMs=0.00;"+
			"userFunctionExecuteTimeInMs=0.00;retrievedDocumentCount=%d;retrievedDocumentSize=%d;outputDocumentCount=%d;outputDocumentSize=%d;"+
			"writeOutputTimeInMs=0.01;indexUtilizationRatio=1.00", p.scanned, len(body), p.count, len(body))})
	if isTrue(x.header, headerPopulateIndex) {
		a.extra = append(a.extra, headerValue{headerIndexMetrics, indexMetrics})
	}
	return a, nil
}

// indexMetrics is base64 of an empty report: the emulator has no user indexes.
const indexMetrics = "eyJVdGlsaXplZFNpbmdsZUluZGV4ZXMiOltdLCJQb3RlbnRpYWxTaW5nbGVJbmRleGVzIjpbXSwiVXRpbGl6ZWRDb21wb3NpdGVJbmRleGVzIjpbXSwiUG90ZW50aWFsQ29tcG9zaXRlSW5kZXhlcyI6W119"

func queryCharge(scanned, size int) float64 { return 2.3 + 0.02*float64(scanned) + 0.1*kilobytes(size) }

// pageLimit is the page size if the client leaves it to the server.
func pageLimit(asked int) int {
	if asked == 0 {
		return 100
	}
	return asked
}

// queryScope decides which documents a query visits, and whether it may. rng is
// set if they are all in one physical partition.
func (x *exchange) queryScope(c *store.Container, b *query.Bound) (scope store.Scope, rng *store.Range, err error) {
	def, t := c.Definition(), c.Topology()
	key, err := x.keyHeader()
	if err != nil {
		return scope, nil, err
	}
	if len(key) > len(def.Paths) {
		return scope, nil, refuse(http.StatusBadRequest, "The partition key %v has %d values, the container has %d paths", key, len(key), len(def.Paths)).sub(subKeyMismatch)
	}
	if scope.Window, err = x.window(); err != nil {
		return scope, nil, err
	}
	paths := keyPaths(def)
	if id := first(x.header, headerRangeID); id != "" {
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
	pinned := key
	if pinned == nil && b != nil {
		pinned = keyValues(b.PartitionKey(paths))
	}
	if len(pinned) > 0 && (len(pinned) == len(def.Paths) || def.Hierarchical) {
		scope.Part = store.NewPartition(pinned, def.Hierarchical)
		if len(pinned) == len(def.Paths) && rng == nil {
			rng = t.Locate(scope.Part.EPK)
		}
	}
	if rng == nil && key == nil && b != nil {
		if err := x.checkCrossPartition(b); err != nil {
			return scope, nil, err
		}
	}
	if b != nil {
		scope.Items = lookups(b, paths, def, scope.Part, len(pinned) == len(def.Paths))
	}
	return scope, rng, nil
}

// checkCrossPartition refuses what the gateway does not serve over several
// partitions.
func (x *exchange) checkCrossPartition(b *query.Bound) error {
	if !isTrue(x.header, headerCrossPartition) {
		return refuse(http.StatusBadRequest, "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception.")
	}
	if b.Query().Shape().Plain() {
		return nil
	}
	plan, err := planOf(b, epk.Full())
	if err != nil {
		return err
	}
	info, err := json.Marshal(string(plan))
	if err != nil {
		return fmt.Errorf("encode query plan: %w", err)
	}
	e := refuse(http.StatusBadRequest, "The provided cross partition query can not be directly served by the gateway. "+
		"This is a first chance (internal) exception that all newer clients will know how to handle gracefully. "+
		"This exception is traced, but unless you see it bubble up as an exception (which only happens on older SDK clients), then you can safely ignore this message.")
	e.Extra = `"additionalErrorInfo":` + string(info)
	return e.sub(subCrossPartition)
}

// lookups are the items WHERE names, nil if documents must be scanned.
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
			ref.Part = store.NewPartition(keyValues(l.PartitionKey), def.Hierarchical)
		}
		refs = append(refs, ref)
	}
	return refs
}

// keyPaths are the partition key paths as the query engine takes them.
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

// keyValues turns values of the query engine into a partition key. Arrays and
// objects are no keys: then nothing can be pinned.
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

// querySession is the session token of a query: of the range it read, or of all.
func querySession(c *store.Container, rng *store.Range, lsn uint64) string {
	if rng != nil {
		return sessionToken(rng.ID, lsn)
	}
	var tokens []string
	for _, r := range c.Topology().Ranges {
		tokens = append(tokens, sessionToken(r.ID, lsn))
	}
	return strings.Join(tokens, ",")
}
