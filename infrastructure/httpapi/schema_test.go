package httpapi

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

type inner struct {
	Tags []string `json:"tags"`
}

// The schema of each field matches its encoding by encoding/json.
func TestSchemaOfView(t *testing.T) {
	t.Parallel()
	type view struct {
		inner
		Price  float64           `json:"price,omitempty" doc:"of the {noun}"`
		Size   *int32            `json:"size"`
		Labels map[string]uint16 `json:"labels"`
		Raw    json.RawMessage   `json:"raw"`
		Data   []byte            `json:"data"`
		Hidden string            `json:"-"`
		Plain  bool
		secret string
	}
	_ = view{}.secret
	got, err := json.Marshal(schemaOfView(reflect.TypeFor[view](), words{"order", "orders"}))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"properties":{"Plain":{"type":"boolean"},"data":{"contentEncoding":"base64","type":"string"},` +
		`"labels":{"additionalProperties":{"type":"integer"},"type":"object"},"price":{"description":"of the order","type":"number"},` +
		`"raw":{},"size":{"type":["integer","null"]},"tags":{"items":{"type":"string"},"type":"array"}},` +
		`"required":["tags","size","labels","raw","data","Plain"],"type":"object"}`
	if string(got) != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// Words has articles, lists and capitalized names.
func TestWords(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"Create an order":     words{"order", "orders"}.say("Create {a noun}"),
		"a user":              words{"user", "users"}.say("{a noun}"),
		"Boxes of the box":    words{"box", "boxes"}.say("{Plural} of the {noun}"),
		"a, b or c":           listed([]string{"a", "b", "c"}, "or"),
		"a and b":             listed([]string{"a", "b"}, "and"),
		"addLineOfOrder":      camel("add-line-of-order"),
		"there is no {thing}": words{"order", "orders"}.say("there is no {thing}"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Each resource has its own token keys. Their derivation must not change, because a process
// of another version opens the tokens.
func TestTokenKeysOfResources(t *testing.T) {
	t.Parallel()
	if got := tokenPurpose("contacts"); got != "feedbox contacts continuation v1" {
		t.Errorf("keys are derived for %q", got)
	}
	keys := [][]byte{bytes.Repeat([]byte{1}, 32)}
	orders, err := newTokenBox(keys, "orders")
	if err != nil {
		t.Fatal(err)
	}
	notes, err := newTokenBox(keys, "notes")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := notes.open(orders.seal("c", "/a"), "/a"); err == nil {
		t.Error("the token of another resource opens")
	}
}
