package query

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// results runs a query over documents as the emulator's pages do, but without the window: the
// sub-query in FROM, each row of each document, groups, repeats, order.
func results(b *Bound, docs []string) (rows []string) {
	switch {
	case b.Inner() != nil:
		docs = results(b.Inner(), docs)
	case b.Sourceless():
		docs = []string{""}
	}
	shape := b.q.Shape()
	type sorted struct {
		key SortKey
		row string
	}
	var list []sorted
	if shape.Aggregate || shape.GroupBy {
		g := b.NewGroups()
		for _, d := range docs {
			g.Add([]byte(d))
		}
		g.Rows(func(row []byte) bool {
			list = append(list, sorted{nil, string(row)})
			return true
		})
	} else {
		for _, d := range docs {
			b.Each([]byte(d), func() bool {
				if row, ok := b.AppendRow(nil); ok {
					list = append(list, sorted{b.SortKey([]byte(d)), string(row)})
				}
				return true
			})
		}
		slices.SortStableFunc(list, func(x, y sorted) int { return b.Compare(x.key, y.key) })
	}
	seen := map[string]bool{}
	for _, r := range list {
		key := string(DistinctKey(nil, []byte(r.row)))
		if !shape.Distinct || !seen[key] {
			rows = append(rows, r.row)
		}
		seen[key] = true
	}
	return rows
}

// families are the documents of the tables below.
var families = []string{
	`{"id":"1","g":"a","n":1,"tags":["x","y"],"kids":[{"name":"Ann","pets":["cat","dog"]},{"name":"Bob","pets":[]}],"in":{"city":"Oslo"}}`,
	`{"id":"2","g":"b","n":2.5,"tags":["x"],"kids":[{"name":"Cid","pets":["cat"]}],"in":{"city":"Rome"}}`,
	`{"id":"3","g":"a","n":"three","tags":[],"in":{"city":"Oslo"}}`,
	`{"id":"4","n":4,"tags":"x"}`,
	`{"id":"5","g":null,"tags":["x","x"],"n":[5]}`,
}

