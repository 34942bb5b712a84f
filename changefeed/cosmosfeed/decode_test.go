package cosmosfeed

import (
	"errors"
	"fmt"
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
