package verify

import (
	"errors"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

func TestDecodeDocument(t *testing.T) {
	const (
		contact = `{"id":"a","partitionKey":"a","type":"contact","data":{"version":2,"sequence":3},"_lsn":9}`
		event   = `{"id":"e","partitionKey":"a","type":"domainEvent","data":{"action":"Created","aggregateVersion":2,"sequence":3}}`
	)
	for name, c := range map[string]struct {
		raw  string
		want Document
		err  string // "" for none
	}{
		"contact": {contact, Document{Kind: KindAggregate, ID: "a", Version: 2, Sequence: 3}, ""},
		"event":   {event, Document{Kind: KindEvent, ID: "e", Key: "a", Action: "Created", Version: 2, Sequence: 3}, ""},
		"parked":  {`{"id":"e","partitionKey":"a","type":"parkedEvent","sequence":3}`, Document{Kind: KindParked, ID: "e"}, ""},
		"skipped": {`{"id":"$skipped-e","partitionKey":"a","type":"skippedEvent"}`, Document{Kind: KindParked, ID: "e"}, ""},
		"owner":   {`{"id":"$owner","partitionKey":"$owner","type":"owner","processor":"feedbox"}`, Document{Kind: KindOther, ID: "$owner"}, ""},
		"gate":    {`{"id":"$gate","partitionKey":"a","type":"gate"}`, Document{Kind: KindOther, ID: "$gate"}, ""},

		"unknown type":  {`{"id":"x","type":"invoice"}`, Document{ID: "x"}, `document "x": type "invoice": `},
		"no type":       {`{"id":"x"}`, Document{ID: "x"}, `document "x": type "": `},
		"no document":   {`[]`, Document{}, `document "": `},
		"cut off":       {contact[:40], Document{}, `document "": `},
		"no id":         {`{"type":"contact","data":{"version":1,"sequence":1}}`, Document{Kind: KindAggregate, Version: 1, Sequence: 1}, "no id"},
		"skipped blank": {`{"id":"$skipped-","type":"skippedEvent"}`, Document{Kind: KindParked}, "no id"},
		"no version":    {`{"id":"a","type":"contact","data":{"sequence":1}}`, Document{Kind: KindAggregate, ID: "a", Sequence: 1}, "count from 1"},
		"no key":        {strings.Replace(event, `"a"`, `""`, 1), Document{Kind: KindEvent, ID: "e", Action: "Created", Version: 2, Sequence: 3}, "no partition key"},
		"no action":     {strings.Replace(event, "Created", "", 1), Document{Kind: KindEvent, ID: "e", Key: "a", Version: 2, Sequence: 3}, "no action"},
		"sequence as text": {
			strings.Replace(event, `"sequence":3`, `"sequence":"3"`, 1),
			Document{Kind: KindEvent, ID: "e", Key: "a", Action: "Created", Version: 2},
			`document "e": `,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeDocument([]byte(c.raw))
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want one with %q", err, c.err)
			}
			if wantUnknown := strings.Contains(c.err, "type "); errors.Is(err, ErrUnknownType) != wantUnknown {
				t.Errorf("error %v: is ErrUnknownType %t, want %t", err, !wantUnknown, wantUnknown)
			}
		})
	}
}

// The golden documents of the service are decoded, because DecodeDocument shares no code with
// the service.
func TestDecodeDocumentAcceptsDocumentsOfTheService(t *testing.T) {
	archive, err := txtar.ParseFile("../../store/cosmos/testdata/documents.txtar")
	if err != nil || len(archive.Files) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	for _, file := range archive.Files {
		d, err := DecodeDocument(file.Data)
		if err != nil {
			t.Errorf("%s: %v", file.Name, err)
		}
		want := KindOther
		switch {
		case strings.HasPrefix(file.Name, "contact"):
			want = KindAggregate
		case strings.HasPrefix(file.Name, "event"):
			want = KindEvent
		}
		if d.Kind != want {
			t.Errorf("%s is a %s, want %s", file.Name, d.Kind, want)
		}
	}
}

func FuzzDecodeDocument(f *testing.F) {
	f.Add([]byte(`{"id":"a","partitionKey":"a","type":"contact","data":{"version":2,"sequence":3}}`))
	f.Add([]byte(`{"id":"e","partitionKey":"a","type":"domainEvent","data":{"action":"Created","aggregateVersion":1,"sequence":1}}`))
	f.Add([]byte(`{"id":"$skipped-e","type":"skippedEvent"}`))
	f.Add([]byte(`{"id":7,"type":"domainEvent","data":null}`))
	f.Add([]byte("{\"id\":\"\xff\",\"type\":\"gate\"}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := DecodeDocument(raw)
		switch {
		case err != nil:
			if !strings.HasPrefix(err.Error(), "document ") {
				t.Errorf("the error does not name the document: %v", err)
			}
		case d.Kind == "" || d.ID == "":
			t.Errorf("%+v passes without kind or id", d)
		case (d.Kind == KindAggregate || d.Kind == KindEvent) && (d.Version < 1 || d.Sequence < 1):
			t.Errorf("%+v passes although its history counts from 1", d)
		case d.Kind == KindEvent && (d.Key == "" || d.Action == ""):
			t.Errorf("%+v passes without key or action", d)
		}
		for i := range raw {
			raw[i] = 'x'
		}
		if again, _ := DecodeDocument(raw); err == nil && again == d {
			t.Errorf("%+v was read out of nothing", d)
		}
	})
}
