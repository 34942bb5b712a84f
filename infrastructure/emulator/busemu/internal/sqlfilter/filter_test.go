package sqlfilter

import (
	"strings"
	"testing"
	"time"

	"feedbox/tests/fuzzseed"
)

func TestSQLFilters(t *testing.T) {
	at := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)
	fields := &Fields{
		MessageID: "m1", CorrelationID: "c1", To: "to", ReplyTo: "re", Subject: "Order's",
		SessionID: "s1", ReplyToSessionID: "rs", ContentType: "application/json",
		Properties: map[string]any{
			"color": "red", "Size": int32(10), "big": uint64(1 << 63), "price": 9.5, "float": float32(0.5), "on": true, "off": false,
			"at": at, "null": nil, "odd name": "x", "byte": uint8(7), "percent": "100%", "bin": []byte("b"),
			"alias": "color", "id": UUID{15: 7},
		},
		EnqueuedAt: at, SequenceNumber: 7,
	}
	parameters := []Parameter{{"@s", "red"}, {"@n", int64(10)}, {"@t", at}, {"@b", true}, {"@f", 9.5}, {"@odd", []int{1}}}
	for expression, want := range map[string]truth{
		"1=1":                                    isTrue,
		"1 = 1.0":                                isTrue,
		"1=2":                                    isFalse,
		"color = 'red'":                          isTrue,
		"COLOR = 'red'":                          isTrue,
		"color = 'Red'":                          isFalse,
		"color <> 'blue'":                        isTrue,
		"color != 'red'":                         isFalse,
		"user.color = 'red'":                     isTrue,
		"[odd name] = 'x'":                       isTrue,
		`"odd name" = 'x'`:                       isTrue,
		"size = 10":                              isTrue,
		"size > 9.5 AND size < 11":               isTrue,
		"size >= 10 and size <= 10":              isTrue,
		"size = '10'":                            unknown,
		"big > 1":                                isTrue,
		"price = 9.5":                            isTrue,
		"price < size":                           isTrue,
		"float = .5":                             isTrue,
		"byte = 7e0":                             isTrue,
		"size > -1":                              isTrue,
		"on = TRUE":                              isTrue,
		"off = true":                             isFalse,
		"on > off":                               unknown,
		"on = 1":                                 unknown,
		"at = @t":                                isTrue,
		"at > @t":                                isFalse,
		"at = '2024'":                            unknown,
		"missing = 1":                            unknown,
		"missing <> 1":                           unknown,
		"NOT missing = 1":                        unknown,
		"missing = 1 OR color = 'red'":           isTrue,
		"missing = 1 OR color = 'x'":             unknown,
		"missing = 1 AND color = 'red'":          unknown,
		"missing = 1 AND color = 'x'":            isFalse,
		"missing IS NULL":                        isTrue,
		"[null] IS NULL":                         isTrue,
		"color IS NOT NULL":                      isTrue,
		"NOT (color IS NULL)":                    isTrue,
		"EXISTS(color)":                          isTrue,
		"NOT EXISTS (missing)":                   isTrue,
		"color IN ('blue', 'red')":               isTrue,
		"color NOT IN ('blue')":                  isTrue,
		"missing IN ('a')":                       unknown,
		"missing NOT IN ('a')":                   unknown,
		"color LIKE 'r%'":                        isTrue,
		"color LIKE '_e_'":                       isTrue,
		"color LIKE 'e'":                         isFalse,
		"color NOT LIKE 'b%'":                    isTrue,
		"percent LIKE '100!%' ESCAPE '!'":        isTrue,
		"color LIKE 'r!%' ESCAPE '!'":            isFalse,
		"size LIKE '1%'":                         unknown,
		"bin = 'b'":                              unknown,
		"sys.Label = 'Order''s'":                 isTrue,
		"sys.subject LIKE 'Order%'":              isTrue,
		"SYS.MessageId = 'm1'":                   isTrue,
		"sys.CorrelationId='c1' AND sys.To='to'": isTrue,
		"sys.ReplyTo = 're' AND sys.SessionId = 's1' AND sys.ReplyToSessionId = 'rs' AND sys.ContentType = 'application/json'": isTrue,
		"color = @S AND size = @n AND on = @b AND price = @f":                                                                  isTrue,
		"color = @odd":                                unknown,
		"1=2 OR 1=1 AND 1=2":                          isFalse,
		"(1=2 OR 1=1) AND 1=1":                        isTrue,
		"size + 1 = 11":                               isTrue,
		"2 + 3 * 4 = 14 AND (2 + 3) * 4 = 20":         isTrue,
		"10 - 2 - 3 = 5 AND 100 / 10 / 2 = 5":         isTrue,
		"size / 4 = 2 AND size % 4 = 2":               isTrue,
		"size / 4.0 = 2.5":                            isTrue,
		"-size = -10 AND - -size = +10":               isTrue,
		"price * 2 = 19":                              isTrue,
		"size / 0 = 1":                                unknown,
		"color + 1 = 2":                               unknown,
		"missing + 1 = 1":                             unknown,
		"9223372036854775807 + 1 > 0":                 unknown,
		"9223372036854775807 * 2 > 0":                 unknown,
		"(0 - 9223372036854775807 - 1) / -1 > 0":      unknown,
		"(((size))) > ((1) + 1)":                      isTrue,
		"((size > 1))":                                isTrue,
		"size BETWEEN 10 AND 11":                      isTrue,
		"size NOT BETWEEN 11 AND 12 AND 1=1":          isTrue,
		"missing BETWEEN 1 AND 2":                     unknown,
		"property('color') = 'red'":                   isTrue,
		"P('col' ) IS NULL":                           isTrue,
		"property(property('alias')) = 'red'":         isTrue,
		"property(1) IS NULL":                         isTrue,
		"newid() IS NOT NULL":                         isTrue,
		"newid() = newid()":                           isFalse,
		"id = '00000000-0000-0000-0000-000000000007'": isTrue,
		"id = 7": unknown,
		"sys.EnqueuedTimeUtc = @t AND sys.SequenceNumber % 2 = 1": isTrue,
		"sys.PartitionKey IS NULL":                                isTrue,
		"NOT NOT 1=1":                                             isTrue,
		"color\n=\t'red'\r\n":                                     isTrue,
	} {
		c, err := ParseFilter(expression, parameters)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if got := c.root.holds(fields); got != want {
			t.Errorf("%s: %d, want %d", expression, got, want)
		}
	}
}

