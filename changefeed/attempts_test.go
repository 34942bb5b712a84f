package changefeed

import (
	"fmt"
	"slices"
	"testing"
)

// The checkpoint's own LSN is included.
func TestAttemptsBeforeTheCheckpointAreDropped(t *testing.T) {
	all := []DocumentAttempts{{"7:a", 1}, {"8:b", 2}, {"9:c", 3}, {"10:d", 4}}
	if kept := prune(all, 8); !slices.Equal(kept, all[2:]) {
		t.Errorf("kept %v", kept)
	}
}

// The document that is redelivered last is dropped first.
func TestAttemptsAreBounded(t *testing.T) {
	var all []DocumentAttempts
	for lsn := range maxAttemptEntries + 1 {
		all, _ = addAttempt(all, fmt.Sprintf("%d:x", 200-lsn))
	}
	if len(all) != maxAttemptEntries || countOf(all, "200:x") != 0 || countOf(all, "199:x") != 1 {
		t.Errorf("%d entries, %d of the highest LSN", len(all), countOf(all, "200:x"))
	}
	if _, n := addAttempt(all, "150:x"); n != 2 {
		t.Errorf("%d attempts, want 2", n)
	}
}

// The id may be a number in another store, or absent.
func TestDocumentID(t *testing.T) {
	for raw, want := range map[string]string{`{"id":"a\"b"}`: `a"b`, `{"id":7}`: "7", `{"n":1}`: ""} {
		if got := documentName(&Item{LSN: 12, Raw: []byte(raw)}); got != "12:"+want {
			t.Errorf("%s: %q, want 12:%s", raw, got, want)
		}
	}
}
