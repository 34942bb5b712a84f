package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/domain/fault"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayport"
)

// letters decodes documents such as {"id":"e1","key":"k","sequence":1}.
type letters struct{}

func (letters) Decode(document []byte) (relay.Message, bool, error) {
	var m relay.Message
	err := json.Unmarshal(document, &m)
	if err == nil && m.Key == "" {
		err = errors.New("it has no key")
	}
	return m, err == nil, err
}

// contended calls before, if set, once before a replacement.
type contended struct {
	gated
	before func()
}

func (c *contended) Replace(ctx context.Context, g relay.Gate, e relay.ParkedEvent) (relay.Gate, error) {
	if before := c.before; before != nil {
		c.before = nil
		before()
	}
	return c.gated.Replace(ctx, g, e)
}

// The parked copy of a consumer's event is replaced together with the intent, if it is the one that the
// operator has read and the correction is the same event. A change of the gate meanwhile, such as another
// parked event, does not matter.
func TestParkedEventOfAConsumerIsReplaced(t *testing.T) {
	lot := &contended{gated: gated{parkedtest.NewMemory()}}
	o := New(&config.Relay{}, Store{ParkedDecoder: letters{}, Store: relayport.Store{
		ParkedOf: func(string) (relayport.Parked, error) { return lot, nil },
	}}, nil)
	if err := o.OfConsumer("billing"); err != nil {
		t.Fatal(err)
	}
	park := func(n int, document string) {
		if _, err := lot.Park(t.Context(), "k", []relay.ParkedEvent{{ID: fmt.Sprint("e", n), Key: "k", Sequence: int64(n), Document: []byte(document)}}, &relay.Closing{}); err != nil {
			t.Fatal(err)
		}
	}
	park(1, `{"id":"e1","key":"k","sequence":1}`)
	park(2, `{"id":"e2","sequence":2}`)
	if first, err := o.ReadEditable(t.Context(), "k", "e1"); err != nil || first.Trouble != "" || string(first.Document) != `{"id":"e1","key":"k","sequence":1}` {
		t.Errorf("the first event of the key: %+v, %v", first, err)
	}
	read, err := o.ReadEditable(t.Context(), "k", "e2")
	if err != nil || read.Trouble != "it has no key" || string(read.Document) != `{"id":"e2","sequence":2}` {
		t.Fatalf("%+v, %v", read, err)
	}
	intent := relay.Intent{Verb: relay.VerbRetry, By: "ann", Note: "the key"}
	good := `{"id":"e2", "key":"k", "sequence":2}`
	for name, c := range map[string]struct {
		id, document, version string
		want                  fault.Kind
	}{
		"another id":       {"e2", `{"id":"e1","key":"k","sequence":2}`, read.Version, fault.Invalid},
		"another key":      {"e2", `{"id":"e2","key":"other","sequence":2}`, read.Version, fault.Invalid},
		"another sequence": {"e2", `{"id":"e2","key":"k","sequence":3}`, read.Version, fault.Invalid},
		"no JSON":          {"e2", `{`, read.Version, fault.Invalid},
		"another version":  {"e2", good, "0123456789abcdef", fault.PreconditionFailed},
		"no such event":    {"e9", `{"id":"e9","key":"k","sequence":2}`, read.Version, fault.NotFound},
	} {
		if _, err := o.ReplaceParked(t.Context(), "k", c.id, []byte(c.document), c.version, intent); !fault.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if g, err := lot.Gate(t.Context(), "k"); err != nil || g.Intent != nil {
		t.Fatalf("a refused replacement left %+v, %v", g, err)
	}
	if found, err := o.ParkedKey(t.Context(), "nosuch", 1); !fault.Is(err, fault.NotFound) {
		t.Errorf("a key that is not parked: %+v, %v", found, err)
	}
	lot.before = func() { park(3, `{"id":"e3","key":"k","sequence":3}`) }
	g, err := o.ReplaceParked(t.Context(), "k", "e2", []byte(good), read.Version, intent)
	if err != nil || g.Intent == nil || g.Intent.By != "ann" || g.Intent.At.IsZero() || g.Events != 3 {
		t.Fatalf("%+v, %v", g, err)
	}
	line, err := lot.First(t.Context(), "k", 9, 1<<20)
	if err != nil || len(line) != 3 || string(line[1].Document) != `{"id":"e2","key":"k","sequence":2}` {
		t.Errorf("%+v, %v", line, err)
	}
	if _, err := o.ReplaceParked(t.Context(), "k", "e2", []byte(good), read.Version, intent); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("the same replacement again: %v", err)
	}
}