func TestUnsupportedSQLIsRefused(t *testing.T) {
	for _, expression := range []string{
		"", "color", "color =", "= 1", "color = 'red", "1=1 1=1", "1=1 AND", "(1=1", "1=1)", "color = red blue",
		"size + = 2", "size = 1 +", "* 2 = 4", "-", "size % % 2 = 0", "newid('x') = 'x'", "property() = 1", "upper('a') = 1", "property('a' = 1)",
		"(size = 1) + 1 = 2", "(size = 1) = (size = 1)", "size AND size = 1", "NOT size", "size = (size = 1)", "size IN (1 = 1)", "(size, 1) = 1",
		"color IS 'x'", "color LIKE other", "color LIKE 'a' ESCAPE 'ab'", "color LIKE 'a!' ESCAPE '!'", "color IN 'a'", "color IN ()", "color BETWEEN 1", "color BETWEEN 1 OR 2", "color BETWEEN (1=1) AND 2",
		"sys.Nothing = 1", "sys.DeliveryCount > 1", "other.color = 1", "color = NULL", "color = @unknown", "@ = 1", "[ = 1", "1x = 1", "1..2 = 1",
		"EXISTS('a')", "SET a = 1", "a = 1; b = 2", "a == 1", "a = 1 XOR b = 2", "a = \x00", "TRUE", "NOT", "sys. = 1",
		strings.Repeat("(", 65) + "1=1" + strings.Repeat(")", 65), strings.Repeat("(", 65) + "1" + strings.Repeat(")", 65) + "=1", strings.Repeat("-", 65) + "1=1", strings.Repeat("p(", 65) + "1" + strings.Repeat(")", 65) + "=1",
		strings.Repeat("NOT ", 65) + "1=1", "a = '" + strings.Repeat("x", 1024) + "'",
	} {
		if c, err := ParseFilter(expression, nil); err == nil {
			t.Errorf("%q is accepted: %v", expression, c)
		}
	}
}

func TestCorrelationFilters(t *testing.T) {
	fields := Fields{MessageID: "m", Subject: "s", Properties: map[string]any{"n": int32(2), "b": true}}
	for _, test := range []struct {
		filter Fields
		want   truth
	}{
		{Fields{}, isTrue},
		{Fields{MessageID: "m"}, isTrue},
		{Fields{MessageID: "m", Subject: "s"}, isTrue},
		{Fields{MessageID: "m", Subject: "S"}, isFalse},
		{Fields{To: "x"}, isFalse},
		{Fields{Properties: map[string]any{"n": int64(2), "b": true}}, isTrue},
		{Fields{Properties: map[string]any{"n": "2"}}, isFalse},
		{Fields{Properties: map[string]any{"missing": "2"}}, isFalse},
	} {
		if got := correlation(test.filter).holds(&fields); got != test.want {
			t.Errorf("%+v: %d", test.filter, got)
		}
	}
}

// FuzzParseFilter: no panic, bounded work, and an accepted expression can be evaluated.
func FuzzParseFilter(f *testing.F) {
	fuzzseed.Add(f)
	for _, seed := range []string{"a = 1 AND sys.Label LIKE 'x%' OR NOT b IN (1, 2.5)", "[a]]b] IS NOT NULL", "EXISTS(user.a)", "(((", "'", "1e", "@p <> -3", "(a + 1) * 2 BETWEEN -a AND p('a') % 3", "newid() = b", "((((a))) = (1))"} {
		f.Add(seed)
	}
	fields := &Fields{Properties: map[string]any{"a": int64(1), "b": "x"}}
	f.Fuzz(func(t *testing.T, expression string) {
		c, err := ParseFilter(expression, []Parameter{{"@p", int64(1)}})
		if err != nil {
			return
		}
		first := c.root.holds(fields)
		if again, err := ParseFilter(" "+expression, []Parameter{{"@p", int64(1)}}); err == nil && again.root.holds(fields) != first {
			t.Errorf("%q holds %d, then %d", expression, first, again.root.holds(fields))
		}
		c.root.holds(&Fields{})
	})
}
