package parked

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/infrastructure/store/document"
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
		"does not compress":        {`{"id":"` + noise(2_050_000, "") + `"}`, true},
		"does not compress, HTML":  {`{"id":"` + noise(2_050_000, `<>&`) + `"}`, true},
		"separators, a backslash":  {`{"id":"` + noise(2_050_000, "\u2028\u2029") + `\\u003c"}`, true},
		"both forms of HTML":       {`{"id":"<\u003c` + noise(1_910_000, "") + `"}`, false},
	} {
		e := relay.ParkedEvent{ID: "e", Key: "k", Document: []byte(one.document)}
		stored, err := newParkedDocument(&e).encode(e.Document)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !utf8.Valid(stored) || !json.Valid(stored) || len(stored) > 2<<20-1000 {
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

// The gate has one of these ids, and the question for it deletes the other one.
func TestNoEventIsParkedUnderAReservedID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{gateID, neverID} {
		d := newParkedDocument(&relay.ParkedEvent{ID: id, Key: "k"})
		if d.ID == gateID || d.ID == neverID || d.EventID != id {
			t.Errorf("%s is parked as %s, its own id is %s", id, d.ID, d.EventID)
		}
	}
}

// noise returns n bytes of a JSON string that compress badly, some of them with the characters of
// rare.
func noise(n int, rare string) string {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, 0, n)
	for len(b) < n-len(rare) {
		if c := byte(' ' + 1 + rng.IntN(94)); !strings.ContainsRune(`"\<>&`, rune(c)) {
			b = append(b, c)
		}
	}
	return string(b) + rare
}

// FuzzUnescape compares unescape with json.Marshal on strings of JSON.
func FuzzUnescape(f *testing.F) {
	fuzzseed.Add(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if text := unescape(raw); len(text) > len(raw) {
			t.Fatalf("%q became %q", raw, text)
		}
		sent := embed(raw)
		if sent != nil && !bytes.Equal(sent, raw) && !bytes.Equal(unescape(sent), raw) {
			t.Fatalf("%q became %q", raw, unescape(sent))
		}
		if again := unescape(raw); sent != nil && !bytes.Contains(raw, []byte(`\u`)) && !bytes.Equal(again, raw) {
			t.Fatalf("%q without such an escape became %q", raw, again)
		}
	})
}

// FuzzDecodeParked looks for panics, and for events that do not survive being stored
// again.
func FuzzDecodeParked(f *testing.F) {
	fuzzseed.Add(f)
	for _, seed := range []string{
		`{"id":"e1","partitionKey":"k","type":"parkedEvent","position":3,"document":{"id":"e1"}}`,
		`{"id":"$skipped-e1","partitionKey":"k","type":"skippedEvent","skipped":{"verb":"skip"},"document":{}}`,
		`{"id":"e","type":"skippedEvent","documentGzip":"H4sIAAAAAAAA/wAAAP//AQAA//8AAAAAAAAAAA=="}`,
		`{"documentGzip":"eA=="}`, `{"document":null}`, `[]`, `{"id":"e1","document":{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, _ = decodeGate(raw)
		e, _, err := decodeParked(raw)
		if err == nil && !json.Valid(raw) {
			t.Fatalf("%q is no JSON, and became %+v", raw, e)
		}
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
		e.Error, e.Action = document.Brief(e.Error), document.Brief(e.Action)
		if diff := cmp.Diff(e, again); diff != "" {
			t.Fatalf("stored again (-want +got):\n%s", diff)
		}
	})
}
