package cosmosemu_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestPatch(t *testing.T) {
	srv, c := start(t, nil)
	ctx := t.Context()
	created, err := c.CreateItem(ctx, key("a"), doc("1", "a", "n", 1, "list", []int{1, 2}), nil)
	if err != nil {
		t.Fatal(err)
	}
	var ops azcosmos.PatchOperations
	ops.AppendIncrement("/n", 2)
	ops.AppendSet("/name", "x")
	ops.AppendAdd("/list/-", 3)
	ops.AppendRemove("/list/0")
	ops.SetCondition("from c where c.n = 1")
	r, err := c.PatchItem(ctx, key("a"), "1", ops, &azcosmos.ItemOptions{EnableContentResponseOnWrite: true, IfMatchEtag: &created.ETag})
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		N    int
		Name string
		List []int
	}
	if err := json.Unmarshal(r.Value, &body); err != nil || fmt.Sprint(body) != "{3 x [2 3]}" {
		t.Errorf("patched: %s (%v)", r.Value, err)
	}
	if r.ETag == created.ETag {
		t.Error("the patch kept the etag")
	}
	_, err = c.PatchItem(ctx, key("a"), "1", ops, nil)
	wantStatus(t, "a false condition", err, http.StatusPreconditionFailed)
	var one azcosmos.PatchOperations
	one.AppendSet("/n", 1)
	_, err = c.PatchItem(ctx, key("a"), "1", one, &azcosmos.ItemOptions{IfMatchEtag: &created.ETag})
	wantStatus(t, "a stale etag", err, http.StatusPreconditionFailed)
	_, err = c.PatchItem(ctx, key("a"), "2", one, nil)
	wantStatus(t, "no such item", err, http.StatusNotFound)
	for _, path := range []string{"/id", "/pk", "/pk/x", "/_ts", "/no/where"} {
		var bad azcosmos.PatchOperations
		bad.AppendSet(path, "b")
		_, err = c.PatchItem(ctx, key("a"), "1", bad, nil)
		wantStatus(t, "patch of "+path, err, http.StatusBadRequest)
	}

	stale := azcore.ETag(`"x"`)
	b := c.NewTransactionalBatch(key("a"))
	b.PatchItem("1", one, nil)
	b.CreateItem(doc("2", "a"), nil)
	if code, got, _ := statuses(t, c, b); code != 200 || fmt.Sprint(got) != "[200 201]" {
		t.Errorf("patch in a batch: %d %v", code, got)
	}
	b = c.NewTransactionalBatch(key("a"))
	b.DeleteItem("2", nil)
	b.PatchItem("1", one, &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &stale})
	if code, got, _ := statuses(t, c, b); code != 207 || fmt.Sprint(got) != "[424 412]" {
		t.Errorf("stale patch in a batch: %d %v", code, got)
	}

	bare := send(t, srv, http.MethodPatch, "dbs/db/colls/c/docs/1", `[{"op":"set","path":"/n","value":9}]`, map[string]string{"x-ms-documentdb-partitionkey": `["a"]`})
	if bare.StatusCode != http.StatusOK {
		t.Errorf("a bare array of operations: %d %s", bare.StatusCode, bare.Body)
	}
}
