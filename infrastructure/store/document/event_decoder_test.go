package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"feedbox/application/relay"
	"feedbox/tests/fuzzseed"
)

const sampleData = `{"name":{"firstName":"Jane","lastName":"Doe \"}{\\"},"contactId":"b5e2e7aa-4982-4735-9422-c39a7c4af5c2", "action":"ContactNameUpdatedEvent","id":"d6a5f4b2-84c3-4ac7-ae22-6f4025ba9ca0","createdAt":"2021-09-22T11:37:37.3022907+02:00","aggregateVersion":7,"sequence":12,"ordinal":3,"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}`

const sampleEvent = `{"id":"d6a5f4b2-84c3-4ac7-ae22-6f4025ba9ca0","partitionKey":"b5e2e7aa-4982-4735-9422-c39a7c4af5c2","type":"domainEvent","data": ` +
	sampleData + `,"ttl":864000,"_rid":"abc==","_etag":"\"0000\"","_lsn":991}`

func TestDecodeEvent(t *testing.T) {
	got, isEvent, err := EventDecoder{}.Decode([]byte(sampleEvent))
	if err != nil || !isEvent {
		t.Fatalf("event %v, error %v", isEvent, err)
	}
	want := relay.Message{
		ID: "d6a5f4b2-84c3-4ac7-ae22-6f4025ba9ca0", Key: "b5e2e7aa-4982-4735-9422-c39a7c4af5c2",
		Action: "ContactNameUpdatedEvent", Body: []byte(sampleData),
		LSN: 991, Sequence: 12, Ordinal: 3, AggregateVersion: 7, CreatedAt: "2021-09-22T11:37:37.3022907+02:00",
		Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

func TestDecodeTable(t *testing.T) {
	const (
		event   = `{"id":"e1","partitionKey":"k","type":"domainEvent","data":%s}`
		skipped = "skipped"
	)
	tests := []struct {
		name, raw string
		want      string // "id key action sequence version", "skipped", or part of the error
		reason    string // of the refusal
	}{
		{"members in another order", `{"data":{"sequence":3,"action":"A"},"type":"domainEvent","partitionKey":"k","id":"e1"}`, "e1 k A 3 0", ""},
		{"white space", " {\t\"id\" : \"e1\" , \"partitionKey\":\r\n\"k\",\"type\":\"domainEvent\",\"data\":{ \"action\" : \"A\" } } ", "e1 k A 0 0", ""},
		{"escapes", `{"\u0069d":"e\u0031","partitionKey":"k\"\\","type":"domainEvent","data":{"acti\u006fn":"\u00c4"}}`, `e1 k"\ Ä 0 0`, ""},
		{"nested members are ignored", fmt.Sprintf(event, `{"contact":{"action":"X","sequence":9},"action":"A","list":[{"sequence":8}]}`), "e1 k A 0 0", ""},
		{"null counts as absent", fmt.Sprintf(event, `{"action":"A","sequence":null,"aggregateVersion":null,"traceparent":null}`), "e1 k A 0 0", ""},
		{"contact", `{"id":"k","partitionKey":"k","type":"contact","data":{"action":"A"},"ttl":-1}`, skipped, ""},
		{"contact, type last", `{"id":"k","partitionKey":"k","data":{"action":"A"},"type":"contact"}`, skipped, ""},
		{"no type", `{"id":"k","partitionKey":"k","data":{"action":"A"}}`, skipped, ""},
		{"type is no string", `{"id":"k","type":{"a":[1]},"partitionKey":"k"}`, skipped, ""},
		{"empty object", `{}`, skipped, ""},
		{"no action", fmt.Sprintf(event, `{"sequence":1}`), "event e1: no data.action", "invalid_event"},
		{"empty data", fmt.Sprintf(event, `{}`), "no data.action", "invalid_event"},
		{"empty action", fmt.Sprintf(event, `{"action":""}`), "no data.action", "invalid_event"},
		{"action is no string", fmt.Sprintf(event, `{"action":1}`), "data.action is not a string", "invalid_event"},
		{"data is no object", fmt.Sprintf(event, `"text"`), "event e1: no data", "invalid_event"},
		{"no data", `{"id":"e1","partitionKey":"k","type":"domainEvent"}`, "event e1: no data", "invalid_event"},
		{"nothing at all", `{"type":"domainEvent"}`, "event without id: no id, no partitionKey, no data", "invalid_event"},
		{"partition key is no string", `{"id":"e1","partitionKey":7,"type":"domainEvent","data":{"action":"A"}}`, "partitionKey is not a string, no partitionKey", "invalid_event"},
		{"sequence is a string", fmt.Sprintf(event, `{"action":"A","sequence":"1"}`), "data.sequence is not a positive whole number", "invalid_event"},
		{"sequence is zero", fmt.Sprintf(event, `{"action":"A","sequence":0}`), "data.sequence is not", "invalid_event"},
		{"version is a fraction", fmt.Sprintf(event, `{"action":"A","aggregateVersion":1.5}`), "data.aggregateVersion is not", "invalid_event"},
		{"version is huge", fmt.Sprintf(event, `{"action":"A","aggregateVersion":9223372036854775808}`), "data.aggregateVersion is not", "invalid_event"},
		{"version is an object", fmt.Sprintf(event, `{"action":"A","aggregateVersion":{"a":1}}`), "data.aggregateVersion is not", "invalid_event"},
		{"invalid UTF-8", fmt.Sprintf(event, "{\"action\":\"A\",\"note\":\"\xff\"}"), "not valid UTF-8", "invalid_event"},
		{"no object", `[1,2]`, "is not a JSON object", "invalid_document"},
		{"nothing", ``, "is not a JSON object", "invalid_document"},
		{"cut off", sampleEvent[:len(sampleEvent)-40], "ends inside", "invalid_document"},
		{"no colon", `{"id" "e1"}`, "is not valid JSON", "invalid_document"},
		{"no comma", `{"id":"e1" "type":"domainEvent"}`, "is not valid JSON", "invalid_document"},
		{"bad escape", `{"id":"\x"}`, "is not valid JSON", "invalid_document"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, isEvent, err := EventDecoder{}.Decode([]byte(tt.raw))
			switch {
			case tt.reason != "":
				if err == nil || !strings.Contains(err.Error(), tt.want) || relay.ReasonOf(err) != tt.reason || relay.ClassOf(err) != relay.Refused {
					t.Errorf("error %v, want refused %s: %s", err, tt.reason, tt.want)
				}
			case err != nil:
				t.Errorf("error %v", err)
			case tt.want == skipped:
				if isEvent {
					t.Errorf("took %+v for an event", m)
				}
			default:
				if got := fmt.Sprintf("%s %s %s %d %d", m.ID, m.Key, m.Action, m.Sequence, m.AggregateVersion); got != tt.want {
					t.Errorf("decoded %s, want %s", got, tt.want)
				}
			}
		})
	}
}

// A foreign event may use the name of the ordinal for something else, and is not refused.
func TestOrdinalIsAPositiveWholeNumberOrAbsent(t *testing.T) {
	for value, want := range map[string]int64{
		`1`: 1, `9223372036854775807`: 9223372036854775807, `0`: 0, `-1`: 0, `1.5`: 0, `9223372036854775808`: 0, `"1"`: 0, `null`: 0, `{"a":[1]}`: 0, `true`: 0,
	} {
		m, isEvent, err := EventDecoder{}.Decode([]byte(`{"id":"e1","partitionKey":"k","type":"domainEvent","data":{"action":"A","ordinal":` + value + `,"sequence":5}}`))
		if err != nil || !isEvent || m.Ordinal != want || m.Sequence != 5 {
			t.Errorf("ordinal %s: message %+v, event %v, error %v; want the ordinal %d", value, m, isEvent, err, want)
		}
	}
	decoder, err := NewEventDecoder(EventContract{Ordinal: "/place"})
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := decoder.Decode([]byte(`{"id":"e1","place":2,"partitionKey":"k","type":"domainEvent","data":{"action":"A","ordinal":7}}`))
	if err != nil || m.Ordinal != 2 {
		t.Errorf("of the document: message %+v, error %v", m, err)
	}
}

func TestDecodeAggregateReturnsItsLastSequence(t *testing.T) {
	m, isEvent, err := EventDecoder{}.Decode([]byte(`{"id":"k","partitionKey":"k","type":"contact","data":{"name":{},"version":3,"sequence":5},"ttl":-1}`))
	if want := (relay.Message{Key: "k", Sequence: 5}); err != nil || isEvent || !cmp.Equal(m, want) {
		t.Errorf("message %+v, event %v, error %v; want %+v", m, isEvent, err, want)
	}
}

func TestDecodeBadEventKeepsItsKey(t *testing.T) {
	m, _, err := EventDecoder{}.Decode([]byte(`{"id":"e1","partitionKey":"k","type":"domainEvent","data":{"action":7}}`))
	if err == nil || m.Key != "k" || m.ID != "e1" {
		t.Errorf("message %+v, error %v; want id and key with the error", m, err)
	}
}

func TestDecodeDeepNesting(t *testing.T) {
	deep := strings.Repeat(`{"a":[`, 200_000) + strings.Repeat(`]}`, 200_000)
	raw := `{"id":"e1","partitionKey":"k","type":"domainEvent","data":{"x":` + deep + `,"action":"A"}}`
	if m, isEvent, err := (EventDecoder{}).Decode([]byte(raw)); err != nil || !isEvent || m.Action != "A" {
		t.Errorf("event %v, error %v", isEvent, err)
	}
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	raw := []byte(sampleEvent)
	if n := testing.AllocsPerRun(100, func() { _, _, _ = EventDecoder{}.Decode(raw) }); n > 0 {
		t.Errorf("%v allocations an event, want none", n)
	}
}

// FuzzDecode compares the decoder with encoding/json on valid JSON, and looks for
// panics on anything else.
func FuzzDecode(f *testing.F) {
	fuzzseed.Add(f)
	for _, seed := range []string{
		sampleEvent, `{"id":"k","type":"contact"}`, `{}`, `[`, `{"id":"\ud800","type":"domainEvent"}`,
		`{"type":"domainEvent","id":"a","partitionKey":"b","data":{"action":"\\\"","sequence":-1}}`,
		`{"type":"domainEvent","id":"a","partitionKey":"b","data":{"action":"x","sequence":1e3,"aggregateVersion":null}}`,
		`{"type":"domainEvent","id":"a","partitionKey":"b","data":{"action":"x","ordinal":2}}`,
		`{"type":"domainEvent","id":"a","partitionKey":"b","data":{"ordinal":-1,"action":"x"},"ordinal":3}`,
		`{"type":"domainEvent","id":"a","partitionKey":"b","data":{"ordinal":"first","action":"x"}}`,
		"{\"type\":\"domainEvent\",\"id\":\"a\xff\",\"partitionKey\":\"b\",\"data\":{\"action\":\"x\"}}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, isEvent, err := EventDecoder{}.Decode(raw)
		if err != nil && relay.ClassOf(err) != relay.Refused {
			t.Fatalf("error %v is not a refusal", err)
		}
		if !json.Valid(raw) {
			return
		}
		want, wantEvent, ok, fair := referenceDecode(raw)
		if !fair {
			return
		}
		if (err == nil) != ok || (ok && isEvent != wantEvent) {
			t.Fatalf("event %v, error %v; reference: event %v, usable %v", isEvent, err, wantEvent, ok)
		}
		if ok && wantEvent {
			if diff := cmp.Diff(want, m); diff != "" {
				t.Fatalf("message (-reference +got):\n%s", diff)
			}
		}
	})
}

