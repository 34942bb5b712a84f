package query

import (
	"fmt"
	"strings"
	"testing"
)

// kilobyte is a document of about 1 KB, with the system properties last as in the service.
var kilobyte = []byte(fmt.Sprintf(
	`{"id":"4b1f6c52-7d3e-4a8e-9c50-0f7f3f1f2a10","pk":"tenant-17","type":"contact","version":12,"name":{"first":"Ada","last":"Lovelace"},`+
		`"email":"ada@example.com","company":{"name":"Analytical Engines","size":3},"tags":["a","b","c"],"notes":%q,`+
		`"active":true,"score":17.25,"_rid":"AAAAAAAAAAABAAAAAAAAAA==","_self":"dbs/AAAA/colls/AAAA/docs/AAAA/","_etag":"\"00000000-0000-0000-0000-000000000000\"","_attachments":"attachments/","_ts":1893456000}`,
	strings.Repeat("lorem ipsum dolor ", 28)))

func BenchmarkMatch(b *testing.B) {
	for _, bb := range []struct{ name, where string }{
		{"first-member", `c.id = 'x'`},
		{"middle-member", `c.score > 20`},
		{"nested", `c.company.name = 'x'`},
		{"last-member", `c._ts = 1`},
		{"missing-member", `c.nope = 1`},
		{"four-paths", `c.type = 'contact' AND c.active AND c.version > 10 AND c.name.last LIKE 'Love%'`},
		{"in-100", `c.pk IN (` + list(100, `'tenant-%d'`) + `)`},
		{"contains", `CONTAINS(c.notes, 'nothing')`},
		{"array", `ARRAY_CONTAINS(c.tags, 'c')`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			bound := benchBind(b, "SELECT * FROM c WHERE "+bb.where)
			b.SetBytes(int64(len(kilobyte)))
			b.ReportAllocs()
			for b.Loop() {
				bound.Match(kilobyte)
			}
		})
	}
}

func BenchmarkProject(b *testing.B) {
	for _, bb := range []struct{ name, text string }{
		{"all", `SELECT * FROM c`},
		{"value", `SELECT VALUE c.id FROM c`},
		{"three", `SELECT c.id, c.name.last, c._ts AS t FROM c`},
		{"order-by-plan", `SELECT c._rid, [{"item": c.score}] AS orderByItems, c AS payload FROM c`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			bound := benchBind(b, bb.text)
			var row []byte
			b.ReportAllocs()
			for b.Loop() {
				row, _ = bound.Project(row[:0], kilobyte)
			}
		})
	}
}

func BenchmarkSortKey(b *testing.B) {
	bound := benchBind(b, `SELECT * FROM c ORDER BY c.name.last, c.score DESC`)
	b.ReportAllocs()
	for b.Loop() {
		bound.SortKey(kilobyte)
	}
}

// BenchmarkRequest measures one query up to its first document.
func BenchmarkRequest(b *testing.B) {
	params := Params{"@id": []byte(`"4b1f6c52-7d3e-4a8e-9c50-0f7f3f1f2a10"`)}
	var many []string
	for i := range 1000 {
		params[fmt.Sprintf("@param_id%d", i)] = fmt.Appendf(nil, `"id%d"`, i)
		params[fmt.Sprintf("@param_pk%d0", i)] = fmt.Appendf(nil, `"pk%d"`, i)
		many = append(many, fmt.Sprintf("(c.id = @param_id%d AND c.pk = @param_pk%d0)", i, i))
	}
	for _, bb := range []struct{ name, text string }{
		{"point-by-id", `SELECT * FROM c WHERE c.id = @id`},
		{"read-many-1000", `SELECT * FROM c WHERE ` + strings.Join(many, " OR ")},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				q, err := Parse(bb.text)
				if err != nil {
					b.Fatal(err)
				}
				bound, err := q.Bind(params)
				if err != nil {
					b.Fatal(err)
				}
				if _, ok := bound.Lookups([]string{"/pk"}); !ok {
					b.Fatal("scan")
				}
			}
		})
	}
}

func benchBind(b *testing.B, text string) *Bound {
	b.Helper()
	q, err := Parse(text)
	if err != nil {
		b.Fatal(err)
	}
	bound, err := q.Bind(nil)
	if err != nil {
		b.Fatal(err)
	}
	return bound
}

func list(n int, format string) string {
	var parts []string
	for i := range n {
		parts = append(parts, fmt.Sprintf(format, i))
	}
	return strings.Join(parts, ", ")
}
