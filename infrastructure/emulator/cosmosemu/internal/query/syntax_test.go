package query

import (
	"errors"
	"strings"
	"testing"
)

func TestSyntaxErrors(t *testing.T) {
	for _, tt := range []struct {
		text string
		pos  int
		msg  string
	}{
		// Clauses.
		{``, 0, `expected "SELECT", found the end`},
		{`SELEC * FROM c`, 0, `expected "SELECT"`},
		{`FROM c`, 0, `expected "SELECT"`},
		{`SELECT FROM c`, 7, `expected an expression`},
		{`SELECT * c`, 9, `expected FROM`},
		{`SELECT *, c.a FROM c`, 8, `stands alone`},
		{`SELECT VALUE c.a, c.b FROM c`, 16, `one expression`},
		{`SELECT VALUE c.a AS b FROM c`, 17, `one expression`},
		{`SELECT c.a AS FROM c`, 14, `reserved word`},
		{`SELECT c.a, FROM c`, 12, `expected an expression`},
		{`SELECT c.a, d.b AS a FROM c`, 16 + 3, `two items`},
		{`SELECT c.a, c["a"] FROM c`, 12, `two items`},
		{`SELECT c, c.b AS c FROM c`, 17, `two items`},
		{`SELECT 1 AS VALUE FROM c`, 12, `reserved word`},
		{`SELECT 1, VALUE c.x FROM c`, 10, `VALUE stands once`},
		{`SELECT TOP c.a FROM c`, 11, `whole number`},
		{`SELECT TOP 1.5 * FROM c`, 11, `whole number`},
		{`SELECT TOP -1 * FROM c`, 11, `whole number`},
		{`SELECT TOP 99999999999999999999 * FROM c`, 11, `whole number`},
		{`SELECT TOP 1 DISTINCT c.a FROM c`, 13, `expected an expression`},
		{`SELECT * FROM`, 13, `expected a source name`},
		{`SELECT * FROM 'c'`, 14, `expected a source name`},
		{`SELECT * FROM c AS`, 18, `expected an alias name`},
		{`SELECT * FROM a, b`, 15, `one source`},
		{`SELECT * FROM c c c`, 18, `expected the end`},
		{`SELECT * FROM c WHERE`, 21, `expected an expression`},
		{`SELECT * FROM c WHERE c.a = 1 WHERE c.b = 2`, 30, `expected the end`},
		{`SELECT * FROM c ORDER c.a`, 22, `expected "BY"`},
		{`SELECT * FROM c ORDER BY c.a ASC DESC`, 33, `expected the end`},
		{`SELECT * FROM c ORDER BY c.a,`, 29, `expected an expression`},
		{`SELECT * FROM c ORDER BY c.a WHERE c.a = 1`, 29, `expected the end`},
		{`SELECT * FROM c LIMIT 1`, 16, `needs OFFSET`},
		{`SELECT * FROM c OFFSET 1`, 24, `expected "LIMIT"`},
		{`SELECT * FROM c OFFSET x LIMIT 1`, 23, `whole number`},
		{`SELECT TOP 1 * FROM c OFFSET 0 LIMIT 1`, 22, `exclude each other`},
		{`SELECT * FROM c;`, 15, `unexpected character ';'`},
		{`SELECT * FROM c GROUPBY c.a`, 24, `expected the end`},

		// Names.
		{`SELECT d.a FROM c`, 7, `Identifier 'd' could not be resolved`},
		{`SELECT * FROM c x WHERE c.a = 1`, 24, `Identifier 'c' could not be resolved`},
		{`SELECT * FROM c WHERE C.a = 1`, 22, `Identifier 'C' could not be resolved`},
		{`SELECT * FROM c WHERE id = 1`, 22, `Identifier 'id' could not be resolved`},
		{`SELECT * FROM c WHERE c.a = TRUE`, 28, `Identifier 'TRUE' could not be resolved`},
		{`SELECT c.value FROM c`, 9, `a property of that name is ["value"]`},
		{`SELECT c.order FROM c`, 9, `reserved word`},
		{`SELECT c. FROM c`, 10, `reserved word`},
		{`SELECT c.1 FROM c`, 8, `expected FROM`},
		{`SELECT c.'a' FROM c`, 9, `expected a property name`},
		{`SELECT c[] FROM c`, 9, `expected an expression`},
		{`SELECT c["a" FROM c`, 13, `expected "]"`},
		{`SELECT nope(c.a) FROM c`, 7, `no function "nope"`},
		{`SELECT ABS() FROM c`, 7, `ABS takes 1 argument, not 0`},
		{`SELECT ABS(1, 2) FROM c`, 7, `ABS takes 1 argument, not 2`},
		{`SELECT CONCAT('a') FROM c`, 7, `at least 2 arguments`},
		{`SELECT CONTAINS('a') FROM c`, 7, `2 to 3 arguments`},
		{`SELECT PI(1) FROM c`, 7, `PI takes 0 arguments`},
		{`SELECT ABS(1 FROM c`, 13, `expected ")"`},
		{`SELECT LEFT FROM c`, 12, `expected "("`},
		{`SELECT COUNT(*) FROM c`, 13, `COUNT(1)`},
		{`SELECT COUNT() FROM c`, 13, `expected an expression`},
		{`SELECT COUNT(1, 2) FROM c`, 7, `1 argument`},
		{`SELECT COUNT(COUNT(1)) FROM c`, 13, `inside of an aggregate`},
		{`SELECT * FROM c WHERE COUNT(1) > 1`, 22, `outside of SELECT`},

		// FROM, sub-queries, groups.
		{`SELECT * FROM c JOIN d IN c.list`, 0, `one source only`},
		{`SELECT *`, 0, `needs FROM`},
		{`SELECT c.a`, 7, `Identifier 'c' could not be resolved`},
		{`SELECT t FROM c JOIN t IN d.list`, 26, `Identifier 'd' could not be resolved`},
		{`SELECT t FROM c JOIN t IN t.list`, 26, `Identifier 't' could not be resolved`},
		{`SELECT c FROM t IN c.list`, 7, `Identifier 'c' could not be resolved`},
		{`SELECT c FROM c.list`, 7, `Identifier 'c' could not be resolved`},
		{`SELECT t FROM c JOIN t IN c.a JOIN t IN c.b`, 35, `two sources named "t"`},
		{`SELECT c FROM c JOIN c IN c.a`, 21, `two sources named "c"`},
		{`SELECT 1 FROM c.a[c.b]`, 18, `a string or a number`},
		{`SELECT 1 FROM c.a[1.5]`, 22, `whole numbers`},
		{`SELECT 1 FROM c` + strings.Repeat(` JOIN c[0]`, 11), 116, `at most 10 JOINs`},
		{`SELECT (SELECT VALUE t FROM t IN c.list) FROM c`, 7, `one row at most`},
		{`SELECT (SELECT VALUE COUNT(1) FROM t IN c.l GROUP BY t) FROM c`, 7, `one row at most`},
		{`SELECT * FROM c WHERE c.a IN (SELECT VALUE 1)`, 30, `expected an expression`},
		{`SELECT EXISTS(1) FROM c`, 14, `expected "SELECT"`},
		{`SELECT VALUE (SELECT VALUE x.a) FROM c`, 27, `Identifier 'x' could not be resolved`},
		{`SELECT VALUE (SELECT VALUE x FROM x) FROM c`, 34, `Identifier 'x' could not be resolved`},
		{`SELECT VALUE t FROM c JOIN (SELECT VALUE u FROM u IN t.l) AS u JOIN t IN c.l`, 53, `Identifier 't' could not be resolved`},
		{`SELECT VALUE d FROM (SELECT VALUE d.a FROM c) AS d`, 34, `Identifier 'd' could not be resolved`},
		{`SELECT * FROM c GROUP BY c.a`, 16, `SELECT * cannot`},
		{`SELECT c.a, c.b FROM c GROUP BY c.a`, 12, `c.b is in SELECT`},
		{`SELECT COUNT(1) AS n, c.a FROM c`, 22, `c.a is in SELECT`},
		{`SELECT VALUE (SELECT VALUE COUNT(1) + t FROM t IN c.l) FROM c`, 38, `t is in SELECT`},
		{`SELECT c.a, ARRAY(SELECT VALUE c.b) FROM c GROUP BY c.a`, 31, `c.b is in SELECT`},
		{`SELECT SUM((SELECT VALUE 1)) FROM c`, 11, `cannot take a sub-query`},
		{`SELECT MAX(SUM(c.a)) FROM c`, 11, `inside of an aggregate`},
		{`SELECT c.a FROM c GROUP BY COUNT(1)`, 27, `outside of SELECT`},
		{`SELECT c.a FROM c GROUP c.a`, 24, `expected "BY"`},

		// Expressions.
		{`SELECT * FROM c WHERE c.a =`, 27, `expected an expression, found the end`},
		{`SELECT * FROM c WHERE c.a == 1`, 27, `expected an expression, found "="`},
		{`SELECT * FROM c WHERE c.a = 1 AND`, 33, `expected an expression`},
		{`SELECT * FROM c WHERE AND c.a`, 22, `expected an expression`},
		{`SELECT * FROM c WHERE c.a = 1 && c.b = 2`, 31, `expected an expression, found "&"`},
		{`SELECT * FROM c WHERE (c.a = 1`, 30, `expected ")"`},
		{`SELECT * FROM c WHERE c.a = 1)`, 29, `expected the end`},
		{`SELECT * FROM c WHERE c.a IN ()`, 30, `expected an expression`},
		{`SELECT * FROM c WHERE c.a IN 1`, 29, `expected "("`},
		{`SELECT * FROM c WHERE c.a IN (1,)`, 32, `expected an expression`},
		{`SELECT * FROM c WHERE c.a NOT 1`, 30, `IN, LIKE or BETWEEN`},
		{`SELECT * FROM c WHERE c.a BETWEEN 1`, 35, `expected "AND"`},
		{`SELECT * FROM c WHERE c.a BETWEEN 1 OR 2`, 36, `expected "AND"`},
		{`SELECT * FROM c WHERE c.a LIKE`, 30, `expected an expression`},
		{`SELECT * FROM c WHERE c.a LIKE 'x' ESCAPE`, 41, `one character`},
		{`SELECT * FROM c WHERE c.a LIKE 'x' ESCAPE '!!'`, 42, `one character`},
		{`SELECT * FROM c WHERE c.a IS NULL`, 26, `expected the end`},
		{`SELECT c.a ? 1 FROM c`, 15, `expected ":"`},
		{`SELECT {order: 1} FROM c`, 8, `in quotes if it is a reserved word`},
		{`SELECT {1: 1} FROM c`, 8, `a member name`},
		{`SELECT {a: 1, "a": 2} FROM c`, 14, `two members`},
		{`SELECT TOP 2147483648 * FROM c`, 11, `TOP is at most 2147483647`},
		{`SELECT * FROM c OFFSET 0 LIMIT 2147483648`, 31, `LIMIT is at most 2147483647`},
		{`SELECT * FROM c OFFSET 2147483648 LIMIT 1`, 23, `OFFSET is at most 2147483647`},
		{`SELECT {"a" 1} FROM c`, 12, `expected ":"`},
		{`SELECT {"a": 1,} FROM c`, 15, `a member name`},
		{`SELECT {"a": 1, "a": 2} FROM c`, 16, `two members`},
		{`SELECT [1,] FROM c`, 10, `expected an expression`},
		{`SELECT [1 2] FROM c`, 10, `expected "]"`},
		{`SELECT @ FROM c`, 7, `needs a name`},
		{`SELECT @1 FROM c`, 7, `needs a name`},
		{`SELECT * FROM c WHERE {documentdb-formattableorderbyquery-filter}`, 33, `expected ":"`},

		// Literals.
		{`SELECT 'a FROM c`, 7, `no closing quote`},
		{`SELECT "a' FROM c`, 7, `no closing quote`},
		{`SELECT 'a\x' FROM c`, 9, `unknown escape`},
		{`SELECT 'a\u12' FROM c`, 9, `unknown escape`},
		{`SELECT 'a\`, 9, `unknown escape`},
		{"SELECT 'a\xff' FROM c", 9, `not UTF-8`},
		{"SELECT \xff FROM c", 7, `not UTF-8`},
		{`SELECT # FROM c`, 7, `unexpected character '#'`},
		{`SELECT 1a FROM c`, 7, `neither a number nor a name`},
		{`SELECT 1e FROM c`, 7, `exponent`},
		{`SELECT 1e+ FROM c`, 7, `exponent`},
		{`SELECT 1e999 FROM c`, 7, `too large`},
		{`SELECT 0xg FROM c`, 7, `hexadecimal`},
		{`SELECT 0x FROM c`, 7, `hexadecimal`},
		{`SELECT 0x11112222333344445 FROM c`, 7, `hexadecimal`},
		{`SELECT 1.2.3 FROM c`, 10, `expected FROM`},
	} {
		t.Run(tt.text, func(t *testing.T) {
			_, err := Parse(tt.text)
			var syntax *SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("error is %v", err)
			}
			if syntax.Pos != tt.pos || !strings.Contains(syntax.Msg, tt.msg) {
				t.Errorf("position %d: %s\nwant %d: %s", syntax.Pos, syntax.Msg, tt.pos, tt.msg)
			}
		})
	}
}