// referenceDecode is Decode by encoding/json. fair is false for input with repeated members, of
// which encoding/json uses the last.
func referenceDecode(raw []byte) (m relay.Message, isEvent, ok, fair bool) {
	doc, members := referenceObject(raw)
	if doc == nil {
		return m, false, false, true
	}
	data, dataMembers := referenceObject(doc["data"])
	if members != len(doc) || dataMembers != len(data) {
		return m, false, false, false
	}
	str := func(v json.RawMessage) string {
		var s string
		if json.Unmarshal(v, &s) != nil {
			return ""
		}
		return s
	}
	whole := func(v json.RawMessage) (int64, bool) {
		if v == nil || string(v) == "null" {
			return 0, true
		}
		var n int64
		err := json.Unmarshal(v, &n)
		return n, err == nil && n >= 1
	}
	if str(doc["type"]) != TypeEvent {
		return m, false, true, true
	}
	m = relay.Message{
		ID: str(doc["id"]), Key: str(doc["partitionKey"]), Action: str(data["action"]), Body: bytes.TrimSpace(doc["data"]),
		CreatedAt: str(data["createdAt"]), Traceparent: str(data["traceparent"]),
	}
	_ = json.Unmarshal(doc["_lsn"], &m.LSN)
	m.Ordinal, _ = whole(data["ordinal"])
	m.Ordinal = max(m.Ordinal, 0)
	var sequenceOK, versionOK bool
	m.Sequence, sequenceOK = whole(data["sequence"])
	m.AggregateVersion, versionOK = whole(data["aggregateVersion"])
	ok = sequenceOK && versionOK && m.ID != "" && m.Key != "" && m.Action != "" && data != nil && utf8.Valid(raw)
	return m, true, ok, true
}

// referenceObject returns the members of a JSON object and their number in the text.
func referenceObject(raw []byte) (map[string]json.RawMessage, int) {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || object == nil {
		return nil, 0
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	_, _ = dec.Token()
	n := 0
	for dec.More() {
		_, nameErr := dec.Token()
		var v json.RawMessage
		if err := errors.Join(nameErr, dec.Decode(&v)); err != nil {
			break
		}
		n++
	}
	return object, n
}

func BenchmarkDecode(b *testing.B) {
	pad := strings.Repeat("x", 512-len(sampleData)+40)
	event := []byte(strings.Replace(sampleEvent, `"lastName":"Doe`, `"lastName":"`+pad+`Doe`, 1))
	contact := []byte(`{"id":"b5e2e7aa-4982-4735-9422-c39a7c4af5c2","partitionKey":"b5e2e7aa-4982-4735-9422-c39a7c4af5c2","type":"contact","data":{"name":{"firstName":"John","lastName":"Doe"}},"ttl":-1}`)
	for name, raw := range map[string][]byte{"event": event, "contact": contact} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, _, err := (EventDecoder{}).Decode(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
