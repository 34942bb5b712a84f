package cosmosemu_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// statuses runs a batch and returns the status of the reply and of each operation.
func statuses(t *testing.T, c *azcosmos.ContainerClient, b azcosmos.TransactionalBatch) (int, []int, azcosmos.TransactionalBatchResponse) {
	t.Helper()
	r, err := c.ExecuteTransactionalBatch(t.Context(), b, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, op := range r.OperationResults {
		out = append(out, int(op.StatusCode))
	}
	return r.RawResponse.StatusCode, out, r
}

func TestBatchCommitsAllOrNothing(t *testing.T) {
	_, c := start(t, nil)
	ctx := t.Context()
	b := c.NewTransactionalBatch(key("a"))
	b.CreateItem(doc("1", "a", "n", 1), nil)
	b.CreateItem(doc("2", "a"), nil)
	b.UpsertItem(doc("3", "a"), nil)
	code, ops, r := statuses(t, c, b)
	if code != 200 || fmt.Sprint(ops) != "[201 201 201]" || !r.Success || r.SessionToken == "" {
		t.Fatalf("batch: %d %v", code, ops)
	}
	for _, op := range r.OperationResults {
		if op.ETag == "" || op.RequestCharge <= 0 || op.ResourceBody != nil {
			t.Errorf("minimal result %+v", op)
		}
	}
	etag := r.OperationResults[0].ETag

	stale := azcore.ETag(`"00000000-0000-0000-0000-000000000000"`)
	b = c.NewTransactionalBatch(key("a"))
	b.CreateItem(doc("4", "a"), nil)
	b.DeleteItem("2", nil)
	b.ReplaceItem("1", doc("1", "a", "n", 2), &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &stale})
	b.CreateItem(doc("5", "a"), nil)
	code, ops, r = statuses(t, c, b)
	if code != http.StatusMultiStatus || fmt.Sprint(ops) != "[424 424 412 424]" || r.Success {
		t.Fatalf("failing batch: %d %v", code, ops)
	}
	for id, want := range map[string]int{"1": 0, "2": 0, "3": 0, "4": 404, "5": 404} {
		_, err := c.ReadItem(ctx, key("a"), id, nil)
		wantStatus(t, "after the failed batch, item "+id, err, want)
	}
	read, err := c.ReadItem(ctx, key("a"), "1", nil)
	if err != nil || read.ETag != etag {
		t.Errorf("item 1 has etag %s, want %s (%v)", read.ETag, etag, err)
	}

	for id, want := range map[string]string{"1": "[424 409]", "new": "[201 201]"} {
		b = c.NewTransactionalBatch(key("a"))
		b.CreateItem(doc("first-"+id, "a"), nil)
		b.CreateItem(doc(id, "a"), nil)
		if _, ops, _ = statuses(t, c, b); fmt.Sprint(ops) != want {
			t.Errorf("create of %s: %v, want %s", id, ops, want)
		}
	}
}

func TestBatchOperationsSeeEarlierOnes(t *testing.T) {
	_, c := start(t, nil)
	b := c.NewTransactionalBatch(key("a"))
	b.CreateItem(doc("1", "a", "n", 1), nil)
	b.ReplaceItem("1", doc("1", "a", "n", 2), nil)
	b.ReadItem("1", nil)
	b.DeleteItem("1", nil)
	b.CreateItem(doc("1", "a", "n", 3), nil)
	code, ops, r := statuses(t, c, b)
	if code != 200 || fmt.Sprint(ops) != "[201 200 200 204 201]" {
		t.Fatalf("batch: %d %v", code, ops)
	}
	var body struct {
		N int `json:"n"`
	}
	if err := json.Unmarshal(r.OperationResults[2].ResourceBody, &body); err != nil || body.N != 2 {
		t.Errorf("the read in the batch saw %s", r.OperationResults[2].ResourceBody)
	}
	read, err := c.ReadItem(t.Context(), key("a"), "1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(read.Value, &body); err != nil || body.N != 3 {
		t.Errorf("after the batch: %s", read.Value)
	}
}

func TestBatchLimits(t *testing.T) {
	_, c := start(t, nil)
	ctx := t.Context()
	b := c.NewTransactionalBatch(key("a"))
	for i := range 101 {
		b.CreateItem(doc(fmt.Sprint(i), "a"), nil)
	}
	_, err := c.ExecuteTransactionalBatch(ctx, b, nil)
	wantStatus(t, "101 operations", err, http.StatusBadRequest)

	b = c.NewTransactionalBatch(key("a"))
	for i := range 3 {
		b.CreateItem(doc(fmt.Sprint(i), "a", "x", fmt.Sprintf("%0800000d", i)), nil)
	}
	_, err = c.ExecuteTransactionalBatch(ctx, b, nil)
	wantStatus(t, "2.4 MB", err, http.StatusRequestEntityTooLarge)

	b = c.NewTransactionalBatch(key("a"))
	b.CreateItem(doc("1", "a"), nil)
	b.CreateItem(doc("2", "b"), nil)
	if code, ops, _ := statuses(t, c, b); code != 207 || fmt.Sprint(ops) != "[424 400]" {
		t.Errorf("another partition key: %d %v", code, ops)
	}

	for i := range 3 {
		if _, err := c.CreateItem(ctx, key("a"), doc(fmt.Sprint("big", i), "a", "x", fmt.Sprintf("%0800000d", i)), nil); err != nil {
			t.Fatal(err)
		}
	}
	b = c.NewTransactionalBatch(key("a"))
	for i := range 3 {
		b.ReadItem(fmt.Sprint("big", i), nil)
	}
	if code, ops, _ := statuses(t, c, b); code != 207 || fmt.Sprint(ops) != "[424 424 413]" {
		t.Errorf("too large a response: %d %v", code, ops)
	}
}
