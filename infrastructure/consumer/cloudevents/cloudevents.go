// Package cloudevents encodes events in the JSON format of CloudEvents 1.0, and batches of them in its
// batch format. Package push sends both over HTTP. Package rabbitmq packs several events into one
// message, and reads them again.
package cloudevents

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"
)

// Media types of a JSON object with one event, and of an array of events.
const (
	TypeEvent = "application/cloudevents+json"
	TypeBatch = "application/cloudevents-batch+json"
)

// Media types of the data of an event.
const (
	TypeJSON  = "application/json"
	TypeBytes = "application/octet-stream"
)

// version is the value of specversion.
const version = "1.0"

// Event is a CloudEvent. Attributes without a value are not encoded.
type Event struct {
	ID, Source, Type string // required by CloudEvents
	Subject          string
	Time             string // RFC 3339
	Key              string // partitionkey
	Sequence         int64  // keysequence: not the extension sequence, which counts the events of a source
	AggregateVersion int64
	LSN              int64  // of a document
	Replaced         int64  // see consumer.Event
	Resubmission     string // see consumer.Event
	Traceparent      string
	Data             []byte
}

// Time returns the attribute time of t, "" if t is zero.
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Attributes calls add for each attribute with a value. Numbers are strings, because a CloudEvents
// Integer has 32 bits. dataType is the media type of the data; "" omits it.
func (e *Event) Attributes(dataType string, add func(name, value string)) {
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	for _, one := range [...]struct{ name, value string }{
		{"specversion", version},
		{"id", e.ID},
		{"source", e.Source},
		{"type", e.Type},
		{"subject", e.Subject},
		{"time", e.Time},
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

// AppendJSON appends the event in the JSON format. Data that is JSON is not encoded again, but white space
// around it is omitted. Other data becomes base64.
func (e *Event) AppendJSON(to []byte) []byte {
	isJSON := json.Valid(e.Data)
	dataType := TypeJSON
	if !isJSON {
		dataType = TypeBytes
	}
	to = append(to, '{')
	e.Attributes(dataType, func(name, value string) {
		to = append(append(append(to, '"'), name...), `":`...)
		to = append(appendText(to, value), ',')
	})
	if isJSON {
		to = append(append(to, `"data":`...), bytes.TrimSpace(e.Data)...)
	} else {
		to = append(base64.StdEncoding.AppendEncode(append(to, `"data_base64":"`...), e.Data), '"')
	}
	return append(to, '}')
}

// appendText appends a JSON string. Most values need no escapes, and encoding/json would allocate for each.
func appendText(to []byte, value string) []byte {
	for i := range len(value) {
		if c := value[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			text, _ := json.Marshal(value) // a string has no error
			return append(to, text...)
		}
	}
	return append(append(append(to, '"'), value...), '"')
}
