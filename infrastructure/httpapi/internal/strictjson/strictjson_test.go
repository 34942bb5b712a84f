package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"feedbox/tests/fuzzseed"
)

func TestParse(t *testing.T) {
	doc, err := Parse([]byte(` {"a":"x\u00e9\ud83d\ude00\n","b":[1,-2.5e+3,true,null,{}],"a":false} `), 4)
	if err != nil {
		t.Fatal(err)
	}
	want := Value{Kind: Object, Members: []Member{
		{"a", Value{Kind: String, Text: "xé😀\n"}},
		{"b", Value{Kind: Array}},
		{"a", Value{Kind: Bool}},
	}}
	if !reflect.DeepEqual(doc.Root, want) {
		t.Errorf("got %+v", doc.Root)
	}
	if !slices.Equal(doc.Duplicates, []string{"/a"}) {
		t.Errorf("duplicates %v", doc.Duplicates)
	}
}

func TestDuplicatesInLargeAndNestedObjects(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"x":{"a/b~":1,"a/b~":2}`)
	for i := range 40 {
		b.WriteString(`,"m` + string(rune('A'+i%26)) + string(rune('0'+i/26)) + `":0`)
	}
	b.WriteString(`,"mZ0":1}`)
	doc, err := Parse([]byte(b.String()), 4)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(doc.Duplicates, []string{"/x/a~1b~0", "/mZ0"}) {
		t.Errorf("duplicates %v", doc.Duplicates)
	}
}

func TestSyntaxErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:                  "at byte 0: the text ends where a value is expected",
		`{`:                 "at byte 1: the text ends where a member name is expected",
		`{"a":1,}`:          "at byte 7: unexpected '}' where a member name is expected",
		`{"a" 1}`:           "at byte 5: unexpected '1' where a colon is expected",
		`{"a":1} x`:         "at byte 8: there is data after the end of the value",
		`[1 2]`:             "at byte 3: unexpected '2' where a comma or the end of the array is expected",
		`01`:                "at byte 1: there is data after the end of the value",
		`1.`:                "at byte 2: the text ends where a digit is expected",
		`-`:                 "at byte 1: the text ends where a digit is expected",
		`nul`:               "at byte 0: unexpected 'n' where a value is expected",
		`"\x"`:              `at byte 2: unexpected 'x' where an escape sequence is expected`,
		`"\u12G4"`:          `at byte 5: unexpected 'G' where a hexadecimal digit is expected`,
		`"\ud800"`:          "at byte 7: half of a surrogate pair is not a character",
		`"\ud800\u0041"`:    "at byte 13: half of a surrogate pair is not a character",
		`"\udc00\ud800"`:    "at byte 13: half of a surrogate pair is not a character",
		"\"a\nb\"":          "at byte 2: a control character must be escaped",
		"\"\xff\"":          "at byte 1: the text is not valid UTF-8",
		"\"a\\n\xc3\"":      "at byte 4: the text is not valid UTF-8",
		`"abc`:              "at byte 4: the text ends inside a string",
		`"a\nbc`:            "at byte 6: the text ends inside a string",
		"\xef\xbb\xbf{}":    "at byte 0: unexpected 'ï' where a value is expected",
		`{"a":"b"` + "\x00": `at byte 8: unexpected '\x00' where a comma or the end of the object is expected`,
	} {
		_, err := Parse([]byte(text), 8)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestDepth(t *testing.T) {
	if _, err := Parse([]byte(`[[[]]]`), 3); err != nil {
		t.Errorf("three levels: %v", err)
	}
	_, err := Parse([]byte(`{"a":[0,[[]]]}`), 3)
	var depth *LimitError
	if !errors.As(err, &depth) || depth.Problem != "be nested deeper than 3 levels" || depth.Pointer != "/a/1/0" {
		t.Errorf("four levels: %v", err)
	}
	if _, err := Parse([]byte(strings.Repeat("[", 1_000_000)), 16); !errors.As(err, &depth) {
		t.Errorf("a million levels: %v", err)
	}
}

func TestLimits(t *testing.T) {
	long := strings.Repeat("é~", 5000)
	for name, tc := range map[string]struct{ text, problem, pointer string }{
		"members":               {`{"x":{` + strings.Repeat(`"a":0,`, 256) + `"a":0}}`, "have more than 256 members", "/x"},
		"depth under long name": {`{"` + long + `":{"x":{}}}`, "be nested deeper than 2 levels", "/" + strings.Repeat("é~0", 63) + "é…"},
	} {
		_, err := Parse([]byte(tc.text), 2)
		var limit *LimitError
		if !errors.As(err, &limit) || limit.Problem != tc.problem || limit.Pointer != tc.pointer {
			t.Errorf("%s: %+v", name, err)
		}
	}
	doc, err := Parse([]byte(`[`+strings.Repeat(`{"a":0,"a":1},`, 200)+`0]`), 2)
	if err != nil || len(doc.Duplicates) != maxDuplicates || doc.Duplicates[99] != "/99/a" {
		t.Errorf("%v, duplicates %v", err, doc.Duplicates)
	}
	if _, err := Parse([]byte(`{`+strings.Repeat(`"a":0,`, 255)+`"a":0}`), 1); err != nil {
		t.Errorf("256 members: %v", err)
	}
}

// FuzzParse compares with encoding/json: a text that this package accepts must decode to the
// same values. A text that only this package refuses must have a fault that encoding/json
// is known to ignore.
func FuzzParse(f *testing.F) {
	fuzzseed.Add(f)
	for _, seed := range []string{
		`{"firstName":"Jane","lastName":"Doe","email":null,"description":"","companyName":"Contoso"}`,
		`[1,2.5e-3,"\ud83d\ude00",{"a":{"a":[]}}]`, `{"a":1,"a":2}`, `"\ud800"`, "\"\xff\"", `{"":""}`, `-0`, ` 1 `,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Parse(data, 64)
		var standard any
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber() // we keep numbers as they are written, of any size
		standardErr := decoder.Decode(&standard)
		if !json.Valid(data) {
			standardErr = errors.New("not valid")
		}
		if err != nil {
			var limit *LimitError
			var syntax *SyntaxError
			switch {
			case errors.As(err, &limit), standardErr != nil:
			case errors.As(err, &syntax) && (strings.Contains(syntax.Problem, "UTF-8") || strings.Contains(syntax.Problem, "surrogate")):
			default:
				t.Fatalf("only this package refuses %q: %v", data, err)
			}
			return
		}
		if standardErr != nil {
			t.Fatalf("only this package accepts %q: %v", data, standardErr)
		}
		if len(doc.Duplicates) == 0 && !equal(doc.Root, standard) {
			t.Fatalf("%q: %+v differs from %#v", data, doc.Root, standard)
		}
	})
}

func equal(ours Value, standard any) bool {
	switch s := standard.(type) {
	case nil:
		return ours.Kind == Null
	case bool:
		return ours.Kind == Bool && ours.True == s
	case json.Number:
		return ours.Kind == Number && ours.Text == s.String()
	case string:
		return ours.Kind == String && ours.Text == s
	case []any:
		return ours.Kind == Array
	case map[string]any:
		if ours.Kind != Object || len(ours.Members) != len(s) {
			return false
		}
		for _, m := range ours.Members {
			if member, ok := s[m.Name]; !ok || !equal(m.Value, member) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

func BenchmarkParse(b *testing.B) {
	data := []byte(`{"firstName":"Jane","lastName":"Doe","email":"jane@contoso.example","description":"A contact","companyName":"Contoso"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(data, 16); err != nil {
			b.Fatal(err)
		}
	}
}