// Events of a consumer's parked key wait although no key of the relay is parked.
func TestDoctorNamesConsumersWithParkedKeys(t *testing.T) {
	relays, billing, silent := gated{parkedtest.NewMemory()}, gated{parkedtest.NewMemory()}, errors.New("no reply")
	o := New(&config.Relay{}, Store{Doctor: plainDoctor{}, Store: relayport.Store{
		Parked: relays, ParkedOf: func(string) (relayport.Parked, error) { return billing, nil },
		ParkedBy: func(context.Context) ([]string, error) { return []string{"billing"}, silent },
	}}, nil)
	want := func(findings ...Finding) {
		t.Helper()
		if got := o.examineParked(t.Context()); !reflect.DeepEqual(got, findings) {
			t.Errorf("%+v, want %+v", got, findings)
		}
	}
	none := Fine("parked", "none")
	want(none, Fine("parked by consumers", "no reply").Is(FindingUnknown, "feedbox parked ls --consumer NAME"))
	silent = nil
	want(none)
	for _, key := range []string{"a", "b"} {
		if _, err := billing.Park(t.Context(), key, []relay.ParkedEvent{{ID: "e", Key: key, Sequence: 1}}, &relay.Closing{}); err != nil {
			t.Fatal(err)
		}
	}
	want(none, Fine("parked by consumers", "2 keys, of billing").Is(FindingWarning, "feedbox parked ls --consumer billing"))
}

// plainDoctor describes errors by their texts.
type plainDoctor struct{ StoreDoctor }

// Describe implements StoreDoctor.
func (plainDoctor) Describe(err error) string { return err.Error() }

// unusableDoctor finds that no part of the store can be used.
type unusableDoctor struct{ plainDoctor }

// Examine implements StoreDoctor.
func (unusableDoctor) Examine(_ Process, step func(Examination) bool) Unusable {
	ok := step(func(context.Context) []Finding {
		return []Finding{Fine("database", "no reply").Is(FindingFailed, "start it"), Fine("clock", "0 s")}
	})
	if ok {
		return nil
	}
	return Unusable{PartFeed: "database", PartLeases: "database", PartParked: "database"}
}

// A check that is missing in the list would look like a healthy one.
func TestDoctorShowsChecksThatCannotBeMade(t *testing.T) {
	o := New(&config.Relay{}, Store{Doctor: unusableDoctor{}}, nil)
	for process, checks := range map[Process][]string{
		ProcessAPI:   nil,
		ProcessRelay: {"read the change feed", "read the leases", "read parked events", "leases", "owner of parked events", "other lease sets", "parked"},
	} {
		want := []Finding{Fine("database", "no reply").Is(FindingFailed, "start it"), Fine("clock", "0 s")}
		for _, check := range checks {
			want = append(want, Fine(check, "not examined, because database failed").Is(FindingUnknown, "correct database first"))
		}
		var found []Finding
		o.Diagnose(t.Context(), DoctorOptions{Process: process, Found: func(f Finding) { found = append(found, f) }})
		if !reflect.DeepEqual(found, want) {
			t.Errorf("%s: %+v, want %+v", process, found, want)
		}
	}
}

