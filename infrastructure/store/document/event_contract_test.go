package document

import (
	"fmt"
	"strings"
	"testing"

	"feedbox/application/relay"
)

// The members of a message are found by the contract, in the body and in the document.
func TestOtherContracts(t *testing.T) {
	t.Parallel()
	beside := EventContract{
		Type: "kind", Types: []string{"event"}, Key: "pk", Body: "payload", Subject: "/eventType", Sequence: "/n", Version: "v", CreatedAt: "/at",
	}
	typed := EventContract{Type: "type", Types: []string{"OrderPlaced", "OrderPaid"}, Key: "pk", Body: "payload", Subject: "/type", Sequence: "n"}
	whole := EventContract{Type: "type", Types: []string{"OrderPlaced"}, Key: "pk", Body: WholeDocument, Subject: "type", Sequence: "/n"}
	for name, tt := range map[string]struct {
		contract  EventContract
		raw, want string // "id key action sequence version at body", or part of the error
	}{
		"beside the body":                 {beside, `{"id":"e","pk":"k","kind":"event","eventType":"A","n":3,"at":"now","payload":{"v":2,"n":9,"eventType":"X"}}`, `e k A 3 2 now {"v":2,"n":9,"eventType":"X"}`},
		"the body first":                  {beside, `{"payload":{},"n":1,"eventType":"A","kind":"event","pk":"k","id":"e"}`, `e k A 1 0  {}`},
		"a member without a name":         {beside, `{"":7,"id":"e","pk":"k","kind":"event","eventType":"A","payload":{"":8}}`, `e k A 0 0  {"":8}`},
		"the state of an aggregate":       {beside, `{"id":"k","pk":"k","kind":"order","n":3,"payload":{"n":7}}`, ` k  3 0  `},
		"a state whose key is no string":  {beside, `{"id":"k","pk":1,"kind":"order","n":3}`, `   3 0  `},
		"another document":                {beside, `{"id":"k","pk":"k","kind":"order","payload":{"n":7}}`, `   0 0  `},
		"no subject beside":               {beside, `{"id":"e","pk":"k","kind":"event","payload":{"eventType":"X"}}`, `event e: no eventType`},
		"no subject and no body":          {beside, `{"id":"e","pk":"k","kind":"event"}`, `event e: no payload, no eventType`},
		"a subject that is no string":     {beside, `{"id":"e","pk":"k","kind":"event","eventType":1,"payload":{}}`, `eventType is not a string`},
		"a sequence beside that is none":  {beside, `{"id":"e","pk":"k","kind":"event","eventType":"A","n":"1","payload":{}}`, `: n is not a positive whole number`},
		"a version in the body is none":   {beside, `{"id":"e","pk":"k","kind":"event","eventType":"A","payload":{"v":0}}`, `payload.v is not a positive whole number`},
		"the type is the subject":         {typed, `{"id":"e","pk":"k","type":"OrderPaid","payload":{"n":4,"type":"X"}}`, `e k OrderPaid 4 0  {"n":4,"type":"X"}`},
		"another type":                    {typed, `{"id":"k","pk":"k","type":"order","payload":{"n":4}}`, ` k  4 0  `},
		"the type of the whole document":  {whole, `{"id":"e","pk":"k","type":"OrderPlaced","n":5}`, `e k OrderPlaced 5 0  {"id":"e","pk":"k","type":"OrderPlaced","n":5}`},
		"names are as they are, not like": {whole, `{"ID":"e","pk":"k","type":"OrderPlaced"}`, `no id`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			decoder, err := NewEventDecoder(tt.contract)
			if err != nil {
				t.Fatal(err)
			}
			m, isEvent, err := decoder.Decode([]byte(tt.raw))
			if err != nil {
				if relay.ClassOf(err) != relay.Refused || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want %s", err, tt.want)
				}
				return
			}
			got := fmt.Sprintf("%s %s %s %d %d %s %s", m.ID, m.Key, m.Action, m.Sequence, m.AggregateVersion, m.CreatedAt, m.Body)
			if got != tt.want || isEvent != (m.ID != "") {
				t.Errorf("decoded %q (event %v), want %q", got, isEvent, tt.want)
			}
		})
	}
}

// Notes and tombstones do not count as the state of an aggregate.
func TestNotesAreNotDecodedAsAggregates(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{TypeEvent, TypeRequest, TypeAudit, TypeTombstone}[1:] {
		m, isEvent, err := EventDecoder{}.Decode(fmt.Appendf(nil, `{"id":"n","partitionKey":"k","data":{"sequence":7,"version":3},"type":%q}`, kind))
		if err != nil || isEvent || m.Sequence != 0 {
			t.Errorf("%s: message %+v, event %v, error %v", kind, m, isEvent, err)
		}
	}
	m, _, err := EventDecoder{}.Decode([]byte(`{"id":"o","partitionKey":"k","data":{"sequence":7},"type":"order"}`))
	if err != nil || m.Key != "k" || m.Sequence != 7 {
		t.Errorf("an order: message %+v, error %v", m, err)
	}
}

func TestInvalidContractsAreRefused(t *testing.T) {
	t.Parallel()
	for says, c := range map[string]EventContract{
		`Type is "a.b": give the name of one member`:          {Type: "a.b"},
		`Key is "/pk": give the name`:                         {Key: "/pk"},
		`Subject is "data.action": give`:                      {Subject: "data.action"},
		`Sequence is "/a/b": give`:                            {Sequence: "/a/b"},
		`Ordinal is "a b/c": give`:                            {Ordinal: "a b/c"},
		`two of its members have the name "ordinal"`:          {Sequence: "ordinal"},
		`Version is "/": give`:                                {Version: "/"},
		`a slash before it means a member of the document`:    {CreatedAt: "."},
		`two of its members have the name "data"`:             {ID: "data"},
		`two of its members have the name "n"`:                {Sequence: "n", Version: "n"},
		`two of its members have the name "id"`:               {Subject: "/id"},
		`two of its members have the name "sequence"`:         {Body: WholeDocument, Key: "sequence"},
		`two of its members have the name "partitionKey"`:     {Body: WholeDocument, Subject: "partitionKey"},
		`two of its members have the name "type": only Subje`: {Sequence: "/type"},
		`a type of Types is empty`:                            {Types: []string{"a", ""}},
	} {
		if _, err := NewEventDecoder(c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v; want %s", c, err, says)
		}
	}
	for _, c := range []EventContract{{}, {Subject: "/type"}, {Subject: "id"}, {Sequence: "/sequence"}, {Body: WholeDocument}} {
		if _, err := NewEventDecoder(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
