package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"feedbox/changefeed/internal/jsonscan"
)

func members(raw []byte) (map[string]string, bool) {
	found := map[string]string{}
	c := jsonscan.NewCursor(raw)
	for c.Object(); c.Member(); {
		name := string(c.Name())
		found[name] = string(c.Value())
	}
	return found, !c.Failed()
}

func TestMembers(t *testing.T) {
	raw := []byte(" { \"a\" : 1 , \"b\":\"x,}\\\"y\\\\\",\"c\":{\"d\":[1,{\"e\":\"]\"}]},\n\"f\":[ ] ,\"g\":true,\"h\":null,\"i\":-1.5e3}")
	got, ok := members(raw)
	want := map[string]string{
		"a": "1", "b": `"x,}\"y\\"`, "c": `{"d":[1,{"e":"]"}]}`, "f": "[ ]", "g": "true", "h": "null", "i": "-1.5e3",
	}
	if !ok || !maps.Equal(got, want) {
		t.Errorf("got %v (%t), want %v", got, ok, want)
	}
}

func TestInvalidObjectIsRefused(t *testing.T) {
	for _, raw := range []string{"", "1", "[", "{", `{"a"`, `{"a":`, `{"a":1`, `{"a" 1}`, `{a:1}`, `{"a":1 "b":2}`, `{"a":"x`, `{"a":}`, `{"a":{`, `{,}`} {
		if got, ok := members([]byte(raw)); ok {
			t.Errorf("%q: read as %v", raw, got)
		}
	}
}

func TestElements(t *testing.T) {
	var got []string
	c := jsonscan.NewCursor([]byte(`[ {"a":[1]} , "]" ,3,[]]`))
	for c.Array(); c.Element(); {
		got = append(got, string(c.Value()))
	}
	if c.Failed() || !slices.Equal(got, []string{`{"a":[1]}`, `"]"`, "3", "[]"}) {
		t.Errorf("got %q, failed %t", got, c.Failed())
	}
}

// FuzzMembers compares Cursor with encoding/json on every object.
func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":"\\\"","c":{"d":[1,2,{}]}}`))
	f.Add([]byte(`{"a":"\u0041","a":2}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, ok := members(raw)
		var want map[string]json.RawMessage
		if !json.Valid(raw) || json.Unmarshal(raw, &want) != nil || want == nil {
			return // only no panic is asked for
		}
		if !ok {
			t.Fatalf("%q is an object", raw)
		}
		for name, value := range got {
			var unquoted string
			if json.Unmarshal([]byte(`"`+name+`"`), &unquoted) != nil {
				t.Fatalf("%q: name %q", raw, name)
			}
			if w, known := want[unquoted]; !known || (name == unquoted && !bytes.Equal(bytes.TrimSpace(w), []byte(value)) && len(got) == len(want)) {
				t.Fatalf("%q: member %q is %q, want %q", raw, name, value, w)
			}
		}
	})
}

func BenchmarkDocument(b *testing.B) {
	doc := []byte(`{"id":"d6a5f4b2-84c3-4ac7-ae22-6f4025ba9ca0","partitionKey":"b5e2e7aa-4982-4735-9422-c39a7c4af5c2","type":"domainEvent","data":{"name":{"firstName":"Jane","lastName":"Doe"},"contactId":"b5e2e7aa-4982-4735-9422-c39a7c4af5c2","action":"ContactNameUpdatedEvent","id":"d6a5f4b2-84c3-4ac7-ae22-6f4025ba9ca0","createdAt":"2021-09-22T11:37:37.3022907+02:00"},"ttl":864000,"_rid":"AAAAAAAAAAA=","_etag":"\"00000000-0000-0000-0000-000000000000\"","_ts":1700000000,"_lsn":123456}`)
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		c := jsonscan.NewCursor(doc)
		for c.Object(); c.Member(); {
			c.Value()
		}
	}
}
