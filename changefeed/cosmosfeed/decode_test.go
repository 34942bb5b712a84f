package cosmosfeed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"feedbox/changefeed"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// A page is refused even if documents before the error were readable.
func TestInvalidPageIsRefused(t *testing.T) {
	for _, body := range []string{
		``, `[]`, `{}`, `{"_rid":"r","_count":1}`, `{"Documents":5}`, `{"Documents":[{"a":1}`, `{"Documents":[{"a":1},{"a":`,
		`{"Documents":[{"a":1}]`, `{"Documents":[5]}`, `{"Documents":[{"a":1}],"_count"`,
	} {
		d := decoder{keys: keyPaths{paths: [][]string{{"a"}}}, filter: &filter{}, values: make([][]byte, 1)}
		if err := d.page([]byte(body)); !errors.Is(err, errNotAPage) {
			t.Errorf("%s: error %v, want %v", body, err, errNotAPage)
		}
	}
}

func TestInvalidPageOfVersionsIsRefused(t *testing.T) {
	for body, want := range map[string]string{
		`{"Documents":[{"a":1}]}`:             errNotAPage.Error(),
		`{"Documents":[{"current":{"a":1}}]}`: errNotAPage.Error(),
		`{"Documents":[{"current":5,"metadata":{"lsn":7,"operationType":"create"}}]}`:         errNotAPage.Error(),
		`{"Documents":[{"metadata":{"lsn":7,"operationType":"replace"}}]}`:                    errNotAPage.Error(),
		`{"Documents":[{"current":{"a":1},"metadata":{"lsn":7,"operationType":"truncate"}}]}`: "truncate",
	} {
		d := decoder{keys: keyPaths{paths: [][]string{{"a"}}}, filter: &filter{}, values: make([][]byte, 1), versions: true}
		if err := d.page([]byte(body)); err == nil || !strings.Contains(err.Error(), want) || len(d.items) > 0 {
			t.Errorf("%s: %d items, error %v, want one with %q", body, len(d.items), err, want)
		}
	}
}

// A page is refused, or its items are parts of it that are documents.
func FuzzPage(f *testing.F) {
	f.Add([]byte(`{"_rid":"r","Documents":[{"a":{"b":"x"},"_lsn":7,"_ts":3}],"_count":1}`), false)
	f.Add([]byte(`{"Documents":[{"current":{"a":1},"metadata":{"lsn":7,"crts":3,"operationType":"create"}},{"current":{},"previous":{"a":2},"metadata":{"lsn":8,"operationType":"delete"}}]}`), true)
	f.Fuzz(func(t *testing.T, body []byte, versions bool) {
		d := decoder{keys: keyPaths{paths: [][]string{{"a"}}}, filter: &filter{}, values: make([][]byte, 1), versions: versions}
		if err := d.page(body); err != nil || !json.Valid(body) {
			return // the scanner does not check all of JSON: the service wrote the page
		}
		for _, item := range d.items {
			var document map[string]json.RawMessage
			if err := json.Unmarshal(item.Raw, &document); err != nil || !bytes.Contains(body, item.Raw) {
				t.Errorf("the item %q is no document of the page: %v", item.Raw, err)
			}
		}
	})
}

// Retrying cannot help, so the error is permanent.
func TestContainerNeedsAPartitionKey(t *testing.T) {
	if _, err := newKeyPaths(azcosmos.PartitionKeyDefinition{Version: 2}); !errors.Is(err, changefeed.ErrPermanent) {
		t.Errorf("error %v, want one for good", err)
	}
}

// The key may be nested, and may have several parts.
func TestKeysAreFoundByTheirPaths(t *testing.T) {
	const body = `{"_rid":"r","Documents":[{"a":{"b":"x","c":1},"d":2,"_lsn":7,"_ts":3}],"_count":1}`
	for want, paths := range map[string][]string{
		`"x"`: {"/a/b"}, `2`: {"/d"}, `2,"x",`: {"/d", "/a/b"}, `"x",1,`: {"/a/b", "/a/c"}, ``: {"/a/e"},
	} {
		keys, err := newKeyPaths(azcosmos.PartitionKeyDefinition{Paths: paths, Version: 2})
		if err != nil {
			t.Fatal(err)
		}
		d := decoder{keys: keys, filter: &filter{}, values: make([][]byte, len(paths))}
		if err := d.page([]byte(body)); err != nil || len(d.items) != 1 {
			t.Fatalf("%d items, %v", len(d.items), err)
		}
		if got := d.items[0]; string(got.Key) != want || fmt.Sprint(got.LSN, got.Timestamp) != "7 3" {
			t.Errorf("paths %v: key %s, LSN %d, time %d; want %s", paths, got.Key, got.LSN, got.Timestamp, want)
		}
	}
}

// The key of the previous document is not reused.
func TestDocumentWithoutKeyHasNoKey(t *testing.T) {
	const body = `{"Documents":[{"a":1,"b":2},{"b":3},{"a":4}]}`
	keys, err := newKeyPaths(azcosmos.PartitionKeyDefinition{Paths: []string{"/a", "/b"}, Version: 2})
	if err != nil {
		t.Fatal(err)
	}
	d := decoder{keys: keys, filter: &filter{}, values: make([][]byte, 2)}
	if err := d.page([]byte(body)); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"1,2,", ",3,", "4,,"} {
		if got := string(d.items[i].Key); got != want {
			t.Errorf("document %d has the key %s, want %s", i, got, want)
		}
	}
}
