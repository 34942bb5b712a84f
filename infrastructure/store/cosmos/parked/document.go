package parked

import (
	"bytes"
	"cmp"
	"encoding/base64"
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

const (
	gateID  = "$gate"  // of the gate of each key
	neverID = "$never" // no document has this id, see gateIsAbsent
)

// gateDocument is the stored form of a relay.Gate. An open gate has no document.
type gateDocument struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Type         string `json:"type"`
	document.GateData
	ETag json.RawMessage `json:"_etag,omitempty"`
}

func (s *Store) encodeGate(g relay.Gate) ([]byte, error) {
	d := gateDocument{ID: gateID, PartitionKey: s.prefix + g.Key, Type: s.kind(typeGate), GateData: document.GateDataOf(g)}
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
// JSON, so that an operator can read it. It is compressed if that makes a large one smaller, or
// if the SDK would change its bytes. Base64 makes a text that does not compress larger, so a large
// one whose bytes the SDK only escapes is stored escaped.
//
// So the parked document is at most store.ParkReserve larger than the event's document as the
// outbox sent it, and every event that the outbox accepts can be parked.
type parkedDocument struct {
	ID           string               `json:"id"`
	PartitionKey string               `json:"partitionKey"`
	Type         string               `json:"type"`
	EventID      string               `json:"eventId,omitempty"` // if ID is another one
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
	Escaped      bool                 `json:"documentEscaped,omitempty"` // by escapes of azcosmos
	Document     json.RawMessage      `json:"document,omitempty"`
}

// compressFrom is the size from which a document is stored in its smallest form, because with the
// other members it might exceed the limit of 2 MB.
const compressFrom = 1_900_000

// Prefixes of ids of documents, which an event's own id has not.
const (
	skippedPrefix = "$skipped-"
	hashedPrefix  = "$event-"
)

// maxID is the limit of the service for ids, in bytes.
const maxID = 1023

func hashedID(eventID string) string { return hashedPrefix + listingID(eventID) }

// parkedID returns the id of the document of a parked event: the event's own, or its hash if a document
// cannot have it, because the id of events may be another member than "id". The transactions of azcosmos
// do not escape ids.
func parkedID(eventID string) string {
	reserved := eventID == gateID || eventID == neverID || strings.HasPrefix(eventID, skippedPrefix) || strings.HasPrefix(eventID, hashedPrefix)
	unquoted := func(r rune) bool { return r < ' ' || r == '"' || r == '\\' }
	if reserved || len(eventID) > maxID || strings.ContainsFunc(eventID, unquoted) {
		return hashedID(eventID)
	}
	return eventID
}

func skippedID(eventID string) string {
	if len(eventID) > maxID-len(skippedPrefix) {
		return skippedPrefix + hashedID(eventID)
	}
	return skippedPrefix + parkedID(eventID)
}

func newParkedDocument(e *relay.ParkedEvent) parkedDocument {
	return parkedDocument{
		ID: parkedID(e.ID), EventID: e.ID, PartitionKey: e.Key, Type: typeParkedEvent, Position: e.Position, Action: document.Brief(e.Action), LSN: e.LSN,
		Sequence: e.Sequence, Reason: e.Reason, Error: document.Brief(e.Error), Attempts: e.Attempts, ParkedAt: e.ParkedAt,
	}
}

// encode returns the document with the bytes of the event's document in it.
func (d parkedDocument) encode(event []byte) ([]byte, error) {
	sent := embed(event)
	exact, large := sent != nil && bytes.Equal(sent, event), len(event) >= compressFrom
	if !exact || large {
		d.Compressed = document.Compress(event)
	}
	if large && sent != nil && len(sent) <= base64.StdEncoding.EncodedLen(len(d.Compressed)) {
		d.Compressed, d.Escaped = nil, !exact
	}
	id := d.EventID
	if strings.TrimPrefix(d.ID, skippedPrefix) == id {
		d.EventID = ""
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode parked event %q: %w", id, err)
	}
	if d.Compressed != nil {
		return raw, nil
	}
	raw = append(raw[:len(raw)-1], `,"document":`...)
	return append(append(raw, sent...), '}'), nil
}

// embed returns a document as azcosmos sends it inside a transaction: through json.Marshal, which
// removes white space and escapes <, >, & and two line separators. The result is nil if the bytes
// of the document cannot be restored from that. The store refuses documents that are not UTF-8.
func embed(raw []byte) []byte {
	sent, err := json.Marshal(json.RawMessage(raw))
	if err != nil || !utf8.Valid(raw) || !bytes.Equal(sent, raw) && !bytes.Equal(unescape(sent), raw) {
		return nil
	}
	return sent
}

// escapes are the escapes that json.Marshal adds to valid JSON.
var escapes = map[string]string{`\u003c`: "<", `\u003e`: ">", `\u0026`: "&", `\u2028`: "\u2028", `\u2029`: "\u2029"}

// unescape replaces the escapes of json.Marshal. The store may have replaced them before.
func unescape(raw []byte) []byte {
	const length = len(`\u003c`)
	text := make([]byte, 0, len(raw))
	for {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 || at+1 == len(raw) {
			return append(text, raw...)
		}
		text, raw = append(text, raw[:at]...), raw[at:]
		if plain, found := escapes[string(raw[:min(length, len(raw))])]; found {
			text, raw = append(text, plain...), raw[length:]
		} else {
			text, raw = append(text, raw[:2]...), raw[2:] // another escape, such as an escaped backslash
		}
	}
}

func decodeParked(raw []byte) (relay.ParkedEvent, *relay.Intent, error) {
	var d parkedDocument
	if err := json.Unmarshal(raw, &d); err != nil {
		return relay.ParkedEvent{}, nil, fmt.Errorf("decode a parked event: %w", err)
	}
	raw = []byte(d.Document)
	switch {
	case d.Escaped:
		raw = unescape(raw)
	case d.Document == nil:
		var err error
		if raw, err = document.Decompress(d.Compressed); err != nil {
			return relay.ParkedEvent{}, nil, fmt.Errorf("decode parked event %q: %w", d.ID, err)
		}
	}
	e := relay.ParkedEvent{
		ID: d.ID, Key: d.PartitionKey, Action: d.Action, Document: raw, LSN: d.LSN, Sequence: d.Sequence, Reason: d.Reason,
		Error: d.Error, Attempts: d.Attempts, ParkedAt: d.ParkedAt, Position: d.Position,
	}
	if strings.HasPrefix(d.Type, typeSkippedEvent) {
		e.ID = strings.TrimPrefix(e.ID, skippedPrefix)
	}
	e.ID = cmp.Or(d.EventID, e.ID)
	return e, (*relay.Intent)(d.Skipped), nil
}
