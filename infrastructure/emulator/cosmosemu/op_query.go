package cosmosemu

import (
	"fmt"
	"net/http"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
)

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

// queryPlan answers POST .../docs with the query plan header. The plan contains the
// instructions for an SDK that runs a query over the physical partitions on its own.
//
//   - Supports: ORDER BY, DISTINCT, GROUP BY, aggregates, OFFSET, LIMIT and TOP.
//   - Refuses: unsupported SQL (400), a plan that needs a feature which
//     x-ms-cosmos-supported-query-features does not contain (400 with its name).
//   - Source: the query plan requests of @azure/cosmos 4.9.3 and of the SDKs for Python, Java
//     and .NET.
func queryPlan(x *request) (*reply, error) {
	c, err := x.container()
	if err != nil {
		return nil, err
	}
	b, err := parseQuery(x.body, query.ParsePlan, querySetting(x, c))
	if err != nil {
		return nil, err
	}
	key, err := planKey(x.header, c.Definition())
	if err != nil {
		return nil, err
	}
	info, err := b.Info()
	if err != nil {
		return nil, err
	}
	if err := checkFeatures(&info, first(x.header, headerQueryFeatures)); err != nil {
		return nil, err
	}
	plan, err := encodePlan(info, planRanges(c, b, key)...)
	if err != nil {
		return nil, err
	}
	return ok(http.StatusOK, plan, metadataCharge), nil
}

// checkFeatures refuses a plan that needs features which the header does not list, because
// the SDK would run it wrongly. A client without the header is assumed to support all.
func checkFeatures(info *query.QueryInfo, header string) error {
	if header == "" {
		return nil
	}
	has := map[string]bool{}
	for name := range strings.SplitSeq(header, ",") {
		has[strings.TrimSpace(name)] = true
	}
	var missing strings.Builder
	for _, name := range info.Features() {
		if !has[name] {
			fmt.Fprintf(&missing, "\nQuery contained %s, which the calling client does not support.", name)
		}
	}
	if missing.Len() == 0 {
		return nil
	}
	return refuse(http.StatusBadRequest, "Query contains 1 or more unsupported features. Upgrade your SDK to a version that does support the requested features:%s", missing.String())
}
