package parked

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/tests/fuzzseed"
)

// The parked form of any document is valid JSON and gives back the same bytes. It is readable if
// possible.
func TestParkedDocumentKeepsTheEventsBytes(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		document string
		readable bool
	}{
		"as the service writes it": {`{"id":"e","data":{"text":"\u003cb\u003e é"}}`, true},
		"white space":              {`{ "id": "e" }`, false},
		"unescaped HTML":           {`{"id":"<b>"}`, false},
		"not UTF-8":                {"{\"id\":\"\xff\xfe\"}", false},
		"not JSON":                 {`{"id":`, false},
		"too large":                {`{"id":"` + strings.Repeat("x", compressFrom) + `"}`, false},
	} {
		e := relay.ParkedEvent{ID: "e", Key: "k", Document: []byte(one.document)}
		stored, err := newParkedDocument(&e).encode(e.Document)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !utf8.Valid(stored) || !json.Valid(stored) || len(stored) > 2_000_000 {
			t.Errorf("%s: the store would refuse %.80q", name, stored)
		}
		if got := bytes.Contains(stored, []byte(`"document":`)); got != one.readable {
			t.Errorf("%s: readable %t, want %t", name, got, one.readable)
		}
		again, _, err := decodeParked(stored)
		if err != nil || !bytes.Equal(again.Document, e.Document) {
			t.Errorf("%s: became %.80q, %v", name, again.Document, err)
		}
	}
}

// FuzzDecodeParked looks for panics, and for events that do not survive being stored
// again.
func FuzzDecodeParked(f *testing.F) {
	fuzzseed.Add(f)
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
