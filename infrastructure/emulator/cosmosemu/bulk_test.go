package cosmosemu_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"strings"
	"testing"

	"feedbox/infrastructure/emulator/cosmosemu"
)

var bulkHeaders = map[string]string{
	"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "false", "x-ms-cosmos-batch-continue-on-error": "true",
	"x-ms-documentdb-partitionkeyrangeid": "0",
}

// sendBulk sends a bulk and returns the status of the reply and of each operation.
func sendBulk(t *testing.T, srv *cosmosemu.Server, headers map[string]string, operations ...string) (int, []int) {
	t.Helper()
	r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", "["+strings.Join(operations, ",")+"]", headers)
	var results []struct{ StatusCode, SubStatusCode int }
	_ = json.Unmarshal([]byte(r.Body), &results) // fails for an error, whose body is an object
	var out []int
	for _, one := range results {
		out = append(out, one.StatusCode+one.SubStatusCode)
	}
	return r.StatusCode, out
}

func TestBulkOperationsAreIndependent(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "there", "a")
	code, ops := sendBulk(t, srv, bulkHeaders,
		`{"operationType":"Create","partitionKey":"[\"a\"]","resourceBody":{"id":"1","pk":"a"}}`,
		`{"operationType":"Create","partitionKey":"[\"a\"]","resourceBody":{"id":"there","pk":"a"}}`,
		`{"operationType":"Upsert","partitionKey":"[\"b\"]","resourceBody":{"id":"2","pk":"b"}}`,
		`{"operationType":"Read","partitionKey":"[\"b\"]","id":"none"}`,
		`{"operationType":"Create","partitionKey":"[\"b\"]","resourceBody":{"id":"3","pk":"a"}}`,
		`{"operationType":"Create","resourceBody":{"id":"3","pk":"a"}}`,
		`{"operationType":"Delete","partitionKey":"[\"a\"]","id":"there"}`)
	if code != 207 || fmt.Sprint(ops) != "[201 409 201 404 1401 400 204]" {
		t.Errorf("%d %v", code, ops)
	}
	if items, _ := srv.Items("db", "c"); len(items) != 2 {
		t.Errorf("%d items", len(items))
	}
}

func TestBulkStopsAtErrorByDefault(t *testing.T) {
	srv, _ := start(t, nil)
	headers := map[string]string{}
	for name, value := range bulkHeaders {
		headers[name] = value
	}
	headers["x-ms-cosmos-batch-continue-on-error"] = "False"
	code, ops := sendBulk(t, srv, headers,
		`{"operationType":"Create","partitionKey":"[\"a\"]","resourceBody":{"id":"1","pk":"a"}}`,
		`{"operationType":"Read","partitionKey":"[\"a\"]","id":"none"}`,
		`{"operationType":"Create","partitionKey":"[\"a\"]","resourceBody":{"id":"2","pk":"a"}}`)
	if code != 207 || fmt.Sprint(ops) != "[201 404 424]" {
		t.Errorf("%d %v", code, ops)
	}
}

// After a split the client must send its operations again, to the children.
func TestBulkOnSplitRangeIsGone(t *testing.T) {
	srv, _ := start(t, nil)
	if err := srv.Split("db", "c", "0"); err != nil {
		t.Fatal(err)
	}
	one := `{"operationType":"Upsert","partitionKey":"[\"a\"]","resourceBody":{"id":"1","pk":"a"}}`
	if code, _ := sendBulk(t, srv, bulkHeaders, one); code != http.StatusGone {
		t.Errorf("the parent range answers %d", code)
	}
	var codes []int
	for _, id := range []string{"1", "2"} {
		headers := map[string]string{}
		for name, value := range bulkHeaders {
			headers[name] = value
		}
		headers["x-ms-documentdb-partitionkeyrangeid"] = id
		_, ops := sendBulk(t, srv, headers, one)
		codes = append(codes, ops...)
	}
	if s := fmt.Sprint(codes); s != "[201 1412]" && s != "[1412 201]" {
		t.Errorf("the children answer %s", s)
	}
}

// A batch in HybridRow, as the .NET SDK sends it, gets its results in HybridRow.
func TestBatchInRows(t *testing.T) {
	srv, _ := start(t, nil)
	// Create one item, as Microsoft.Azure.Cosmos 3.64.0 writes it.
	body := string(rowStream(t, `{"id":"1","pk":"a"}`))
	r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", body, map[string]string{
		"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True", "x-ms-documentdb-partitionkey": `["a"]`,
	})
	if r.StatusCode != http.StatusOK || !strings.HasPrefix(r.Body, "\x81\xf0\xd8\xff\x7f") || strings.Count(r.Body, `"id":"1"`) != 1 {
		t.Errorf("%d %q", r.StatusCode, r.Body)
	}
	r = send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", body[:len(body)-1], map[string]string{
		"x-ms-cosmos-is-batch-request": "True", "x-ms-cosmos-batch-atomic": "True", "x-ms-documentdb-partitionkey": `["a"]`,
	})
	if r.StatusCode != http.StatusBadRequest {
		t.Errorf("a stream that is cut off: %d %q", r.StatusCode, r.Body)
	}
}

// rowStream returns a request of one create without a partition key of its own.
func rowStream(t *testing.T, item string) []byte {
	t.Helper()
	row := append([]byte("\x81\x70\x54\xe1\x7f\x43\x00\x00\x00\x00\x02\x00\x00\x00"), byte(len(item)))
	row = append(row, item...)
	out := []byte("\x81\xf0\xd8\xff\x7f\x01\x0a\x00\x00\x00\x81\xf1\xd8\xff\x7f")
	out = binary.LittleEndian.AppendUint32(out, uint32(len(row)))
	out = binary.LittleEndian.AppendUint32(out, crc32.ChecksumIEEE(row))
	return append(out, row...)
}

// An id with a backslash cannot be created, an id with a slash cannot be read, and all other ids
// work.
func TestItemIDs(t *testing.T) {
	srv, c := start(t, nil)
	for id, want := range map[string][2]int{"a\\b": {400, 404}, "a/b": {201, 404}, "a?b": {201, 0}, "a\tb": {201, 0}, "a\nb": {201, 0}, "a\rb": {201, 0}} {
		body, err := json.Marshal(map[string]string{"id": id, "pk": "a"})
		if err != nil {
			t.Fatal(err)
		}
		r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", string(body), map[string]string{"x-ms-documentdb-partitionkey": `["a"]`})
		if r.StatusCode != want[0] {
			t.Errorf("create %q: %d, want %d", id, r.StatusCode, want[0])
		}
		_, err = c.ReadItem(t.Context(), key("a"), id, nil)
		if got := status(err); got != want[1] {
			t.Errorf("read %q: %d, want %d", id, got, want[1])
		}
	}
}
