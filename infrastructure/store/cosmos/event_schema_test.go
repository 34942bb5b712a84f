package cosmos_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/document"
)

// eventSchema is the contract for other services.
func eventSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile("event.schema.json")
	must(t, err)
	return schema
}

func valid(t *testing.T, schema *jsonschema.Schema, raw string) error {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(raw))
	must(t, err)
	return schema.Validate(document)
}

// Our own events match the contract.
func TestEventsMatchTheSchema(t *testing.T) {
	t.Parallel()
	schema := eventSchema(t)
	events := 0
	for _, golden := range goldenDocuments(t).Files {
		if !strings.HasPrefix(golden.Name, "event_") {
			continue
		}
		events++
		if err := valid(t, schema, string(golden.Data)); err != nil {
			t.Errorf("%s: %v", golden.Name, err)
		}
	}
	if events < 8 {
		t.Fatalf("%d golden events", events)
	}
	w, outbox := newOutbox(t)
	_, err := outbox.Batch("k").Emit("E", nil).EmitEvent(cosmos.Event{Action: "F", Data: map[string]int{"n": 1}, Sequence: 1, Version: 1}).Commit(t.Context())
	must(t, err)
	pager := w.container.NewQueryItemsPager("SELECT * FROM c", partition("k"), nil)
	page, err := pager.NextPage(t.Context())
	must(t, err)
	for _, raw := range page.Items {
		if err := valid(t, schema, string(raw)); err != nil || len(page.Items) != 2 {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// The relay accepts exactly the documents that the schema allows.
func TestRelayAcceptsTheSchema(t *testing.T) {
	t.Parallel()
	schema := eventSchema(t)
	const good = `{"id":"e1","partitionKey":"k","type":"domainEvent","ttl":60,"data":{"action":"A","sequence":1,"ordinal":1,"aggregateVersion":2,"createdAt":"2026-03-01T12:00:00Z","traceparent":"x","other":[1]},"mine":true}`
	change := func(from, to string) string { return strings.Replace(good, from, to, 1) }
	for name, raw := range map[string]string{
		"good":                      good,
		"nothing optional":          `{"id":"e1","partitionKey":"k","type":"domainEvent","data":{"action":"A"}}`,
		"null for what is unknown":  change(`"sequence":1`, `"sequence":null`),
		"no id":                     change(`"id":"e1",`, ""),
		"an empty id":               change(`"e1"`, `""`),
		"an id that is a number":    change(`"e1"`, `7`),
		"no partition key":          change(`"partitionKey":"k",`, ""),
		"an object for a key":       change(`"k"`, `{}`),
		"no data":                   `{"id":"e1","partitionKey":"k","type":"domainEvent"}`,
		"data that is a text":       `{"id":"e1","partitionKey":"k","type":"domainEvent","data":"x"}`,
		"no action":                 change(`"action":"A",`, ""),
		"an empty action":           change(`"A"`, `""`),
		"an action of another type": change(`"A"`, `1`),
		"a sequence of 0":           change(`"sequence":1`, `"sequence":0`),
		"a sequence in a text":      change(`"sequence":1`, `"sequence":"1"`),
		"a sequence of 1.5":         change(`"sequence":1`, `"sequence":1.5`),
		"an ordinal of 0":           change(`"ordinal":1`, `"ordinal":0`),
		"an ordinal that is a text": change(`"ordinal":1`, `"ordinal":"1"`),
		"a version below 0":         change(`"aggregateVersion":2`, `"aggregateVersion":-2`),
		"a version too large":       change(`"aggregateVersion":2`, `"aggregateVersion":9223372036854775808`),
	} {
		_, isEvent, err := document.EventDecoder{}.Decode([]byte(raw))
		if sent, allowed := isEvent && err == nil, valid(t, schema, raw) == nil; sent != allowed {
			t.Errorf("%s: the schema allows it: %t, the relay sends it: %t (%v)", name, allowed, sent, err)
		}
		if !json.Valid([]byte(raw)) {
			t.Errorf("%s is no JSON", name)
		}
	}
	for _, raw := range []string{`{"id":"k","type":"order","data":{}}`, `{"id":"k"}`} {
		if _, isEvent, err := (document.EventDecoder{}).Decode([]byte(raw)); isEvent || err != nil || valid(t, schema, raw) == nil {
			t.Errorf("%s is no event", raw)
		}
	}
}
