package cosmosemu_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// people creates a container with two unique keys, one of which has two paths.
func people(t *testing.T, srv *cosmosemu.Server) *azcosmos.ContainerClient {
	t.Helper()
	db, err := srv.Client().NewDatabase("db")
	must(t, err)
	ttl := int32(-1)
	_, err = db.CreateContainer(t.Context(), azcosmos.ContainerProperties{
		ID:                     "people",
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2},
		UniqueKeyPolicy: &azcosmos.UniqueKeyPolicy{UniqueKeys: []azcosmos.UniqueKey{
			{Paths: []string{"/mail"}}, {Paths: []string{"/name/first", "/name/last"}},
		}},
		DefaultTimeToLive: &ttl,
	}, nil)
	must(t, err)
	c, err := srv.Client().NewContainer("db", "people")
	must(t, err)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// person returns an item with a unique name that is derived from its id.
func person(id, pk string, mail any) []byte {
	return doc(id, pk, "mail", mail, "name", map[string]any{"first": id, "last": "x"})
}

func TestUniqueKeys(t *testing.T) {
	srv, _ := start(t, nil)
	c := people(t, srv)
	ctx := t.Context()
	want := func(what string, err error, status int) {
		t.Helper()
		wantStatus(t, what, err, status)
	}
	add := func(item []byte, pk string) error {
		_, err := c.CreateItem(ctx, key(pk), item, nil)
		return err
	}
	want("the first", add(person("1", "a", "m"), "a"), 0)
	want("the same mail", add(person("2", "a", "m"), "a"), http.StatusConflict)
	want("the same mail, of another partition", add(person("2", "b", "m"), "b"), 0)
	want("a mail of another type", add(person("3", "a", 1), "a"), 0)
	want("the number spelt otherwise", add([]byte(`{"id":"4","pk":"a","mail":1.0,"name":{"first":"4"}}`), "a"), http.StatusConflict)
	want("no mail", add([]byte(`{"id":"4","pk":"a","name":{"first":"4"}}`), "a"), 0)
	want("null is as good as none", add(person("5", "a", nil), "a"), http.StatusConflict)
	want("both parts of a name", add(doc("6", "a", "mail", "six", "name", map[string]any{"last": "x", "first": "1"}), "a"), http.StatusConflict)
	want("one part of a name", add(doc("6", "a", "mail", "six", "name", map[string]any{"last": "y", "first": "1"}), "a"), 0)

	_, err := c.ReplaceItem(ctx, key("a"), "3", person("3", "a", "m"), nil)
	want("replaced by a mail that is taken", err, http.StatusConflict)
	_, err = c.UpsertItem(ctx, key("a"), person("1", "a", "m"), nil)
	want("upserted as it was", err, 0)
	patch := azcosmos.PatchOperations{}
	patch.AppendSet("/mail", "m")
	_, err = c.PatchItem(ctx, key("a"), "3", patch, nil)
	want("patched to a mail that is taken", err, http.StatusConflict)
	_, err = c.ReplaceItem(ctx, key("a"), "1", person("1", "a", "n"), nil)
	want("replaced", err, 0)
	want("the mail that is free now", add(person("7", "a", "m"), "a"), 0)
	_, err = c.DeleteItem(ctx, key("a"), "7", nil)
	want("deleted", err, 0)
	want("the mail that is free again", add(person("8", "a", "m"), "a"), 0)

	_, err = c.ReplaceItem(ctx, key("a"), "8", person("9", "a", "n"), nil)
	want("renamed to a mail that is taken", err, http.StatusConflict)
	_, err = c.ReplaceItem(ctx, key("a"), "8", person("9", "a", "m"), nil)
	want("renamed, with its own mail", err, 0)
}

// A batch sees the keys that it has freed and claimed, and claims none if it fails.
func TestUniqueKeysInABatch(t *testing.T) {
	srv, _ := start(t, nil)
	c := people(t, srv)
	b := c.NewTransactionalBatch(key("a"))
	b.CreateItem(person("1", "a", "m"), nil)
	b.CreateItem(person("2", "a", "m"), nil)
	if _, ops, _ := statuses(t, c, b); fmt.Sprint(ops) != "[424 409]" {
		t.Errorf("twice in a batch: %v", ops)
	}
	b = c.NewTransactionalBatch(key("a"))
	b.CreateItem(person("1", "a", "m"), nil)
	b.DeleteItem("1", nil)
	b.CreateItem(person("2", "a", "m"), nil)
	b.ReplaceItem("2", person("2", "a", "n"), nil)
	b.CreateItem(person("3", "a", "m"), nil)
	if code, ops, _ := statuses(t, c, b); code != http.StatusOK {
		t.Errorf("freed and taken: %v", ops)
	}
	_, err := c.CreateItem(t.Context(), key("a"), person("4", "a", "n"), nil)
	wantStatus(t, "taken by the batch", err, http.StatusConflict)
}

// The keys of an expired item are free immediately, and the later sweep does not remove the keys of
// the next holder.
func TestUniqueKeysOfExpiredItems(t *testing.T) {
	for _, data := range []string{"", t.TempDir()} {
		srv, _ := start(t, &cosmosemu.Options{DataDir: data})
		c := people(t, srv)
		short := doc("1", "a", "mail", "m", "ttl", 5)
		_, err := c.CreateItem(t.Context(), key("a"), short, nil)
		must(t, err)
		srv.Advance(6 * time.Second)
		_, err = c.CreateItem(t.Context(), key("a"), person("2", "a", "m"), nil)
		wantStatus(t, "the mail of an expired item", err, 0)
		_, err = c.CreateItem(t.Context(), key("a"), person("1", "a", "m"), nil)
		wantStatus(t, "the expired one again", err, http.StatusConflict)
	}
}

func TestUniqueKeysCannotChange(t *testing.T) {
	srv, _ := start(t, nil)
	c := people(t, srv)
	read, err := c.Read(t.Context(), nil)
	must(t, err)
	props := *read.ContainerProperties
	if len(props.UniqueKeyPolicy.UniqueKeys) != 2 {
		t.Errorf("read %+v", props.UniqueKeyPolicy)
	}
	_, err = c.Replace(t.Context(), props, nil)
	wantStatus(t, "replaced by itself", err, 0)
	props.UniqueKeyPolicy.UniqueKeys = props.UniqueKeyPolicy.UniqueKeys[:1]
	_, err = c.Replace(t.Context(), props, nil)
	wantStatus(t, "with one key less", err, http.StatusBadRequest)
	for _, other := range []string{`[{"paths":["/mail"]},{"paths":["/name/first","/name/last"]}]`, `[{"paths":["/mail"]},{"paths":["/name first","/name/last"]}]`} {
		body := `{"id":"people","partitionKey":{"paths":["/pk"],"version":2},"uniqueKeyPolicy":{"uniqueKeys":` + other + `}}`
		r := send(t, srv, http.MethodPut, "dbs/db/colls/people", body, nil)
		if want := map[bool]int{true: 400, false: 200}[strings.Contains(other, " ")]; r.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", other, r.StatusCode, r.Body, want)
		}
	}
	for _, policy := range []string{`{"paths":[]}`, `{"paths":["a"]}`, `{"paths":["/a/*"]},{}`} {
		body := `{"id":"y","partitionKey":{"paths":["/pk"]},"uniqueKeyPolicy":{"uniqueKeys":[` + policy + `]}}`
		if r := send(t, srv, http.MethodPost, "dbs/db/colls", body, nil); r.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", policy, r.StatusCode, r.Body)
		}
	}
}
