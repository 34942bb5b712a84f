package query

import (
	"strings"
	"testing"
	"time"
)

func TestFunctions(t *testing.T) {
	for _, tt := range []struct{ expr, want string }{
		// Types: always true or false.
		{`IS_DEFINED(c.nope)`, `false`},
		{`is_defined(c.z)`, `true`},
		{`IS_NULL(c.z)`, `true`},
		{`IS_NULL(c.nope)`, `false`},
		{`IS_BOOL(c.no)`, `true`},
		{`IS_NUMBER(c.big)`, `true`},
		{`IS_INTEGER(c.f)`, `true`},
		{`IS_INTEGER(c.neg)`, `false`},
		{`IS_FINITE_NUMBER(c.n)`, `true`},
		{`IS_STRING(c.s)`, `true`},
		{`IS_STRING(c.n)`, `false`},
		{`IS_ARRAY(c.arr)`, `true`},
		{`IS_OBJECT(c.obj)`, `true`},
		{`IS_OBJECT(c)`, `true`},
		{`IS_PRIMITIVE(c.z)`, `true`},
		{`IS_PRIMITIVE(c.arr)`, `false`},
		{`IS_PRIMITIVE(c.nope)`, `false`},
		{`IIF(c.n = 5, 'a', 'b')`, `"a"`},
		{`IIF(1, 'a', 'b')`, `"b"`},
		{`IIF(c.nope, 'a', c.nope)`, ``},

		// Text.
		{`CONCAT('a', 'b', c.pk)`, `"abp"`},
		{`CONCAT('a', 1)`, ``},
		{`CONTAINS(c.s, 'lo W')`, `true`},
		{`CONTAINS(c.s, 'LO w')`, `false`},
		{`CONTAINS(c.s, 'LO w', true)`, `true`},
		{`CONTAINS(c.s, 'LO w', 1)`, ``},
		{`CONTAINS(c.nope, 'x')`, ``},
		{`CONTAINS(c.n, '5')`, ``},
		{`STARTSWITH(c.s, 'Hell')`, `true`},
		{`StartsWith(c.s, 'hell', true)`, `true`},
		{`ENDSWITH(c.s, 'world')`, `false`},
		{`ENDSWITH(c.s, 'world', true)`, `true`},
		{`StringEquals(c.s, 'hello world', true)`, `true`},
		{`StringEquals(c.s, 'hello world')`, `false`},
		{`INDEX_OF(c.s, 'o')`, `4`},
		{`INDEX_OF(c.s, 'o', 5)`, `7`},
		{`INDEX_OF(c.s, 'zz')`, `-1`},
		{`INDEX_OF('é😀x', 'x')`, `2`},
		{`INDEX_OF('abc', 'a', 9)`, `-1`},
		{`LEFT(c.s, 5)`, `"Hello"`},
		{`LEFT(c.s, -1)`, `""`},
		{`LEFT(c.s, 0.5)`, ``},
		{`RIGHT(c.s, 5)`, `"World"`},
		{`RIGHT(c.s, 99)`, `"Hello World"`},
		{`RIGHT(c.s, 0)`, `""`},
		{`SUBSTRING(c.s, 6, 3)`, `"Wor"`},
		{`SUBSTRING(c.s, 6, 99)`, `"World"`},
		{`SUBSTRING(c.s, 99, 1)`, `""`},
		{`SUBSTRING(c.s, -1, 3)`, `""`},
		{`SUBSTRING('é😀x', 1, 1)`, `"😀"`},
		{`LENGTH(c.s)`, `11`},
		{`LENGTH('é😀')`, `2`},
		{`LENGTH(c.arr)`, ``},
		{`LOWER(c.s)`, `"hello world"`},
		{`UPPER('straße é')`, `"STRAßE É"`},
		{`LTRIM('  a ')`, `"a "`},
		{`RTRIM('  a ')`, `"  a"`},
		{`TRIM('  a ')`, `"a"`},
		{`TRIM('éa é', 'é')`, `"a "`},
		{`TRIM('a', 1)`, ``},
		{`TRIM(1, 'a')`, ``},
		{`DOCUMENTID({"_rid": "36ZyAPW+uN8NAAAAAAAAEA=="})`, `13`},
		{`DOCUMENTID({"_rid": "36ZyAA=="})`, ``},
		{`DOCUMENTID(1)`, ``},
		{`ToString(1 / 0)`, `"Infinity"`},
		{`ToString(-1 / 0)`, `"-Infinity"`},
		{`ToString(1.0000)`, `"1"`},
		{`StringSplit("Helmet", "")`, `["Helmet"]`},
		{`StringSplit("", "")`, `[""]`},
		{`ToString(1e2) || ToString(-0.0)`, `"1000"`},
		{`ToString([1.50, {"b": [2.0], "a\"": "x"}, []])`, `"[1.5,{\"b\":[2],\"a\\\"\":\"x\"},[]]"`},
		{`IS_DEFINED(NaN)`, `false`},
		{`[NaN, 1]`, `[1]`},
		{`REGEXMATCH('a bc', 'a\\ [b #]c # ends', 'x')`, `true`},
		{`REPLACE(c.s, 'o', '0')`, `"Hell0 W0rld"`},
		{`REPLACE(c.s, '', '0')`, ``},
		{`REPLICATE('ab', 3)`, `"ababab"`},
		{`REPLICATE('ab', -1)`, ``},
		{`REPLICATE('ab', 5001)`, ``},
		{`REPLICATE('ab', 1e300)`, ``},
		{`REPLICATE('', 1e9)`, `""`},
		{`REVERSE('abé')`, `"éba"`},
		{`REGEXMATCH(c.s, '^h.*d$', 'i')`, `true`},
		{`RegexMatch(c.s, '^h')`, `false`},
		{`REGEXMATCH(c.n, '^h')`, ``},

		// Conversions.
		{`ToString(c.n)`, `"5"`},
		{`ToString(c.s)`, `"Hello World"`},
		{`ToString(c.z)`, `"null"`},
		{`ToString(c.yes)`, `"true"`},
		{`ToString(c.obj)`, `"{\"a\":{\"b\":\"deep\"},\"c d\":7}"`},
		{`ToString(c.nope)`, ``},
		{`StringToNumber(' 1.50 ')`, `1.50`},
		{`StringToNumber('x')`, ``},
		{`StringToNumber('"1"')`, ``},
		{`StringToBoolean('true')`, `true`},
		{`StringToNull('null')`, `null`},
		{`StringToArray('[1, "a"]')`, `[1, "a"]`},
		{`StringToArray('[1')`, ``},
		{`StringToObject('{"a":1}').a`, `1`},
		{`StringJoin(c.tags, '-')`, `"x-y"`},
		{`StringJoin(c.arr, '-')`, ``},
		{`StringSplit('a,b', ',')`, `["a","b"]`},

		// Numbers.
		{`ABS(c.neg)`, `2.5`},
		{`ABS('x')`, ``},
		{`CEILING(c.neg)`, `-2`},
		{`FLOOR(c.neg)`, `-3`},
		{`ROUND(c.neg)`, `-3`},
		{`ROUND(2.345, 2)`, `2.35`},
		{`TRUNC(c.neg)`, `-2`},
		{`SIGN(c.neg)`, `-1`},
		{`SIGN(0)`, `0`},
		{`SQRT(16)`, `4`},
		{`SQRT(-1)`, ``},
		{`SQUARE(3)`, `9`},
		{`POWER(2, 10)`, `1024`},
		{`LOG(1)`, `0`},
		{`LOG(8, 2)`, `3`},
		{`LOG10(1000)`, `3`},
		{`LOG(0)`, ``},
		{`EXP(0)`, `1`},
		{`PI()`, `3.141592653589793`},
		{`SIN(0) + COS(0) + TAN(0)`, `1`},
		{`ASIN(0) + ACOS(1) + ATAN(0) + ATN2(0, 1)`, `0`},
		{`COT(0)`, ``},
		{`DEGREES(PI())`, `180`},
		{`RADIANS(180) = PI()`, `true`},

		// Arrays.
		{`ARRAY_CONTAINS(c.tags, 'x')`, `true`},
		{`ARRAY_CONTAINS(c.tags, 'z')`, `false`},
		{`ARRAY_CONTAINS(c.arr, {"k": 1})`, `false`},
		{`ARRAY_CONTAINS(c.arr, {"k": 1}, true)`, `true`},
		{`ARRAY_CONTAINS(c.arr, {"k": 9}, true)`, `false`},
		{`ARRAY_CONTAINS(c.arr, {"m": 2.0, "k": 1})`, `true`},
		{`ARRAY_CONTAINS(c.arr, [3])`, `true`},
		{`ARRAY_CONTAINS(c.arr, null)`, `true`},
		{`ARRAY_CONTAINS(c.nope, 1)`, ``},
		{`ARRAY_CONTAINS(c.tags, c.nope)`, ``},
		{`ARRAY_CONTAINS(c.tags, 'x', 'yes')`, ``},
		{`ARRAY_CONTAINS_ANY(c.tags, 'z', 'y')`, `true`},
		{`ARRAY_CONTAINS_ALL(c.tags, 'x', 'y')`, `true`},
		{`ARRAY_CONTAINS_ALL(c.tags, 'x', 'z')`, `false`},
		{`ARRAY_LENGTH(c.arr)`, `5`},
		{`ARRAY_LENGTH(c.s)`, ``},
		{`ARRAY_CONCAT(c.tags, [1], [])`, `["x","y",1]`},
		{`ARRAY_SLICE(c.tags, 1)`, `["y"]`},
		{`ARRAY_SLICE(c.tags, -1)`, `["y"]`},
		{`ARRAY_SLICE(c.tags, 0, 1)`, `["x"]`},
		{`ARRAY_SLICE(c.tags, 9)`, `[]`},
		{`ARRAY_SLICE(c.tags, 0, -1)`, `[]`},
		{`SetUnion([1, 2, 1.0], [2, 3])`, `[1,2,3]`},
		{`SetIntersect([1, 2, 2], [2, 3])`, `[2]`},

		{`CHOOSE(2, 'a', c.n)`, `5`},
		{`CHOOSE(0, 'a')`, ``},
		{`CHOOSE(2, 'a')`, ``},
		{`CHOOSE(1, c.n, c.nope)`, `5`},
		{`ObjectToArray({"a": 1, "b": [2]})`, `[{"k":"a","v":1},{"k":"b","v":[2]}]`},
		{`ObjectToArray({"a": 1}, 'name', 'is')`, `[{"name":"a","is":1}]`},
		{`ObjectToArray({"a": 1}, 'x', 'x')`, ``},
		{`ObjectToArray([1])`, ``},
		{`CONTAINS_ALL_CS(c.s, 'Hell', 'World')`, `true`},
		{`CONTAINS_ALL_CS(c.s, 'Hell', 'world')`, `false`},
		{`CONTAINS_ALL_CI(c.s, 'hell', 'WORLD')`, `true`},
		{`CONTAINS_ANY_CS(c.s, 'zz', 'World')`, `true`},
		{`CONTAINS_ANY_CI(c.s, 'zz', 'yy')`, `false`},
		{`CONTAINS_ANY_CI(c.s, 1)`, ``},
		{`CONTAINS_ALL_CI(c.s, undefined, 'hell')`, ``},
		{`CONTAINS_ALL_CI(c.s, undefined, 'zz')`, `false`},
		{`CONTAINS_ANY_CS(c.s, undefined, 'Hell')`, `true`},
		{`CONTAINS_ANY_CS(c.s, c.nope, 'zz')`, ``},
		{`CONTAINS_ANY_CS(c.nope, 'zz')`, ``},
		{`ARRAY_CONTAINS_ANY([1, 2], 1, undefined)`, `true`},
		{`ARRAY_CONTAINS_ANY([1, 2], 5, undefined)`, ``},
		{`ARRAY_CONTAINS_ALL([1, 2], 1, undefined)`, ``},
		{`ARRAY_CONTAINS_ALL([1, 2], 5, undefined)`, `false`},
		{`ARRAY_CONTAINS_ANY(c.s, 1)`, ``},

		// Integers of 64 bits.
		{`IntAdd(9007199254740993, 2)`, `9007199254740995`},
		{`IntSub(1, 2)`, `-1`},
		{`IntMul(3037000500, 3037000500)`, `-9223372036709301616`},
		{`IntDiv(-7, 2)`, `-3`},
		{`IntMod(-7, 2)`, `-1`},
		{`IntDiv(1, 0)`, ``},
		{`IntMod(1, 0)`, ``},
		{`IntAdd(1.5, 1)`, ``},
		{`IntBitAnd(12, 10) + IntBitOr(12, 10) + IntBitXor(12, 10)`, `28`},
		{`IntBitNot(0)`, `-1`},
		{`IntBitLeftShift(1, 40)`, `1099511627776`},
		{`IntBitRightShift(-8, 1)`, `-4`},
		{`NumberBin(37.4, 10)`, `30`},
		{`NumberBin(-1.5)`, `-2`},
		{`NumberBin(1, 0)`, ``},

		// Dates.
		{`DateTimeAdd('mm', 1, '2020-01-31T10:20:30.1234567Z')`, `"2020-02-29T10:20:30.1234567Z"`},
		{`DateTimeAdd('yyyy', -1, '2020-02-29')`, `"2019-02-28T00:00:00.0000000Z"`},
		{`DateTimeAdd('dd', 1, '2020-02-28T23:00:00')`, `"2020-02-29T23:00:00.0000000Z"`},
		{`DateTimeAdd('hh', -24, '2020-07-03T00:00:00.0000000')`, `"2020-07-02T00:00:00.0000000Z"`},
		{`DateTimeAdd('ns', 250, '2020-07-03T00:00Z')`, `"2020-07-03T00:00:00.0000002Z"`},
		{`DateTimeAdd('yyyy', 9000, '2020-07-03')`, ``},
		{`DateTimeAdd('yyyy', -2020, '2020-07-03')`, ``},
		{`DateTimeAdd('dd', 1e300, '2020-07-03')`, ``},
		{`DateTimeAdd('week', 1, '2020-07-03')`, ``},
		{`DateTimeAdd('dd', 1.5, '2020-07-03')`, ``},
		{`DateTimeAdd('dd', 1, '2020-13-03')`, ``},
		{`DateTimeAdd('dd', 1, c.n)`, ``},
		{`DateTimeDiff('yyyy', '2018-12-31T23:59:59', '2019-01-01')`, `1`},
		{`DateTimeDiff('month', '2020-03-01', '2019-12-31')`, `-3`},
		{`DateTimeDiff('hh', '2020-01-01T00:59:59', '2020-01-02T00:00:00')`, `24`},
		{`DateTimeDiff('ms', '1969-12-31T23:59:59.9999999', '1970-01-01')`, `1`},
		{`DateTimePart('mm', '2016-05-29T08:30:01.1301617')`, `5`},
		{`DateTimePart('mcs', '2016-05-29T08:30:01.1301617')`, `130161`},
		{`DateTimePart('ns', '2016-05-29T08:30:01.1301617')`, `130161700`},
		{`DateTimePart('ss', '2016-05-29T08:30:01.1301617')`, `1`},
		{`DateTimeFromParts(2020, 9, 4, 10, 52, 12, 3456789)`, `"2020-09-04T10:52:12.3456789Z"`},
		{`DateTimeFromParts(2020, 2, 30)`, ``},
		{`DateTimeFromParts(-1, 2, 3)`, ``},
		{`DateTimeFromParts(0, 2, 3)`, ``},
		{`DateTimeToTicks('2020-01-02T03:04:05.6789123Z')`, `15779342456789123`},
		{`DateTimeToTimestamp('1969-12-31T23:59:59.9999')`, `-1`},
		{`DateTimeToTimestamp('2020-07-09')`, `1594252800000`},
		{`TicksToDateTime(15943368134481614)`, `"2020-07-09T23:20:13.4481614Z"`},
		{`TimestampToDateTime(1594227912345)`, `"2020-07-08T17:05:12.3450000Z"`},
		{`TimestampToDateTime(1e300)`, ``},
		{`TimestampToDateTime(-1e14)`, ``},
		{`DateTimeBin('2021-01-08T18:35:00.0000000', 'dd')`, `"2021-01-08T00:00:00.0000000Z"`},
		{`DateTimeBin('2021-01-08T18:35:00.0000000', 'hh', 5)`, `"2021-01-08T15:00:00.0000000Z"`},
		{`DateTimeBin('2021-01-08T18:35:00.0000000', 'dd', 7)`, `"2021-01-07T00:00:00.0000000Z"`},
		{`DateTimeBin('2021-01-08T18:35:00', 'dd', 7, '1601-01-01T00:00:00')`, `"2021-01-04T00:00:00.0000000Z"`},
		{`DateTimeBin('2021-01-08T18:35:00', 'mm')`, ``},
		{`DateTimeBin('2021-01-08T18:35:00', 'dd', 0)`, ``},

		// Words.
		{`FullTextContains(c.title, "search")`, `true`},
		{`FullTextContains(c.title, "sear")`, `false`},
		{`FullTextContains(c.title, "text search")`, `true`},
		{`FullTextContains(c.title, "full search")`, `false`},
		{`FullTextContains(c.title, "")`, `false`},
		{`FullTextContains(c.nope, "search")`, ``},
		{`FullTextContainsAll(c.title, "here", "search")`, `true`},
		{`FullTextContainsAll(c.title, "here", "there")`, `false`},
		{`FullTextContainsAny(c.title, "there", "here")`, `true`},
	} {
		t.Run(tt.expr, func(t *testing.T) {
			if got := run(t, "SELECT VALUE "+tt.expr+" FROM c", sample, nil); got != tt.want {
				t.Errorf("%s = %s, want %s", tt.expr, got, tt.want)
			}
		})
	}
}

