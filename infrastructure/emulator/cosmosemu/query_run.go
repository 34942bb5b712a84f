package cosmosemu

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// parseQuery reads the query and its parameters from the body of a request. parse is query.Parse
// or query.ParsePlan.
func parseQuery(text []byte, parse func(string) (*query.Query, error), in query.Setting) (*query.Bound, error) {
	var body struct {
		Query      string `json:"query"`
		Parameters []struct {
			Name  string          `json:"name"`
			Value json.RawMessage `json:"value"`
		} `json:"parameters"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, refuse(http.StatusBadRequest, "The request body is not a query: %v", err)
	}
	q, err := parse(body.Query)
	if err != nil {
		return nil, err
	}
	params := make(query.Params, len(body.Parameters))
	for _, p := range body.Parameters {
		params[p.Name] = p.Value
	}
	return q.BindIn(params, in)
}

// querySetting returns the time and the computed properties for a query on a container.
func querySetting(x *request, c *store.Container) query.Setting {
	return query.Setting{Now: x.account.now(), Random: rand.Float64, Stop: x.overdue(), Computed: computedProperties(c.Definition())}
}

// runQuery answers with one page of a query's rows. If b is nil, the rows are all items,
// unchanged.
func runQuery(x *request, c *store.Container, b *query.Bound) (*reply, error) {
	limit, err := maxItemCount(x.header)
	if err != nil {
		return nil, err
	}
	scope, rng, err := queryScope(x.header, c, b)
	if err != nil {
		return nil, err
	}
	if err := x.admit(c, scopeRanges(c, scope, rng)...); err != nil {
		return nil, err
	}
	if err := checkIndexing(x, c.Definition(), b); err != nil {
		return nil, err
	}
	if err := x.checkSession(c, rng); err != nil {
		return nil, err
	}
	from, err := parseContinuation(first(x.header, headerContinuation), c.RID, b, readsBackward(x.header, x.route.op))
	if err != nil {
		return nil, err
	}
	scope.At = x.moment(c)
	defer scope.At.Release()
	session := querySession(c, rng, scope.At) // taken before the rows, which may include later writes
	p := &queryPage{c: c, b: b, scope: scope, limit: pageLimit(limit), from: from, backward: readsBackward(x.header, x.route.op)}
	if p.resume, err = parseResumeFilter(x.body, b); err != nil {
		return nil, err
	}
	p.rows = fmt.Appendf(x.buffer, `{"_rid":%q,"Documents":[`, c.RID)
	p.head = len(p.rows)
	if err := p.run(); err != nil {
		return nil, err
	}
	if err := stopped(b); err != nil {
		return nil, err
	}
	body := p.rows
	body = append(body, `],"_count":`...)
	body = append(strconv.AppendInt(body, int64(p.count), 10), '}')
	a := ok(http.StatusOK, body, queryCharge(p.scanned, len(body)))
	a.count, a.session = p.count, session
	if p.next != nil {
		a.continuation = p.next.text(c.RID, b)
		if err := checkTokenSize(x.header, a.continuation); err != nil {
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

// metricSize returns the size of a number of documents for the query metrics.
func metricSize(documents int, body []byte) int {
	if documents == 0 {
		return 0
	}
	return len(body)
}

// indexMetrics is an empty report in base64, because the emulator has no user indexes.
const indexMetrics = "eyJVdGlsaXplZFNpbmdsZUluZGV4ZXMiOltdLCJQb3RlbnRpYWxTaW5nbGVJbmRleGVzIjpbXSwiVXRpbGl6ZWRDb21wb3NpdGVJbmRleGVzIjpbXSwiUG90ZW50aWFsQ29tcG9zaXRlSW5kZXhlcyI6W119"

func queryCharge(scanned, size int) float64 { return 2.3 + 0.02*float64(scanned) + 0.1*kilobytes(size) }

// pageLimit returns the page size. 100 is the default if the client does not set one.
func pageLimit(asked int) int {
	if asked == 0 {
		return 100
	}
	return asked
}

// querySession returns the session token of a query: for the range that it read, or for all.
func querySession(c *store.Container, rng *store.Range, at *store.Moment) string {
	if rng != nil {
		return rangeToken(rng, at.LSN(rng))
	}
	var tokens []string
	for _, r := range c.Topology().Ranges {
		tokens = append(tokens, rangeToken(&r, at.LSN(&r)))
	}
	return strings.Join(tokens, ",")
}
