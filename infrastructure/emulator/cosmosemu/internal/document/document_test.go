package document

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"feedbox/infrastructure/emulator/cosmosemu/internal/epk"
	"feedbox/tests/fuzzseed"
)

var pkPath = []Path{{"pk"}}

func TestParseExtractsIDAndTTLAndKey(t *testing.T) {
	d, err := Parse([]byte(` { "id" : "a", "ttl": 60, "pk":"x\u0041", "n": [1, {"id":"no"}] } `), pkPath)
	if err != nil {
		t.Fatal(err)
	}
	if d.ID != "a" || d.TTL != 60 || d.Key.String() != `["xA"]` {
		t.Errorf("id %q, ttl %d, key %v", d.ID, d.TTL, d.Key)
	}
	if got := string(d.AppendMembers(nil)); got != `{"id" : "a", "ttl": 60, "pk":"x\u0041", "n": [1, {"id":"no"}]` {
		t.Errorf("members = %s", got)
	}
}

func TestParseDropsSystemProperties(t *testing.T) {
	for text, want := range map[string]string{
		`{"_rid":"r","id":"a","_etag":"e","x":1,"y":2,"_ts":3}`: `{"id":"a","x":1,"y":2`,
		`{"id":"a","_lsn":3}`:                         `{"id":"a"`,
		`{"\u005frid":1,"id":"a"}`:                    `{"id":"a"`,
		`{"id":"a","_self":{"_x":[]},"o":{"_rid":1}}`: `{"id":"a","o":{"_rid":1}`,
	} {
		d, err := Parse([]byte(text), pkPath)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := string(d.AppendMembers(nil)); got != want {
			t.Errorf("%s kept %s, want %s", text, got, want)
		}
	}
}

func TestPartitionKeyPaths(t *testing.T) {
	paths := []Path{{"a", "b"}, {"c"}}
	for text, want := range map[string]string{
		`{"id":"1","a":{"b":"x"},"c":1}`:                       `["x",1]`,
		`{"id":"1","a":{"z":"x"},"c":null}`:                    `[{},null]`,
		`{"id":"1","a":3,"c":false}`:                           `[{},false]`,
		`{"id":"1"}`:                                           `[{},{}]`,
		`{"id":"1","a":{"b":"x","b":"y"},"c":true,"c":-2.5e1}`: `["y",-25]`,
	} {
		d, err := Parse([]byte(text), paths)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if d.Key.String() != want {
			t.Errorf("%s has key %v, want %s", text, d.Key, want)
		}
	}
	if _, err := Parse([]byte(`{"id":"1","c":[]}`), paths); !errors.Is(err, ErrKeyValue) {
		t.Errorf("array as key: %v", err)
	}
}

func TestParseRefusesBadDocuments(t *testing.T) {
	for text, want := range map[string]error{
		`{}`: ErrNoID, `{"id":""}`: ErrNoID, `{"id":5}`: ErrNoID, `[]`: ErrNotObject, `"x"`: ErrNotObject,
		`{"id":"a","ttl":0}`: ErrTTL, `{"id":"a","ttl":-2}`: ErrTTL, `{"id":"a","ttl":1.5}`: ErrTTL,
		`{"id":"a","ttl":"1"}`: ErrTTL, `{"id":"a","ttl":2147483648}`: ErrTTL,
	} {
		if _, err := Parse([]byte(text), pkPath); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	for text, offset := range map[string]int{
		"": 0, `{`: 1, `{"a":}`: 5, `{"a" 1}`: 5, `{"a":1,}`: 7, `{"a":01}`: 6, `{"id":"a"} x`: 11,
		`{"a":"\x"}`: 6, "{\"a\":\"\n\"}": 6, `{"a":tru}`: 5, "{\"a\":\"\xff\"}": 6, `{"a":1.}`: 7, `{"a":-}`: 6,
		strings.Repeat("[", 200): MaxDepth,
	} {
		_, err := Parse([]byte(text), pkPath)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%.20s: %v, want a syntax error", text, err)
		} else if syntax.Offset != offset {
			t.Errorf("%.20s: offset %d, want %d (%s)", text, syntax.Offset, offset, syntax.Reason)
		}
	}
}

// encoding/json accepts everything that Parse accepts, and the kept bytes are the same document
// without its system properties.
func FuzzParse(f *testing.F) {
	fuzzseed.Add(f)
	for _, s := range []string{
		`{"id":"a","pk":"b","ttl":-1}`, `{"id":"\ud83d\ude00","a":[1,2.5e3,{}],"_rid":1}`, `{"id":"a","pk":{}}`,
		`{"_rid":1,"id":"a","_ts":2,"id":"b"}`, ` [ ] `, `{"id":"a","x":"\u00zz"}`, `{"id":"a","n":-0.1E+5}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Parse(text, pkPath)
		if err != nil {
			return
		}
		var whole, kept map[string]json.RawMessage
		if err := json.Unmarshal(text, &whole); err != nil {
			t.Fatalf("%q was accepted: %v", text, err)
		}
		if err := json.Unmarshal(append(d.AppendMembers(nil), '}'), &kept); err != nil {
			t.Fatalf("%q kept invalid JSON: %v", text, err)
		}
		for name := range kept {
			delete(whole, name)
		}
		for name := range whole {
			if !IsSystemProperty(name) {
				t.Fatalf("%q lost %q", text, name)
			}
		}
		if len(d.Key) != 1 || d.Key.String() == "" || d.ID == "" {
			t.Fatalf("%q: id %q key %v", text, d.ID, d.Key)
		}
		_ = epk.V2.Append(nil, d.Key)
	})
}
