package parked

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"feedbox/application/relay"
	"feedbox/infrastructure/store/document"
)

// Types of the documents in the container of parked events. None of them expires.
const (
	typeGate         = "gate"
	typeParkedEvent  = "parkedEvent"
	typeSkippedEvent = "skippedEvent"
)

// gateID is the id of the gate of each key.
const gateID = "$gate"

// gateDocument is the stored form of a relay.Gate. An open gate has no document.
type gateDocument struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Type         string `json:"type"`
	document.GateData
	ETag json.RawMessage `json:"_etag,omitempty"`
}

func encodeGate(g relay.Gate) ([]byte, error) {
	d := gateDocument{ID: gateID, PartitionKey: g.Key, Type: typeGate, GateData: document.GateDataOf(g)}
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode the gate of key %q: %w", g.Key, err)
	}
	return raw, nil
}

func decodeGate(raw []byte) (relay.Gate, error) {
	var d gateDocument
	err := json.Unmarshal(raw, &d)
	var version string
	if err == nil && d.ETag != nil {
		err = json.Unmarshal(d.ETag, &version)
	}
	if err != nil {
		return relay.Gate{}, fmt.Errorf("decode a gate: %w", err)
	}
	return d.Gate(d.PartitionKey, version), nil
}

// parkedDocument is the stored form of a relay.ParkedEvent. The event's document is stored as
// JSON, so that an operator can read and correct it. It is compressed if it would be too large
// or if the SDK would change its bytes.
type parkedDocument struct {
	ID           string               `json:"id"`
	PartitionKey string               `json:"partitionKey"`
	Type         string               `json:"type"`
	Position     int64                `json:"position"`
	Action       string               `json:"action,omitempty"`
	LSN          int64                `json:"lsn"`
	Sequence     int64                `json:"sequence"`
	Reason       string               `json:"reason"`
	Error        string               `json:"error,omitempty"`
	Attempts     int                  `json:"attempts"`
	ParkedAt     time.Time            `json:"parkedAt"`
	Skipped      *document.IntentData `json:"skipped,omitempty"`
	Compressed   []byte               `json:"documentGzip,omitempty"`
	Document     json.RawMessage      `json:"document,omitempty"`
}

// compressFrom is the size from which a document is compressed, because with the other members
// it might exceed the limit of 2 MB.
const compressFrom = 1_900_000

func skippedID(eventID string) string { return "$skipped-" + eventID }

func newParkedDocument(e *relay.ParkedEvent) parkedDocument {
	return parkedDocument{
		ID: e.ID, PartitionKey: e.Key, Type: typeParkedEvent, Position: e.Position, Action: e.Action, LSN: e.LSN,
		Sequence: e.Sequence, Reason: e.Reason, Error: e.Error, Attempts: e.Attempts, ParkedAt: e.ParkedAt,
	}
}

// encode returns the document with the bytes of the event's document in it.
func (d parkedDocument) encode(event []byte) ([]byte, error) {
	asIs := len(event) < compressFrom && keepsBytes(event)
	if !asIs {
		d.Compressed = document.Compress(event)
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode parked event %q: %w", d.ID, err)
	}
	if !asIs {
		return raw, nil
	}
	raw = append(raw[:len(raw)-1], `,"document":`...)
	return append(append(raw, event...), '}'), nil
}

// keepsBytes reports whether a transaction leaves the bytes of a document unchanged. azcosmos
// passes operations through json.Marshal, which removes white space and escapes some
// characters. The store refuses documents that are not UTF-8.
func keepsBytes(raw []byte) bool {
	sent, err := json.Marshal(json.RawMessage(raw))
	return err == nil && bytes.Equal(sent, raw) && utf8.Valid(raw)
}

func decodeParked(raw []byte) (relay.ParkedEvent, *relay.Intent, error) {
	var d parkedDocument
	if err := json.Unmarshal(raw, &d); err != nil {
		return relay.ParkedEvent{}, nil, fmt.Errorf("decode a parked event: %w", err)
	}
	raw = []byte(d.Document)
	if d.Document == nil {
		var err error
		if raw, err = document.Decompress(d.Compressed); err != nil {
			return relay.ParkedEvent{}, nil, fmt.Errorf("decode parked event %q: %w", d.ID, err)
		}
	}
	e := relay.ParkedEvent{
		ID: d.ID, Key: d.PartitionKey, Action: d.Action, Document: raw, LSN: d.LSN, Sequence: d.Sequence, Reason: d.Reason,
		Error: d.Error, Attempts: d.Attempts, ParkedAt: d.ParkedAt, Position: d.Position,
	}
	if d.Type == typeSkippedEvent {
		e.ID = strings.TrimPrefix(e.ID, skippedID(""))
	}
	return e, (*relay.Intent)(d.Skipped), nil
}
