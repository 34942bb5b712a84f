package cosmosemu

import "feedbox/infrastructure/emulator/cosmosemu/internal/query"

// queryItems answers POST .../docs with the rows of a query. It runs on one logical
// partition (partition key header, or a key that WHERE determines), on one physical
// partition (range id header), or on all.
//
//   - Supports: the SQL of internal/query, parameters, pages, .NET's resumeFilter, windows of
//     effective partition keys, session tokens, stale reads.
//   - Refuses: unsupported SQL (400); all partitions without the cross-partition header
//     (400); anything but filters and projections over all partitions (400/1004 with the
//     query plan, after which the SDK sends one query per range); a range that was split or
//     merged (410).
//   - Source: errors of @azure/cosmos 4.9.3, emulator_cosmos_query_test.go of azcosmos v1.5.0.
func queryItems(x *request) (*reply, error) {
	c, err := x.container()
	if err != nil {
		return nil, err
	}
	b, err := parseQuery(x.body, query.Parse, querySetting(x, c))
	if err != nil {
		return nil, err
	}
	return runQuery(x, c, b)
}
