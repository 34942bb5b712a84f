package cloudevents_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"feedbox/infrastructure/consumer/cloudevents"
)

func batchOf(events ...cloudevents.Event) []byte {
	var parts [][]byte
	for i := range events {
		parts = append(parts, events[i].AppendJSON(nil))
	}
	return append(append([]byte("["), bytes.Join(parts, []byte(","))...), ']')
}

func TestBatchIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	want := []cloudevents.Event{
		{ID: "1", Source: "/a", Type: "Paid", Data: []byte(`{"a": [1, "\"}"]}`)},
		{
			ID: "ü\n\"", Source: "/a", Type: `\`, Subject: "s", Time: cloudevents.Time(time.Unix(1700000000, 5e6)), Key: "k", Sequence: 1 << 62, AggregateVersion: -2,
			LSN: 3, Replaced: 4, Resubmission: "r", Traceparent: "00-1", Data: []byte("\x00 no JSON"),
		},
		{ID: "3", Source: "/a", Type: "Paid", Data: []byte("null")},
	}
	body := batchOf(want...)
	got, err := cloudevents.ReadBatch(body, 3)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	if _, err := cloudevents.ReadBatch(body, 2); err == nil || !strings.Contains(err.Error(), "more than 2") {
		t.Errorf("above the limit: %v", err)
	}
	for range got { // an event does not change the next one
		got[0].Data = append(got[0].Data, "xxxx"...)
	}
	if again, err := cloudevents.ReadBatch(body, 3); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("after an append to the data: %+v, %v", again, err)
	}
}

func TestMalformedBatchIsRefused(t *testing.T) {
	t.Parallel()
	const event = `{"specversion":"1.0","id":"1","source":"/a","type":"Paid","data":{}}`
	for body, text := range map[string]string{
		``: "array", `{}`: "array", event: "array", `[]`: "event 1", `[null]`: "event 1", `[` + event: "after event 1", `[` + event + `,]`: "event 2",
		`[` + event + `]x`: "after event 1", `[` + event + "]\x00": "after event 1", `[` + event + event + `]`: "after event 1", `[{}]`: "CloudEvents 1.0",
		`[` + strings.Replace(event, "1.0", "2.0", 1) + `]`: "CloudEvents 1.0", `[` + strings.Replace(event, `"1"`, `""`, 1) + `]`: "id",
		`[` + strings.Replace(event, `"1"`, `1`, 1) + `]`: "id: not a string", `[` + strings.Replace(event, `{}`, `{`, 1) + `]`: "event 1",
		`[{"keysequence":"x"}]`: "keysequence", `[{"lsn":1.5}]`: "lsn", `[{"data_base64":"?"}]`: "data_base64", `[{"data_base64":1}]`: "data_base64",
		`[{"a":1,}]`: "event 1", `[{"a" 1}]`: "event 1", `[{1:1}]`: "event 1", `[{"a":tru}]`: "a", `[{"a":"`: "event 1", `[{"id":"\x"}]`: "id",
	} {
		if events, err := cloudevents.ReadBatch([]byte(body), 10); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %+v, %v; want an error with %q", body, events, err, text)
		}
	}
	spaced := " [ \n{ \"specversion\" : \"1.0\" , \"id\":\"1\", \"type\":\"Paid\", \"keysequence\": 7, \"subject\":null, \"other\":[{\"a\":\"]\"}], \"data\" : true } ]\r\n"
	events, err := cloudevents.ReadBatch([]byte(spaced), 10)
	if err != nil || len(events) != 1 || events[0].Sequence != 7 || string(events[0].Data) != "true" {
		t.Errorf("with white space: %+v, %v", events, err)
	}
}

// A batch of another program must neither stop a consumer nor be read in another way than by encoding/json.
func FuzzReadBatch(f *testing.F) {
	f.Add([]byte(`[{"specversion":"1.0","id":"1","type":"a","data":{"b":["\"",{}]}},{"specversion":"1.0","id":"2","type":"b","data_base64":"AA==","keysequence":"7"}]`))
	f.Add([]byte("[ {\"specversion\":\"1.0\",\"id\":\"\\u00e9\xff\",\"type\":\"a\",\"lsn\":-1,\"time\":null,\"x\":1e5} ]"))
	f.Add([]byte(`[{"data":{]}}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		const limit = 5
		events, err := cloudevents.ReadBatch(body, limit)
		if len(events) > limit || err == nil && len(events) == 0 {
			t.Fatalf("%d events, %v", len(events), err)
		}
		if !json.Valid(body) { // the data may be malformed, as that of a message that came alone
			return
		}
		if want, ok := reference(body, limit); ok != (err == nil) || ok && !reflect.DeepEqual(events, want) {
			t.Errorf("got %+v, %v\nwant %+v, %t", events, err, want, ok)
		}
	})
}

// reference reads valid JSON as a batch by encoding/json.
func reference(body []byte, limit int) (events []cloudevents.Event, ok bool) {
	d := json.NewDecoder(bytes.NewReader(body))
	if begin, _ := d.Token(); begin != json.Delim('[') {
		return nil, false
	}
	for d.More() {
		if begin, _ := d.Token(); begin != json.Delim('{') || len(events) == limit {
			return nil, false
		}
		var e cloudevents.Event
		var version string
		texts := map[string]*string{
			"specversion": &version, "id": &e.ID, "source": &e.Source, "type": &e.Type, "subject": &e.Subject, "time": &e.Time, "partitionkey": &e.Key,
			"resubmission": &e.Resubmission, "traceparent": &e.Traceparent,
		}
		numbers := map[string]*int64{"keysequence": &e.Sequence, "aggregateversion": &e.AggregateVersion, "lsn": &e.LSN, "replaced": &e.Replaced}
		for d.More() {
			token, _ := d.Token()
			name := token.(string)
			var raw json.RawMessage
			var err error
			_ = d.Decode(&raw) // valid
			switch text, number := texts[name], numbers[name]; {
			case name == "data":
				e.Data = raw
			case string(raw) == "null":
			case text != nil:
				err = json.Unmarshal(raw, text)
			case name == "data_base64":
				err = json.Unmarshal(raw, &e.Data)
				if raw[0] == '[' { // encoding/json reads an array of numbers as bytes, too
					return nil, false
				}
			case number != nil:
				digits := string(raw)
				if raw[0] == '"' {
					err = json.Unmarshal(raw, &digits)
				}
				if err == nil {
					*number, err = strconv.ParseInt(digits, 10, 64)
				}
			}
			if err != nil {
				return nil, false
			}
		}
		if _, _ = d.Token(); version != "1.0" || e.ID == "" || e.Type == "" {
			return nil, false
		}
		events = append(events, e)
	}
	return events, len(events) > 0
}

func FuzzBatchIsReadAsItWasWritten(f *testing.F) {
	f.Add("1", "Paid", "key", []byte(`{"a":1}`), int64(7))
	f.Add("\"<\u2028", `\`, "", []byte("\xff"), int64(-1))
	f.Add("1", "\x00", `"`, []byte(" 1 "), int64(0))
	f.Fuzz(func(t *testing.T, id, action, key string, data []byte, n int64) {
		if id == "" || action == "" || !utf8.ValidString(id) || !utf8.ValidString(action) || !utf8.ValidString(key) {
			t.Skip("not an event that is packed")
		}
		want := cloudevents.Event{ID: id, Source: "/a", Type: action, Key: key, Sequence: n, Data: data}
		body := batchOf(want, want)
		if !json.Valid(body) {
			t.Fatalf("%q is no JSON", body)
		}
		events, err := cloudevents.ReadBatch(body, 2)
		if err != nil || len(events) != 2 {
			t.Fatalf("%q: %+v, %v", body, events, err)
		}
		if json.Valid(data) {
			want.Data = bytes.TrimSpace(data)
		}
		for _, e := range events {
			if got := e.Data; !bytes.Equal(got, want.Data) {
				t.Errorf("data %q, want %q", got, want.Data)
			}
			if e.Data = want.Data; !reflect.DeepEqual(e, want) {
				t.Errorf("got %+v, want %+v", e, want)
			}
		}
	})
}
