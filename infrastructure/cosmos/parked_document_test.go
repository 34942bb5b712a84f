package cosmos

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzDecodeParked looks for panics, and for events that do not survive being stored
// again.
func FuzzDecodeParked(f *testing.F) {
	for _, seed := range []string{
		`{"id":"e1","partitionKey":"k","type":"parkedEvent","position":3,"document":{"id":"e1"}}`,
		`{"id":"$skipped-e1","partitionKey":"k","type":"skippedEvent","skipped":{"verb":"skip"},"document":{}}`,
		`{"id":"e","type":"skippedEvent","documentGzip":"H4sIAAAAAAAA/wAAAP//AQAA//8AAAAAAAAAAA=="}`,
		`{"documentGzip":"eA=="}`, `{"document":null}`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, _ = decodeGate(raw)
		e, _, err := decodeParked(raw)
		if err != nil {
			return
		}
		stored, err := newParkedDocument(&e).encode(e.Document)
		if err != nil {
			return // a time that JSON cannot hold, for example
		}
		again, _, err := decodeParked(stored)
		if err != nil {
			t.Fatalf("stored again: %v", err)
		}
		if !bytes.Equal(again.Document, e.Document) {
			t.Fatalf("document %q became %q", e.Document, again.Document)
		}
		again.Document, e.Document = nil, nil
		if diff := cmp.Diff(e, again); diff != "" {
			t.Fatalf("stored again (-want +got):\n%s", diff)
		}
	})
}