// The codes of the service for queries that its parser understands but does not allow.
func TestRefusalsHaveTheCodesOfTheService(t *testing.T) {
	const composed = "Compositions of aggregates"
	for _, tt := range []struct{ text, code, msg string }{
		{`SELECT VALUE ARRAY(SELECT VALUE t FROM t IN c.l ORDER BY c.a) FROM c`, "SC2202", "ORDER BY"},
		{`SELECT VALUE d.a FROM (SELECT c.a FROM c ORDER BY c.a) AS d`, "SC2202", "ORDER BY"},
		{`SELECT VALUE ARRAY(SELECT TOP 1 VALUE t FROM t IN c.l) FROM c`, "SC2203", "TOP"},
		{`SELECT VALUE COUNT(1) FROM (SELECT TOP 3 c.a FROM c)`, "SC2203", "TOP"},
		{`SELECT VALUE d FROM (SELECT VALUE c FROM c OFFSET 1 LIMIT 2) AS d`, "SC2204", "OFFSET LIMIT"},
		{`SELECT c.a FROM c JOIN (SELECT VALUE t FROM t IN c.l OFFSET 1 LIMIT 2) AS d`, "SC2204", "OFFSET LIMIT"},
		{`SELECT VALUE c.list[c.n % 2] FROM c`, "SC2990", "member indexer"},
		{`SELECT VALUE COUNT(1) > 0 FROM c`, "", composed},
		{`SELECT AVG(c.n) + 1 FROM c`, "", composed},
		{`SELECT VALUE {"n": COUNT(1)} FROM c`, "", composed},
		{`SELECT VALUE [SUM(c.n)] FROM c`, "", composed},
		{`SELECT c.g, ABS(AVG(c.a)) AS v FROM c GROUP BY c.g`, "", composed},
	} {
		_, err := Parse(tt.text)
		var refused *SyntaxError
		if !errors.As(err, &refused) || refused.Code != tt.code || !strings.Contains(refused.Msg, tt.msg) {
			t.Errorf("%s: %v, want %s %s", tt.text, err, tt.code, tt.msg)
		}
	}
}

