package push

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/cloudevents"
)

// Mode is a content mode of the HTTP binding of CloudEvents.
type Mode string

const (
	// Structured sends an event with its attributes as one JSON object.
	Structured Mode = "structured"
	// Binary sends the data as the body, byte for byte, and the attributes as headers.
	Binary Mode = "binary"
	// Batch sends a JSON array of events of one key.
	Batch Mode = "batch"
)

// Event is a CloudEvent.
type Event = cloudevents.Event

// fromConsumer returns the CloudEvent of a received event. source is the default.
func fromConsumer(e *consumer.Event, source string) Event {
	if given, ok := e.Properties["cloudEvents_source"].(string); ok && source == "" {
		source = given
	}
	resubmission := e.Resubmission
	if e.WasParked() { // its receiver compares the sequence with that of the key, because it is in order
		resubmission = ""
	}
	return Event{
		ID: idOf(e), Source: cmp.Or(source, "/feedbox"), Type: cmp.Or(e.Action, "event"),
		Time: cloudevents.Time(e.CreatedAt), Key: e.Key, Sequence: e.Sequence, AggregateVersion: e.AggregateVersion, Replaced: e.Replaced, Resubmission: resubmission,
		Traceparent: e.Traceparent, Data: e.Body,
	}
}

// idOf returns the id of an event, the same for every delivery. An event without id and sequence is
// known by its content and by what the broker knows of it.
func idOf(e *consumer.Event) string {
	switch {
	case e.ID != "":
		return e.ID
	case e.Sequence != 0:
		return e.Key + "/" + strconv.FormatInt(e.Sequence, 10)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %d %d %s", e.Action, e.SequenceNumber, e.EnqueuedAt.UnixNano(), e.CreatedAt.UnixNano(), e.Body))
	return e.Key + "/" + hex.EncodeToString(sum[:16])
}

// encode returns the body and the headers of a request.
func encode(mode Mode, events []Event) (body []byte, header http.Header) {
	header = make(http.Header, 16)
	e := &events[0]
	if e.Traceparent != "" && escape(e.Traceparent) == e.Traceparent {
		header.Set("Traceparent", e.Traceparent)
	}
	switch mode {
	case Binary:
		dataType := cloudevents.TypeJSON
		if !json.Valid(e.Data) {
			dataType = cloudevents.TypeBytes
		}
		header.Set("Content-Type", dataType)
		e.Attributes("", func(name, value string) { header.Set("Ce-"+name, escape(value)) })
		return e.Data, header
	case Batch:
		header.Set("Content-Type", cloudevents.TypeBatch+"; charset=utf-8")
		body = append(body, '[')
		for i := range events {
			if i > 0 {
				body = append(body, ',')
			}
			body = events[i].AppendJSON(body)
		}
		return append(body, ']'), header
	default:
		header.Set("Content-Type", cloudevents.TypeEvent+"; charset=utf-8")
		return e.AppendJSON(make([]byte, 0, len(e.Data)+512)), header
	}
}

// escape encodes the value of a header as the HTTP binding says: everything but printable ASCII
// without space, quote and percent sign is percent-encoded.
func escape(value string) string {
	plain := func(c byte) bool { return c > ' ' && c < 0x7f && c != '"' && c != '%' }
	clean := true
	for i := range len(value) {
		clean = clean && plain(value[i])
	}
	if clean {
		return value
	}
	var b strings.Builder
	for i := range len(value) {
		if c := value[i]; plain(c) {
			b.WriteByte(c)
		} else {
			const digits = "0123456789ABCDEF"
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}
