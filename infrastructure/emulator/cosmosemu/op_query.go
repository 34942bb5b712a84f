package cosmosemu

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

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
func queryItems(x *request) (*reply, error) {
	c, err := x.container()
	if err != nil {
		return nil, err
	}
	b, err := x.parseQuery(x.setting(c))
	if err != nil {
		return nil, err
	}
	return x.runQuery(c, b)
}

// parseQuery reads the query and parameters in the request's body.
func (x *request) parseQuery(in query.Setting) (*query.Bound, error) {
	var body struct {
		Query      string `json:"query"`
		Parameters []struct {
			Name  string          `json:"name"`
			Value json.RawMessage `json:"value"`
		} `json:"parameters"`
	}
	if err := json.Unmarshal(x.body, &body); err != nil {
		return nil, refuse(http.StatusBadRequest, "The request body is not a query: %v", err)
	}
	q, err := query.Parse(body.Query)
	if err != nil {
		return nil, err
	}
	params := make(query.Params, len(body.Parameters))
	for _, p := range body.Parameters {
		params[p.Name] = p.Value
	}
	return q.BindIn(params, in)
}

// setting is where a query on a container runs.
func (x *request) setting(c *store.Container) query.Setting {
	return query.Setting{Now: x.srv.now(), Computed: computedProperties(c.Definition())}
}

// runQuery pages through the rows of a query; b is nil for all items as they are.
func (x *request) runQuery(c *store.Container, b *query.Bound) (*reply, error) {
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
	from, err := parseContinuation(first(x.header, headerContinuation), c.RID, b, x.backward())
	if err != nil {
		return nil, err
	}
	scope.At = x.moment()
	defer scope.At.Release()
	session := querySession(c, rng, scope.At) // before the rows, which may hold more
	p := &queryPage{c: c, b: b, scope: scope, limit: pageLimit(limit), from: from, backward: x.backward()}
	if p.resume, err = x.resume(b); err != nil {
		return nil, err
	}
	p.rows = fmt.Appendf(x.buffer, `{"_rid":%q,"Documents":[`, c.RID)
	p.head = len(p.rows)
	if err := p.run(); err != nil {
		return nil, err
	}
	body := p.rows
	body = append(body, `],"_count":`...)
	body = append(strconv.AppendInt(body, int64(p.count), 10), '}')
	a := ok(http.StatusOK, body, queryCharge(p.scanned, len(body)))
	a.count, a.session = p.count, session
	if p.next != nil {
		a.continuation = p.next.text(c.RID, b)
		if err := x.checkTokenSize(a.continuation); err != nil {
			return nil, err
		}
	}
	a.extra = append(a.extra, headerValue{replyQueryMetrics, fmt.Sprintf(
		"totalExecutionTimeInMs=0.10;queryCompileTimeInMs=0.01;queryLogicalPlanBuildTimeInMs=0.01;queryPhysicalPlanBuildTimeInMs=0.01;"+
			"queryOptimizationTimeInMs=0.01;VMExecutionTimeInMs=0.06;indexLookupTimeInMs=0.01;documentLoadTimeInMs=0.01;systemFunctionExecuteTimeInMs=0.01;"+
			"userFunctionExecuteTimeInMs=0.00;retrievedDocumentCount=%d;retrievedDocumentSize=%d;outputDocumentCount=%d;outputDocumentSize=%d;"+
			"writeOutputTimeInMs=0.01;indexUtilizationRatio=1.00", p.scanned, metricSize(p.scanned, body), p.count, metricSize(p.count, body))})
	if isTrue(x.header, headerPopulateIndex) {
		a.extra = append(a.extra, headerValue{replyIndexMetrics, indexMetrics})
	}
	return a, nil
}

// metricSize is the size that the metrics tell of a number of documents.
func metricSize(documents int, body []byte) int {
	if documents == 0 {
		return 0
	}
	return len(body)
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

// querySession is the session token of a query: of the range it read, or of all.
func querySession(c *store.Container, rng *store.Range, at *store.Moment) string {
	if rng != nil {
		return sessionToken(rng.ID, at.LSN(rng))
	}
	var tokens []string
	for _, r := range c.Topology().Ranges {
		tokens = append(tokens, sessionToken(r.ID, at.LSN(&r)))
	}
	return strings.Join(tokens, ",")
}
