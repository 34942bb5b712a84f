package cosmos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
	"feedbox/infrastructure/store/document"
)

func emptyContext() *ContainerContext {
	options, _ := withDefaults(nil)
	c := newContainerContext(nil, options, store.Session{})
	return &c
}

func object(id string, size int) DataObject {
	return DataObject{ID: id, PartitionKey: "key", Type: "contact", Data: json.RawMessage(`"` + strings.Repeat("x", size) + `"`), TTL: -1, ETag: `"e"`}
}

func TestTrackRefuses(t *testing.T) {
	t.Parallel()
	c := emptyContext()
	if err := c.Create(object("a", 1)); err != nil {
		t.Fatal(err)
	}
	other := object("b", 1)
	other.PartitionKey = "other"
	nameless := object("", 1)
	keyless := object("b", 1)
	keyless.PartitionKey = ""
	blind := object("b", 1)
	blind.ETag = ""
	for name, err := range map[string]error{
		"a second partition key":      c.Create(other),
		"no id":                       c.Create(nameless),
		"no partition key":            emptyContext().Create(keyless),
		"a second operation of an id": c.Update(object("a", 1)),
		"a replace without an ETag":   c.Update(blind),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if len(c.ordered()) != 1 {
		t.Errorf("%d operations; want the first", len(c.ordered()))
	}
}

func TestResetForgetsAll(t *testing.T) {
	t.Parallel()
	c := emptyContext()
	if err := c.Create(object("a", 1)); err != nil {
		t.Fatal(err)
	}
	c.Reset()
	saved, err := c.Save(t.Context()) // without a container: nothing may be sent
	if saved != nil || err != nil {
		t.Errorf("saved %v, %v after Reset", saved, err)
	}
	other := object("a", 1)
	other.PartitionKey = "other"
	if err := c.Create(other); err != nil {
		t.Errorf("another partition key after Reset: %v", err)
	}
}

func TestEventsAreSentFirst(t *testing.T) {
	t.Parallel()
	c := emptyContext()
	event := func(id string) DataObject {
		o := object(id, 1)
		o.Type = document.TypeEvent
		return o
	}
	for _, err := range []error{
		c.Update(object("contact", 1)), c.Create(event("first")), c.Create(object("note", 1)), c.Create(event("second")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for _, op := range c.ordered() {
		ids = append(ids, op.object.ID)
	}
	if got := strings.Join(ids, " "); got != "first second contact note" {
		t.Errorf("order: %s", got)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, n := range []int{100, 101} {
		c := emptyContext()
		for i := range n {
			if err := c.Create(object(fmt.Sprint(i), 1)); err != nil {
				t.Fatal(err)
			}
		}
		if err := checkLimits(c.ordered()); (n > 100) != fault.Is(err, fault.TooLarge) {
			t.Errorf("%d operations: %v", n, err)
		}
	}
}

// The checked size is the exact size of the request that the SDK sends.
func TestSizeIsThatOfTheRequest(t *testing.T) {
	t.Parallel()
	container, s := play(t, stored(3), respond(http.StatusCreated, "", "etag", `"e"`))
	options, _ := withDefaults(nil)
	c := newContainerContext(container, options, store.Session{})
	html := object("replaced", 1)
	html.Data = json.RawMessage(`{"a":"\u003cb\u003e\u0026\u2028 é"}`) // as it is encoded
	for _, err := range []error{c.Create(object("created", 10)), c.Update(html), c.track(verbDelete, object("deleted", 10), nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := len(s.bodies[0]); requestSize(c.ordered()) != want {
		t.Errorf("size of the batch %d; the request has %d:\n%s", requestSize(c.ordered()), want, s.bodies[0])
	}
	c.Reset()
	if err := c.Create(object("alone", 10)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := len(s.bodies[1]); requestSize(c.ordered()) != want {
		t.Errorf("size of the point write %d; the request has %d:\n%s", requestSize(c.ordered()), want, s.bodies[1])
	}
}

func TestTooLargeIsRefusedBeforeTheCall(t *testing.T) {
	t.Parallel()
	c := emptyContext()
	if err := c.Create(object("a", 1)); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(object("b", 1)); err != nil {
		t.Fatal(err)
	}
	room := store.MaxBytes - requestSize(c.ordered())
	for _, extra := range []int{0, 1} {
		c.Reset()
		if err := c.Create(object("a", 1)); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(object("b", 1+room+extra)); err != nil {
			t.Fatal(err)
		}
		if err := checkLimits(c.ordered()); (extra > 0) != fault.Is(err, fault.TooLarge) {
			t.Errorf("%d bytes beyond the limit: %v", extra, err)
		}
	}
	if _, err := c.Save(t.Context()); !fault.Is(err, fault.TooLarge) { // there is no container to call
		t.Errorf("Save: %v", err)
	}
}

func TestOptionsReportEveryFault(t *testing.T) {
	t.Parallel()
	const long = maxTTL + 1
	_, err := withDefaults(&Options{EventTTL: long, DeletedTTL: long, RequestTTL: long, AuditTTL: long})
	for _, name := range []string{"EventTTL", "DeletedTTL", "RequestTTL", "AuditTTL"} {
		if err == nil || !strings.Contains(err.Error(), name+" is longer") {
			t.Errorf("error %v; want one of %s", err, name)
		}
	}
	defaults, err := withDefaults(&Options{})
	if err != nil || defaults.Traceparent(t.Context()) != "" {
		t.Errorf("%+v, %v", defaults, err)
	}
	defaults.Traceparent = nil
	if want := (Options{
		EventTTL: 240 * time.Hour, DeletedTTL: 720 * time.Hour, RequestTTL: 24 * time.Hour, AuditTTL: 8760 * time.Hour,
		AttemptTimeout: 8 * time.Second, Attempts: 3, Backoff: 50 * time.Millisecond, MaxThrottleWait: 2 * time.Second,
	}); fmt.Sprintf("%+v", defaults) != fmt.Sprintf("%+v", want) {
		t.Errorf("defaults %+v; want %+v", defaults, want)
	}
	o, err := withDefaults(&Options{EventTTL: -1, Attempts: -1, Backoff: -1, MaxThrottleWait: -1})
	if err != nil || o.EventTTL != -1 || o.Attempts != 1 || o.Backoff != 0 || o.MaxThrottleWait != 0 {
		t.Errorf("%+v, %v", o, err)
	}
}