func TestClock(t *testing.T) {
	q, err := Parse(`SELECT VALUE [GetCurrentDateTime(), GetCurrentTicks(), GetCurrentTimestamp(), GetCurrentTimestampStatic()] FROM c`)
	if err != nil {
		t.Fatal(err)
	}
	b, err := q.BindIn(nil, Setting{Now: time.Date(2020, 7, 8, 17, 5, 12, 345_678_900, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	const want = `["2020-07-08T17:05:12.3456789Z",15942279123456789,1594227912345,1594227912345]`
	if row, _ := b.Project(nil, []byte(`{}`)); string(row) != want {
		t.Errorf("%s, want %s", row, want)
	}
}

func TestComputed(t *testing.T) {
	var in Setting
	for name, text := range map[string]string{
		"low": `SELECT VALUE LOWER(c.name) FROM c`, "o": `SELECT VALUE {"a": [c.n, 7]} FROM root c`, "sum": `SELECT VALUE c.o FROM c`,
	} {
		c, err := ParseComputed(name, text)
		if err != nil {
			t.Fatal(err)
		}
		in.Computed = append(in.Computed, c)
	}
	docs := []string{`{"id":"1","name":"B","n":1}`, `{"id":"2","name":"A","n":2,"o":9}`}
	for text, want := range map[string]string{
		`SELECT * FROM c WHERE c.low = 'a'`:                                docs[1],
		`SELECT c.id, c.low FROM c ORDER BY c.low`:                         `{"id":"2","low":"a"} {"id":"1","low":"b"}`,
		`SELECT VALUE c.o.a[1] FROM c`:                                     `7 7`,
		`SELECT VALUE c.sum FROM c`:                                        `9`,
		`SELECT c.low, COUNT(1) AS k FROM c GROUP BY c.low`:                `{"low":"b","k":1} {"low":"a","k":1}`,
		`SELECT VALUE x FROM c JOIN x IN c.o.a`:                            `1 7 2 7`,
		`SELECT VALUE EXISTS(SELECT VALUE c.low WHERE c.low = 'a') FROM c`: `false true`,
		`SELECT VALUE d.low FROM (SELECT c.low FROM c) AS d`:               `"b" "a"`,
		`SELECT VALUE d.low FROM (SELECT VALUE c FROM c) AS d`:             ``,
	} {
		q, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		b, err := q.BindIn(nil, in)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(results(b, docs), " "); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if _, ok := b.Lookups([]string{"/low"}); ok || b.PartitionKey([]string{"/low"}) != nil {
			t.Errorf("%s: a computed property is taken for the partition key", text)
		}
	}
	for _, bad := range []string{
		``, `SELECT c.a FROM c`, `SELECT VALUE c.a FROM c WHERE c.b`, `SELECT VALUE COUNT(1) FROM c`, `SELECT DISTINCT VALUE c.a FROM c`,
		`SELECT VALUE t FROM t IN c.l`, `SELECT VALUE @p FROM c`, `SELECT VALUE 1`, `SELECT VALUE c.a FROM c ORDER BY c.a`, `SELECT VALUE d FROM (SELECT c.a FROM c) d`,
	} {
		if _, err := ParseComputed("x", bad); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}
