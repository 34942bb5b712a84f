package document

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"time"

	"feedbox/application/relay"
)

// ClosingData is the stored form of relay.Closing.
type ClosingData struct {
	Event  string    `json:"event"`
	Reason string    `json:"reason"`
	Error  string    `json:"error,omitempty"`
	At     time.Time `json:"at"`
	Auto   bool      `json:"auto,omitempty"`
}

// IntentData is the stored form of relay.Intent.
type IntentData struct {
	Verb  relay.Verb `json:"verb"`
	Event string     `json:"event,omitempty"`
	By    string     `json:"by,omitempty"`
	Note  string     `json:"note,omitempty"`
	At    time.Time  `json:"at"`

	FromStore bool `json:"fromStore,omitempty"`
}

// PassedData is the stored form of relay.Progress. Earlier versions store only the sequence and
// the LSN, and mark only events as done that have both.
type PassedData struct {
	History  string    `json:"history,omitempty"`
	LSN      int64     `json:"lsn"`
	Ordinal  int64     `json:"ordinal,omitempty"`
	Sequence int64     `json:"sequence"`
	Event    string    `json:"event,omitempty"`
	At       time.Time `json:"at,omitzero"`
}

// GateData is the stored form of relay.Gate, without its key and version.
type GateData struct {
	Closing  ClosingData `json:"closing"`
	Passed   PassedData  `json:"passed,omitzero"`
	Events   int64       `json:"events"`
	Last     int64       `json:"last"`
	Sequence int64       `json:"sequence,omitempty"`
	Intent   *IntentData `json:"intent,omitempty"`
	Attempts int         `json:"attempts"`
	Error    string      `json:"error,omitempty"`
	TriedAt  time.Time   `json:"triedAt,omitzero"`
	Listed   string      `json:"listed,omitempty"`
}

// GateDataOf returns the stored form of g.
func GateDataOf(g relay.Gate) GateData {
	d := GateData{
		Closing: ClosingData(g.Closing), Passed: PassedData(g.Progress), Events: g.Events, Last: g.Arrivals, Sequence: g.Sequence,
		Intent: (*IntentData)(g.Intent), Attempts: g.Attempts, Error: Brief(g.Error), TriedAt: g.TriedAt, Listed: g.Listed,
	}
	d.Closing.Error = Brief(d.Closing.Error)
	return d
}

// briefBytes is enough for the cause of a failure. Gates and parked events share the limit of a
// document, or of a transaction, with an event that may need nearly all of it.
const briefBytes = 512

// Text returns a text that is only shown to operators as every store can keep it: PostgreSQL refuses the
// character 0, and Firestore bytes that are no UTF-8. An error may quote both.
func Text(text string) string {
	const unknown = "\uFFFD"
	return strings.ReplaceAll(strings.ToValidUTF8(text, unknown), "\x00", unknown)
}

// Brief returns the beginning of Text: 512 bytes at most.
func Brief(text string) string {
	text = Text(text)
	if len(text) <= briefBytes {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:briefBytes-len(more)], "") + more
}

// Gate returns the gate of key that was stored as d.
func (d *GateData) Gate(key, version string) relay.Gate {
	return relay.Gate{
		Key: key, Closing: relay.Closing(d.Closing), Progress: relay.Progress(d.Passed), Events: d.Events, Arrivals: d.Last, Sequence: d.Sequence,
		Intent: (*relay.Intent)(d.Intent), Attempts: d.Attempts, Error: d.Error, TriedAt: d.TriedAt, Listed: d.Listed, Version: version,
	}
}

// Compress compresses a parked document.
func Compress(raw []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(raw) // never fails in memory
	_ = w.Close()
	return b.Bytes()
}

// Decompress is the inverse of Compress.
func Decompress(raw []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	const limit = 16 << 20 // far above the size of any document
	return io.ReadAll(io.LimitReader(r, limit))
}