func TestUnsupported(t *testing.T) {
	for _, tt := range []struct {
		text      string
		pos       int
		construct string
	}{
		{`SELECT * FROM c WHERE ALL(SELECT VALUE 1)`, 22, "ALL with a sub-query"},
		{`SELECT FIRST(SELECT VALUE 1) FROM c`, 7, "FIRST with a sub-query"},
		{`SELECT c.g FROM c GROUP BY c.g ORDER BY c.g`, 31, "ORDER BY with GROUP BY"},
		{`SELECT VALUE t FROM c JOIN t IN c.list ORDER BY t`, 48, "ORDER BY anything but a property path"},
		{`SELECT VALUE t FROM c JOIN t IN c.list ORDER BY t.a`, 48, "ORDER BY anything but a property path"},
		{`SELECT udf.tax(c.a) FROM c`, 7, "a user-defined function"},
		{`SELECT * FROM c ORDER BY LOWER(c.a)`, 25, "ORDER BY anything but a property path"},
		{`SELECT * FROM c ORDER BY c`, 25, "ORDER BY anything but a property path"},
		{`SELECT * FROM c ORDER BY RANK FullTextScore(c.a, 'x')`, 25, "ORDER BY RANK"},
		{`SELECT ST_DISTANCE(c.a, c.b) FROM c`, 7, "the function ST_DISTANCE"},
		{`SELECT VectorDistance(c.a, [1]) FROM c`, 7, "the function VectorDistance"},
		{`SELECT * FROM c WHERE NOT c.a = 1`, 22, "NOT before a comparison"},
		{`SELECT * FROM c WHERE NOT c.a IN (1)`, 22, "NOT before a comparison"},
		{`SELECT * FROM c WHERE NOT c.a LIKE 'x'`, 22, "NOT before a comparison"},
		{`SELECT * FROM c WHERE 1 + NOT c.a`, 26, "NOT before a comparison"},
		{`SELECT * FROM c WHERE c.a = 'x' || 'y'`, 22, "|| beside a comparison"},
		{`SELECT * FROM c WHERE c.a & 1 = 1`, 28, "& beside a comparison"},
		{`SELECT c.a ?? c.b ? 1 : 2 FROM c`, 7, "?? beside ?:"},
		{`SELECT c.a ? 1 : c.b ?? 2 FROM c`, 7, "?? beside ?:"},
		{`SELECT ` + strings.Repeat("(", 5000) + `1` + strings.Repeat(")", 5000) + ` FROM c`, 7 + 4096, "deeper than"},
		{`SELECT 1, ` + strings.Repeat("- ", 300) + `1 FROM c`, 10, "deeper than"},
		{`SELECT * FROM c WHERE ` + strings.Repeat("[", 300) + strings.Repeat("]", 300), 22, "deeper than"},
		{`SELECT VALUE c` + strings.Repeat(".a", 200000) + ` FROM c`, 528, "deeper than"},
		{`SELECT VALUE 1` + strings.Repeat("+1", 200000) + ` FROM c`, 13, "deeper than"},
	} {
		t.Run(tt.text[:min(len(tt.text), 60)], func(t *testing.T) {
			_, err := Parse(tt.text)
			var unsupported *UnsupportedError
			if !errors.As(err, &unsupported) {
				t.Fatalf("error is %v", err)
			}
			if unsupported.Pos != tt.pos || !strings.Contains(unsupported.Construct, tt.construct) {
				t.Errorf("position %d: %s\nwant %d: %s", unsupported.Pos, unsupported.Construct, tt.pos, tt.construct)
			}
		})
	}
}