// A store without an editor replaces nothing, so an operator must not believe that it did.
func TestEventOfAStoreWithoutAnEditorIsNotReplaced(t *testing.T) {
	o, _, _ := newListed(t, "k A")
	o.store.Decoder = letters{}
	const document = `{"id":"e0","key":"k","sequence":1}`
	if err := o.ReplaceEvent(t.Context(), "k", "e0", []byte(document), "1"); !fault.Is(err, fault.Conflict) {
		t.Errorf("replaced: %v", err)
	}
	if read, err := o.ReadEditable(t.Context(), "k", "e0"); !fault.Is(err, fault.Conflict) {
		t.Errorf("read: %+v, %v", read, err)
	}
	o.ofConsumer = true
	if read, err := o.ReadEditable(t.Context(), "k", "e0"); !fault.Is(err, fault.Conflict) {
		t.Errorf("read from a consumer: %+v, %v", read, err)
	}
	if g, err := o.ReplaceParked(t.Context(), "k", "e0", []byte(document), "1", relay.Intent{Verb: relay.VerbRetry, By: "ann"}); !fault.Is(err, fault.Conflict) {
		t.Errorf("replaced in the parked events of a consumer: %+v, %v", g, err)
	}
}

// editable is a store of one event, the version of which is the number of its replacements.
type editable struct {
	listing
	document string
	version  int
	fails    error
}

func (e *editable) Event(context.Context, string, string) ([]byte, error) {
	return []byte(e.document), e.fails
}

func (e *editable) Editable(document []byte) (clean []byte, version string, err error) {
	return document, fmt.Sprint(e.version), e.fails
}

func (e *editable) Replace(_ context.Context, _, id string, document []byte, version string) error {
	if version != fmt.Sprint(e.version) {
		return fault.New(fault.PreconditionFailed, "", id+" has changed")
	}
	e.document, e.version = string(document), e.version+1
	return e.fails
}

// An event is replaced once, by a document that is the same event.
func TestStoredEventIsReplacedOnce(t *testing.T) {
	store := &editable{document: `{"id":"e1"}`}
	o := New(&config.Relay{}, Store{Store: relayport.Store{Events: store, Decoder: letters{}}}, nil)
	read, err := o.ReadEditable(t.Context(), "k", "e1")
	if want := (EditableEvent{Document: []byte(`{"id":"e1"}`), Version: "0", Trouble: "it has no key"}); err != nil || !reflect.DeepEqual(read, want) {
		t.Fatalf("%+v, %v; want %+v", read, err, want)
	}
	const good = `{"id":"e1","key":"k"}`
	for _, document := range []string{`{"id":"e1"}`, `{"id":"e2","key":"k"}`, `{"id":"e1","key":"other"}`, `{`} {
		if err := o.ReplaceEvent(t.Context(), "k", "e1", []byte(document), "0"); !fault.Is(err, fault.Invalid) || store.version != 0 {
			t.Errorf("%s: %v, version %d", document, err, store.version)
		}
	}
	if err := o.ReplaceEvent(t.Context(), "k", "e1", []byte(good), "0"); err != nil || store.document != good {
		t.Errorf("the event is %s, %v", store.document, err)
	}
	if err := o.ReplaceEvent(t.Context(), "k", "e1", []byte(good), "0"); !fault.Is(err, fault.PreconditionFailed) || store.version != 1 {
		t.Errorf("replaced again: %v, version %d", err, store.version)
	}
	store.fails = errors.New("no reply")
	if _, err := o.ReadEditable(t.Context(), "k", "e1"); !errors.Is(err, store.fails) {
		t.Errorf("read from a store that does not reply: %v", err)
	}
	if err := o.ReplaceEvent(t.Context(), "k", "e1", []byte(good), "1"); !errors.Is(err, store.fails) {
		t.Errorf("replaced in a store that does not reply: %v", err)
	}
}