// checkRows runs a table of queries with their rows.
func checkRows(t *testing.T, docs []string, table map[string]string) {
	t.Helper()
	for text, want := range table {
		if got := strings.Join(results(bind(t, text, nil), docs), " "); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestFrom(t *testing.T) {
	checkRows(t, families, map[string]string{
		`SELECT VALUE t FROM t IN c.tags`:                                                          `"x" "y" "x" "x" "x"`,
		`SELECT * FROM t IN c.tags`:                                                                `"x" "y" "x" "x" "x"`,
		`SELECT t FROM t IN c.tags WHERE t = 'y'`:                                                  `{"t":"y"}`,
		`SELECT * FROM c["in"]`:                                                                    `{"city":"Oslo"} {"city":"Rome"} {"city":"Oslo"}`,
		`SELECT VALUE x.city FROM c["in"] AS x`:                                                    `"Oslo" "Rome" "Oslo"`,
		`SELECT VALUE tags[0] FROM c.tags`:                                                         `"x" "x" "x"`,
		`SELECT VALUE k.name FROM c.kids[0] k`:                                                     `"Ann" "Cid"`,
		`SELECT VALUE name FROM root.kids[0].name`:                                                 `"Ann" "Cid"`,
		`SELECT VALUE 1 FROM c.nope`:                                                               ``,
		`SELECT c.id, t FROM c JOIN t IN c.tags`:                                                   `{"id":"1","t":"x"} {"id":"1","t":"y"} {"id":"2","t":"x"} {"id":"5","t":"x"} {"id":"5","t":"x"}`,
		`SELECT VALUE [k.name, p] FROM c JOIN k IN c.kids JOIN p IN k.pets`:                        `["Ann","cat"] ["Ann","dog"] ["Cid","cat"]`,
		`SELECT VALUE c.id FROM c JOIN k IN c.kids JOIN t IN c.tags WHERE t = 'x'`:                 `"1" "1" "2"`,
		`SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags`:                                          `"x" "y"`,
		`SELECT VALUE p FROM k IN c.kids JOIN p IN k.pets`:                                         `"cat" "dog" "cat"`,
		`SELECT c.id FROM c JOIN t IN c.tags WHERE c.id = '5' OR t = 'y'`:                          `{"id":"1"} {"id":"5"} {"id":"5"}`,
		`SELECT VALUE c.id FROM c JOIN x IN c["in"].list`:                                          ``,
		`SELECT VALUE x FROM c JOIN x IN (SELECT VALUE ["p", c.id]) WHERE c.n = 4`:                 `"p" "4"`,
		`SELECT VALUE [c.id, t] FROM c JOIN (SELECT VALUE t FROM t IN c.tags WHERE t != 'x') AS t`: `["1","y"]`,
		`SELECT VALUE u.up FROM c JOIN (SELECT UPPER(c.g) AS up) u`:                                `"A" "B" "A"`,
		`SELECT VALUE d FROM (SELECT VALUE c.g FROM c) AS d`:                                       `"a" "b" "a" null`,
		`SELECT d.id FROM (SELECT c.id, c.tags FROM c WHERE c.n = 1) d JOIN t IN d.tags`:           `{"id":"1"} {"id":"1"}`,
		`SELECT VALUE x FROM x IN (SELECT VALUE c.tags FROM c)`:                                    `"x" "y" "x" "x" "x"`,
		`SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.g FROM c)`:                            `3`,
		`SELECT VALUE MAX(s.k) FROM (SELECT c.g, COUNT(1) AS k FROM c GROUP BY c.g) AS s`:          `2`,
		`SELECT 1`:                                `{"$1":1}`,
		`SELECT VALUE {"a": 1 + 1} WHERE true`:    `{"a":2}`,
		`SELECT VALUE 1 WHERE false`:              ``,
		`SELECT VALUE s FROM (SELECT 1 AS one) s`: `{"one":1}`,
	})
}

func TestSubqueries(t *testing.T) {
	checkRows(t, families, map[string]string{
		`SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 'y')`:                                                     `"1"`,
		`SELECT VALUE c.id FROM c WHERE NOT EXISTS(SELECT VALUE t FROM t IN c.tags)`:                                                               `"3" "4"`,
		`SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE c.g)`:                                                                                  `"1" "2" "3" "5"`,
		`SELECT VALUE EXISTS(SELECT VALUE undefined) FROM c WHERE c.id = '1'`:                                                                      `false`,
		`SELECT VALUE ARRAY(SELECT VALUE k.name FROM k IN c.kids) FROM c WHERE IS_DEFINED(c.kids)`:                                                 `["Ann","Bob"] ["Cid"]`,
		`SELECT VALUE ARRAY(SELECT k.name, c.id FROM k IN c.kids) FROM c WHERE c.n = 1`:                                                            `[{"name":"Ann","id":"1"},{"name":"Bob","id":"1"}]`,
		`SELECT VALUE ARRAY(SELECT DISTINCT VALUE t FROM t IN c.tags) FROM c WHERE c.id = '5'`:                                                     `["x"]`,
		`SELECT c.id, (SELECT VALUE COUNT(1) FROM t IN c.tags) AS k FROM c`:                                                                        `{"id":"1","k":2} {"id":"2","k":1} {"id":"3","k":0} {"id":"4","k":0} {"id":"5","k":2}`,
		`SELECT VALUE (SELECT c.n + 1 AS x, c.id).x FROM c`:                                                                                        `2 3.5 5`,
		`SELECT VALUE (SELECT VALUE MAX(ARRAY_LENGTH(k.pets)) FROM k IN c.kids) FROM c`:                                                            `2 1`,
		`SELECT VALUE (SELECT VALUE c.nope) FROM c`:                                                                                                ``,
		`SELECT VALUE ARRAY(SELECT p AS pet, COUNT(1) AS k FROM k IN c.kids JOIN p IN k.pets GROUP BY p) FROM c WHERE c.n = 1`:                     `[{"pet":"cat","k":1},{"pet":"dog","k":1}]`,
		`SELECT VALUE ARRAY(SELECT VALUE [k.name, EXISTS(SELECT VALUE p FROM p IN k.pets WHERE p = 'dog')] FROM k IN c.kids) FROM c WHERE c.n = 1`: `[["Ann",true],["Bob",false]]`,
	})
}

func TestAggregates(t *testing.T) {
	numbers := []string{`{"a":1,"b":true}`, `{"a":-2.5,"b":false}`, `{"b":1}`, `{"a":4,"s":"q"}`}
	checkRows(t, numbers, map[string]string{
		`SELECT VALUE COUNT(1) FROM c`:                                           `4`,
		`SELECT COUNT(1) FROM c`:                                                 `{"$1":4}`,
		`SELECT COUNT(1) AS n, COUNT(c.a) AS a FROM c`:                           `{"n":4,"a":3}`,
		`SELECT VALUE COUNT(undefined) FROM c`:                                   `0`,
		`SELECT VALUE COUNT(1) FROM c WHERE c.a = 'no'`:                          `0`,
		`SELECT VALUE SUM(c.a) FROM c`:                                           `2.5`,
		`SELECT VALUE AVG(c.a) FROM c`:                                           `0.8333333333333334`,
		`SELECT VALUE MIN(c.a) FROM c`:                                           `-2.5`,
		`SELECT VALUE MAX(c.a) FROM c`:                                           `4`,
		`SELECT VALUE COUNTIF(c.a > 0) FROM c`:                                   `2`,
		`SELECT VALUE COUNTIF(c.b) FROM c`:                                       `1`,
		`SELECT VALUE MAKELIST(c.a) FROM c`:                                      `[1,-2.5,4]`,
		`SELECT VALUE MAKESET(IS_DEFINED(c.a)) FROM c`:                           `[true,false]`,
		`SELECT VALUE SUM(c.b) FROM c`:                                           ``,
		`SELECT VALUE AVG(c.b) FROM c`:                                           ``,
		`SELECT VALUE SUM(c.nope) FROM c`:                                        `0`,
		`SELECT VALUE AVG(c.nope) FROM c`:                                        ``,
		`SELECT VALUE MIN(c.nope) FROM c`:                                        ``,
		`SELECT VALUE MAX(c.b) FROM c`:                                           `1`,
		`SELECT VALUE MIN(c.b) FROM c`:                                           `false`,
		`SELECT VALUE MAX(c) FROM c`:                                             ``,
		`SELECT MIN(c.a), MAX(c.a) FROM c`:                                       `{"$1":-2.5,"$2":4}`,
		`SELECT MIN(c.nope) AS m, AVG(c.s) AS v FROM c`:                          `{}`,
		`SELECT VALUE [{"item": SUM(c.a)}, {"item2": {"all": COUNT(1)}}] FROM c`: `[{"item":2.5},{"item2":{"all":4}}]`,
		`SELECT DISTINCT VALUE COUNT(1) FROM c`:                                  `4`,
		`SELECT VALUE COUNT(1) FROM c ORDER BY c.a`:                              `4`,
		`SELECT 'x' AS kind, COUNT(1) AS n FROM c`:                               `{"kind":"x","n":4}`,
	})
	checkRows(t, families, map[string]string{
		`SELECT VALUE COUNT(1) FROM t IN c.tags`:                                         `5`,
		`SELECT VALUE COUNT(p) FROM c JOIN k IN c.kids JOIN p IN k.pets WHERE c.g = 'a'`: `2`,
		`SELECT VALUE SUM(ARRAY_LENGTH(c.tags)) FROM c`:                                  `5`,
	})
}

func TestGroupBy(t *testing.T) {
	checkRows(t, families, map[string]string{
		`SELECT c.g, COUNT(1) AS k FROM c GROUP BY c.g`:                                             `{"g":"a","k":2} {"g":"b","k":1} {"k":1} {"g":null,"k":1}`,
		`SELECT VALUE c.g FROM c GROUP BY c.g`:                                                      `"a" "b" null`,
		`SELECT VALUE COUNT(1) FROM c GROUP BY c.g`:                                                 `2 1 1 1`,
		`SELECT c["in"].city, MAX(c.n) AS m FROM c WHERE IS_DEFINED(c["in"]) GROUP BY c["in"].city`: `{"city":"Oslo","m":"three"} {"city":"Rome","m":2.5}`,
		`SELECT c["in"].city FROM c GROUP BY c["in"]`:                                               `{"city":"Oslo"} {"city":"Rome"} {}`,
		`SELECT UPPER(c.g) AS g, COUNT(1) AS k FROM c GROUP BY UPPER(c.g)`:                          `{"g":"A","k":2} {"g":"B","k":1} {"k":2}`,
		`SELECT UPPER(c.g) AS up FROM c GROUP BY c.g`:                                               `{"up":"A"} {"up":"B"} {} {}`,
		`SELECT t, COUNT(1) AS k FROM c JOIN t IN c.tags GROUP BY t`:                                `{"t":"x","k":4} {"t":"y","k":1}`,
		`SELECT c.g, t, COUNT(1) AS k FROM c JOIN t IN c.tags GROUP BY c.g, t`:                      `{"g":"a","t":"x","k":1} {"g":"a","t":"y","k":1} {"g":"b","t":"x","k":1} {"g":null,"t":"x","k":2}`,
		`SELECT COUNT(1) AS k FROM c WHERE false GROUP BY c.g`:                                      ``,
		`SELECT DISTINCT VALUE COUNT(1) FROM c GROUP BY c.g`:                                        `2 1`,
		`SELECT AVG(c.n) AS v, SUM(c.n) AS s FROM c GROUP BY c.g`:                                   `{} {"v":2.5,"s":2.5} {"v":4,"s":4} {}`,
		`SELECT VALUE {"g": c.g} FROM c GROUP BY {"g": c.g}`:                                        `{"g":"a"} {"g":"b"} {} {"g":null}`,
	})
}

// A list that is too long is undefined, so it must not take memory for the rest of its rows.
func TestTooLongListsEndTheirMemory(t *testing.T) {
	for _, q := range []string{
		"SELECT VALUE MAKELIST(c) FROM c JOIN a IN c.t JOIN b IN c.t",
		"SELECT VALUE MAKESET([c, a, b]) FROM c JOIN a IN c.t JOIN b IN c.t",
	} {
		parsed, err := Parse(q)
		if err != nil {
			t.Fatal(err)
		}
		b, err := parsed.Bind(nil)
		if err != nil {
			t.Fatal(err)
		}
		var numbers []string
		for i := range 80 {
			numbers = append(numbers, strconv.Itoa(i))
		}
		doc := `{"text":"` + strings.Repeat("x", 16<<10) + `","t":[` + strings.Join(numbers, ",") + `]}`
		groups, rows := b.NewGroups(), 0
		groups.Add([]byte(doc))
		total := &groups.all.list[0].totals[0]
		held := len(total.list.b)
		for key := range total.seen {
			held += len(key)
		}
		if held > 3*maxValue {
			t.Errorf("%s holds %d MB", q, held>>20)
		}
		groups.Rows(func(row []byte) bool { rows++; return true })
		if rows != 0 {
			t.Errorf("%s has a row, want undefined", q)
		}
	}
}