// TestUnsupportedByValue checks constructs that are detected only with their parameters.
func TestUnsupportedByValue(t *testing.T) {
	for _, tt := range []struct {
		text, param string
		construct   string
	}{
		{`SELECT * FROM c WHERE c.a LIKE @p`, `"a[b"`, "a LIKE pattern"},
		{`SELECT * FROM c WHERE c.a LIKE @p ESCAPE '!'`, `"a!"`, "a LIKE pattern"},
		{`SELECT * FROM c WHERE REGEXMATCH(c.a, @p)`, `"(?=a)"`, "the pattern of REGEXMATCH"},
		{`SELECT GetCurrentTimestamp() FROM c`, `1`, "GETCURRENTTIMESTAMP where there is no clock"},
		{`SELECT * FROM c WHERE REGEXMATCH(c.a, c.b)`, `1`, "not constant"},
		{`SELECT * FROM c WHERE REGEXMATCH(c.a, 'a', @p)`, `"g"`, "the modifier 'g'"},
		{`SELECT RAND() FROM c`, `1`, "RAND where there are no random numbers"},
	} {
		q, err := Parse(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = q.Bind(Params{"@p": []byte(tt.param)})
		var unsupported *UnsupportedError
		if !errors.As(err, &unsupported) || !strings.Contains(unsupported.Construct, tt.construct) {
			t.Errorf("%s with %s: %v", tt.text, tt.param, err)
		}
	}
}

func TestTextLimit(t *testing.T) {
	text := "SELECT * FROM c" + strings.Repeat(" ", maxText)
	var syntax *SyntaxError
	if _, err := Parse(text); !errors.As(err, &syntax) || syntax.Pos != maxText {
		t.Errorf("%v", err)
	}
	if _, err := Parse(text[:maxText]); err != nil {
		t.Error(err)
	}
}

func TestPrint(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`select * from c`, `SELECT * FROM c`},
		{`select value c from docs as c`, `SELECT VALUE c FROM docs c`},
		{`SELECT DISTINCT TOP 3 c['a'].b, c["x-y"][0] AS z FROM c`, `SELECT DISTINCT TOP 3 c.a.b, c["x-y"][0] AS z FROM c`},
		{`SELECT c["value"], c["größe"] AS g FROM c`, `SELECT c["value"], c["größe"] AS g FROM c`},
		{
			`SELECT * FROM c WHERE c.a=1 AND (c.b <> 'it''' OR NOT (c.c IN (1,@p))) ORDER BY c.a, c.b DESC OFFSET @o LIMIT 5`,
			``,
		},
		{
			`SELECT * FROM c WHERE c.a=1 and (c.b <> 'it\'s' or not (c.c in (1,@p))) ORDER BY c.a, c.b DESC OFFSET @o LIMIT 5`,
			`SELECT * FROM c WHERE (c.a = 1) AND ((c.b != "it's") OR (NOT (c.c IN (1, @p)))) ORDER BY c.a ASC, c.b DESC OFFSET @o LIMIT 5`,
		},
		{`SELECT VALUE 1+2*3-(4-5) FROM c`, `SELECT VALUE (1 + (2 * 3)) - (4 - 5) FROM c`},
		{`SELECT VALUE - -1 FROM c`, `SELECT VALUE -(-1) FROM c`},
		{`SELECT VALUE c.a ? [1,{}] : {"k":undefined} FROM c`, `SELECT VALUE c.a ? [1, {}] : {"k": undefined} FROM c`},
		{`SELECT VALUE startswith(c.s,'a') FROM c`, `SELECT VALUE STARTSWITH(c.s, "a") FROM c`},
		{`SELECT VALUE c.s not like 'a!%' escape '!' FROM c`, `SELECT VALUE c.s NOT LIKE "a!%" ESCAPE "!" FROM c`},
		{`SELECT VALUE c.n NOT BETWEEN 1 AND 2 FROM c`, `SELECT VALUE c.n NOT BETWEEN 1 AND 2 FROM c`},
		{`SELECT VALUE COUNT(1) FROM c`, `SELECT VALUE COUNT(1) FROM c`},
		{`select t from t in c.tags join u in t["a b"]`, `SELECT t FROM t IN c.tags JOIN u IN t["a b"]`},
		{`select * from c.a["b"][0] as x`, `SELECT * FROM c.a.b[0] x`},
		{`select * from c.a["b"] as b`, `SELECT * FROM c.a.b`},
		{`select value x from (select distinct c.a from c) as x`, `SELECT VALUE x FROM (SELECT DISTINCT c.a FROM c) x`},
		{`select value x from x in (select c.a from c)`, `SELECT VALUE x FROM x IN (SELECT c.a FROM c)`},
		{`select c.g, avg(c.a) as v from c group by c.g, lower(c.h)`, `SELECT c.g, AVG(c.a) AS v FROM c GROUP BY c.g, LOWER(c.h)`},
		{`select value exists(select value t from t in c.l) from c`, `SELECT VALUE EXISTS(SELECT VALUE t FROM t IN c.l) FROM c`},
		{`select value (select value 1).a from c join (select 1 as one) o`, `SELECT VALUE (SELECT VALUE 1)["a"] FROM c JOIN (SELECT 1 AS one) o`},
	} {
		q, err := Parse(tt.text)
		if tt.want == "" {
			if err == nil {
				t.Errorf("%s: no error", tt.text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if got := q.String(); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.text, got, tt.want)
		}
		if again, err := Parse(tt.want); err != nil || again.String() != tt.want {
			t.Errorf("%s does not read back: %v", tt.want, err)
		}
	}
}

func TestFrame(t *testing.T) {
	frame := func(text string) string {
		t.Helper()
		q, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return q.Frame()
	}
	one := frame(`SELECT c.a FROM c WHERE (c.x >= 1) ORDER BY c.x`)
	if other := frame(`select c.a from c where true order by c.x asc`); other != one {
		t.Errorf("%s and %s differ", one, other)
	}
	for _, text := range []string{
		`SELECT c.a FROM c ORDER BY c.x DESC`, `SELECT c.b FROM c ORDER BY c.x`, `SELECT DISTINCT c.a FROM c ORDER BY c.x`,
		`SELECT TOP 1 c.a FROM c ORDER BY c.x`,
	} {
		if frame(text) == one {
			t.Errorf("%s is taken for %s", text, one)
		}
	}
}
