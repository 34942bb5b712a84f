package cosmoswire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const restQuery = "REST reference, Querying resources (Queries that cannot be served by gateway)"

// query returns the ids of all pages.
func (p *probe) query(text string, pk azcosmos.PartitionKey, size int32, parameters ...azcosmos.QueryParameter) (ids []string, pages int) {
	pager := p.items.NewQueryItemsPager(text, pk, &azcosmos.QueryOptions{PageSizeHint: size, QueryParameters: parameters})
	for pager.More() {
		page, err := pager.NextPage(p.ctx)
		p.must("query", err)
		pages++
		for _, d := range p.documents(page.Items) {
			ids = append(ids, d.ID)
		}
	}
	return ids, pages
}

// sameValue reports whether two texts are the same JSON value.
func sameValue(a, b []byte) bool {
	decode := func(text []byte) (v any) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if d.Decode(&v) != nil {
			return text
		}
		return v
	}
	return reflect.DeepEqual(decode(a), decode(b))
}

var queryScripts = []Script{
	{Name: "query-across-keys", Topic: "key-mismatch", Source: restQuery + "; azcosmos emulator_cosmos_query_test.go", run: func(p *probe) {
		for i := range 12 {
			p.create(fmt.Sprint("k", i), fmt.Sprintf("lease.%02d", i), `"intent":{"verb":"retry"}`)
		}
		p.create("x", "other")
		every := azcosmos.NewPartitionKey()
		ids, pages := p.query("SELECT * FROM c WHERE STARTSWITH(c.id, @prefix)", every, 5, azcosmos.QueryParameter{Name: "@prefix", Value: "lease."})
		slices.Sort(ids)
		p.expect(len(slices.Compact(ids)) == 12 && pages > 1, "%d different ids on %d pages, want 12 on several", len(slices.Compact(ids)), pages)
		ids, _ = p.query("SELECT * FROM c WHERE c.pk != 'k0' AND IS_DEFINED(c.intent)", every, 0)
		p.expect(len(ids) == 11, "IS_DEFINED finds %d, want 11", len(ids))
		p.create("y", "waits", `"closing":{"auto":true}`)
		ids, _ = p.query("SELECT * FROM c WHERE c.pk != 'k0' AND (IS_DEFINED(c.intent) OR c.closing.auto = true)", every, 0)
		p.expect(len(ids) == 12, "IS_DEFINED or equal finds %d, want 12", len(ids))
	}},
	{Name: "query-continuation", Topic: "continuation", Source: "REST reference, x-ms-continuation", run: func(p *probe) {
		for i := range 30 {
			p.create(fmt.Sprint("k", i), fmt.Sprintf("%02d", i))
		}
		var ids []string
		var token *string
		for range 20 {
			pager := p.items.NewQueryItemsPager("SELECT c.id FROM c", azcosmos.NewPartitionKey(), &azcosmos.QueryOptions{PageSizeHint: 7, ContinuationToken: token})
			page, err := pager.NextPage(p.ctx)
			p.must("query", err)
			for _, d := range p.documents(page.Items) {
				ids = append(ids, d.ID)
			}
			if token = page.ContinuationToken; token == nil {
				break
			}
		}
		slices.Sort(ids)
		p.expect(len(ids) == 30 && len(slices.Compact(ids)) == 30, "page by page with a token: %d ids, want each of 30 once", len(ids))
	}},
	{Name: "query-foreign-continuation", Topic: "continuation", Source: "REST reference, status codes (400)", run: func(p *probe) {
		p.create("a", "1")
		token := "this is no token of the service"
		pager := p.items.NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKey(), &azcosmos.QueryOptions{ContinuationToken: &token})
		_, err := pager.NextPage(p.ctx)
		p.expect(status(err, 200) == http.StatusBadRequest, "a token that is none: %d, want 400", status(err, 200))
	}},
	{Name: "query-first-of-a-key", Topic: "order-by", Source: "Learn, ORDER BY and TOP (within one partition key the gateway serves them)", run: func(p *probe) {
		for i := range 20 {
			p.create("a", fmt.Sprint("e", i), fmt.Sprintf(`"position":%d`, (i*7)%20))
			p.create("b", fmt.Sprint("e", i), `"position":-1`)
		}
		ids, _ := p.query("SELECT TOP 3 * FROM c WHERE c.pk = @pk ORDER BY c.position", key("a"), 0, azcosmos.QueryParameter{Name: "@pk", Value: "a"})
		p.expect(slices.Equal(ids, []string{"e0", "e3", "e6"}), "the first three by position are %v, want e0 e3 e6", ids)
	}},
	{Name: "query-needs-its-index", Topic: "order-by", Source: "Learn, Indexing policies; .NET, OrderByQueryTests", run: func(p *probe) {
		p.create("a", "1", `"x":1,"y":1`)
		for text, want := range map[string]int{
			"SELECT * FROM c ORDER BY c.x":                          200,
			"SELECT * FROM c ORDER BY c._etag":                      400, // excluded from every policy
			"SELECT * FROM c ORDER BY c.x, c.y":                     400, // no composite index
			"SELECT VALUE d FROM (SELECT TOP 1 c.x FROM c) AS d":    400, // SC2203
			"SELECT VALUE COUNT(1) > 0 FROM c":                      400,
			"SELECT VALUE d FROM (SELECT DISTINCT c.x FROM c) AS d": 200,
		} {
			_, err := p.items.NewQueryItemsPager(text, key("a"), nil).NextPage(p.ctx)
			p.expect(status(err, 200) == want, "%s: %d, want %d", text, status(err, 200), want)
		}
	}},
}
