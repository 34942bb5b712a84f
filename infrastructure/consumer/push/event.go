package push

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"feedbox/infrastructure/consumer"
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

// Event is a CloudEvent. Attributes without a value are not sent.
type Event struct {
	ID, Source, Type string // required by CloudEvents
	Subject          string
	Time             time.Time
	Key              string // partitionkey
	Sequence         int64  // keysequence: not the extension sequence, which counts the events of a source
	AggregateVersion int64
	LSN              int64  // of a document
	Replaced         int64  // see consumer.Event
	Resubmission     string // see consumer.Event
	Traceparent      string
	Data             []byte
}

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
		Time: e.CreatedAt, Key: e.Key, Sequence: e.Sequence, AggregateVersion: e.AggregateVersion, Replaced: e.Replaced, Resubmission: resubmission,
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

// attributes calls add for each attribute with a value. Numbers are strings, because a CloudEvents
// Integer has 32 bits.
func (e *Event) attributes(dataType string, add func(name, value string)) {
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	at := ""
	if !e.Time.IsZero() {
		at = e.Time.UTC().Format(time.RFC3339Nano)
	}
	for _, one := range [...]struct{ name, value string }{
		{"specversion", "1.0"},
		{"id", e.ID},
		{"source", e.Source},
		{"type", e.Type},
		{"subject", e.Subject},
		{"time", at},
		{"datacontenttype", dataType},
		{"partitionkey", e.Key},
		{"keysequence", number(e.Sequence)},
		{"aggregateversion", number(e.AggregateVersion)},
		{"lsn", number(e.LSN)},
		{"replaced", number(e.Replaced)},
		{"resubmission", e.Resubmission},
		{"traceparent", e.Traceparent},
	} {
		if one.value != "" {
			add(one.name, one.value)
		}
	}
}

const (
	typeJSON  = "application/json"
	typeBytes = "application/octet-stream"
)

// encode returns the body and the headers of a request.
func encode(mode Mode, events []Event) (body []byte, header http.Header) {
	header = make(http.Header, 16)
	e := &events[0]
	if e.Traceparent != "" && escape(e.Traceparent) == e.Traceparent {
		header.Set("Traceparent", e.Traceparent)
	}
	switch mode {
	case Binary:
		dataType := typeJSON
		if !json.Valid(e.Data) {
			dataType = typeBytes
		}
		header.Set("Content-Type", dataType)
		e.attributes("", func(name, value string) { header.Set("Ce-"+name, escape(value)) })
		return e.Data, header
	case Batch:
		header.Set("Content-Type", "application/cloudevents-batch+json; charset=utf-8")
		body = append(body, '[')
		for i := range events {
			if i > 0 {
				body = append(body, ',')
			}
			body = events[i].appendJSON(body)
		}
		return append(body, ']'), header
	default:
		header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
		return e.appendJSON(make([]byte, 0, len(e.Data)+512)), header
	}
}

// appendJSON appends the event in the JSON format. The data is not encoded again.
func (e *Event) appendJSON(to []byte) []byte {
	isJSON := json.Valid(e.Data)
	dataType := typeJSON
	if !isJSON {
		dataType = typeBytes
	}
	to = append(to, '{')
	e.attributes(dataType, func(name, value string) {
		text, _ := json.Marshal(value) // a string has no error
		to = append(append(append(append(append(to, '"'), name...), `":`...), text...), ',')
	})
	if isJSON {
		to = append(append(to, `"data":`...), bytes.TrimSpace(e.Data)...)
	} else {
		to = append(base64.StdEncoding.AppendEncode(append(to, `"data_base64":"`...), e.Data), '"')
	}
	return append(to, '}')
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
