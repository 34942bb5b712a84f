package cosmos_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/document"
)

func TestEventStore(t *testing.T) {
	container := newWorld(t, worldOptions{}).container
	if _, err := cosmos.NewEventStore(nil, document.EventDecoder{}); err == nil {
		t.Error("a store without a container is accepted")
	}
	store, err := cosmos.NewEventStore(container, document.EventDecoder{})
	must(t, err)
	const stored = `{"id":"e1","partitionKey":"k","type":"domainEvent","data":{"action":"A","sequence":1}}`
	_, err = container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("k"), []byte(stored), nil)
	must(t, err)
	raw, err := store.Event(t.Context(), "k", "e1")
	must(t, err)
	if !relay.SameContent(document.EventDecoder{}, raw, []byte(stored)) {
		t.Errorf("read %s, want %s", raw, stored)
	}
	corrected := `{"id":"e1","partitionKey":"k","type":"domainEvent","data":{"action":"B","sequence":1}}`
	if relay.SameContent(document.EventDecoder{}, raw, []byte(corrected)) {
		t.Error("other content counts as the same")
	}
	for _, at := range [][2]string{{"k", "e2"}, {"other", "e1"}} {
		if _, err := store.Event(t.Context(), at[0], at[1]); !fault.Is(err, fault.NotFound) {
			t.Errorf("%v: %v, want not found", at, err)
		}
	}
}

func storedEvents(t *testing.T, container *azcosmos.ContainerClient, key string) ([]relay.StoredEvent, error) {
	t.Helper()
	store, err := cosmos.NewEventStore(container, document.EventDecoder{})
	must(t, err)
	return store.OfKey(t.Context(), key)
}

func TestEventIsReplacedOnlyWithItsETag(t *testing.T) {
	container := newWorld(t, worldOptions{}).container
	store, err := cosmos.NewEventStore(container, document.EventDecoder{})
	must(t, err)
	_, err = container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("k"), []byte(`{"id":"e1","partitionKey":"k","type":"domainEvent","data":{"sequence":1},"_class":"Order"}`), nil)
	must(t, err)
	raw, err := store.Event(t.Context(), "k", "e1")
	must(t, err)
	clean, version, err := store.Editable(raw)
	must(t, err)
	if string(clean) != `{"_class":"Order","data":{"sequence":1},"id":"e1","partitionKey":"k","type":"domainEvent"}` || version == "" {
		t.Fatalf("%s, version %q; want all that the writer stored", clean, version)
	}
	corrected := []byte(strings.Replace(string(clean), `"sequence"`, `"action":"A","sequence"`, 1))
	must(t, store.Replace(t.Context(), "k", "e1", corrected, version))
	if raw, err = store.Event(t.Context(), "k", "e1"); err != nil || !strings.Contains(string(raw), `"action":"A"`) {
		t.Errorf("%s, %v", raw, err)
	}
	if err := store.Replace(t.Context(), "k", "e1", corrected, version); !fault.Is(err, fault.PreconditionFailed) {
		t.Errorf("an older version was replaced: %v", err)
	}
	if err := store.Replace(t.Context(), "k", "gone", []byte(`{"id":"gone","partitionKey":"k"}`), version); !fault.Is(err, fault.NotFound) {
		t.Errorf("an event that is not there: %v", err)
	}
	for _, wrong := range []string{`no`, `{"id":"e1"}`} {
		if _, _, err := store.Editable([]byte(wrong)); err == nil {
			t.Errorf("%s is editable", wrong)
		}
	}
}

// The events are in several physical partitions.
func TestRecentEvents(t *testing.T) {
	w := newWorld(t, worldOptions{})
	must(t, w.emulator.Split("contacts", "data", "0"))
	store, err := cosmos.NewEventStore(w.container, document.EventDecoder{})
	must(t, err)
	n := 0
	parkedtest.Recent(t, store, func(key string, events int) {
		for range events {
			n++
			_, err := w.container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(key),
				fmt.Appendf(nil, `{"id":"%d","partitionKey":%q,"type":"domainEvent","data":{"action":"A"}}`, n, key), nil)
			must(t, err)
		}
	})
}

// An event that cannot be decoded is listed with the reason and its time.
func TestRecentEventsIncludeMalformedOnes(t *testing.T) {
	w := newWorld(t, worldOptions{})
	store, err := cosmos.NewEventStore(w.container, document.EventDecoder{})
	must(t, err)
	_, err = w.container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("k"), []byte(`{"id":"e1","partitionKey":"k","type":"domainEvent","data":{"sequence":1}}`), nil)
	must(t, err)
	page, err := store.Recent(t.Context(), relay.RecentQuery{Limit: 2})
	if err != nil || len(page.Events) != 1 || !strings.Contains(page.Events[0].Trouble, "action") || page.Events[0].ID != "e1" || page.Events[0].StoredAt.IsZero() {
		t.Errorf("%+v, %v", page, err)
	}
}

// The id of an event may be in another member than that of its document.
func TestEventIsFoundAndReplacedByTheIDOfItsContract(t *testing.T) {
	container := newWorld(t, worldOptions{}).container
	decoder, err := document.NewEventDecoder(document.EventContract{ID: "eventId"})
	must(t, err)
	store, err := cosmos.NewEventStore(container, decoder)
	must(t, err)
	for _, stored := range []string{
		`{"id":"d1","eventId":"e1","partitionKey":"k","type":"domainEvent","data":{"action":"A"}}`,
		`{"id":"e1","eventId":"e2","partitionKey":"k","type":"domainEvent","data":{"action":"A"}}`,
		`{"id":"d3","eventId":"e3","partitionKey":"k","type":"order"}`,
	} {
		_, err = container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("k"), []byte(stored), nil)
		must(t, err)
	}
	for _, at := range [][2]string{{"k", "d1"}, {"k", "e3"}, {"other", "e1"}} {
		if raw, err := store.Event(t.Context(), at[0], at[1]); !fault.Is(err, fault.NotFound) {
			t.Errorf("%v: %s, %v, want not found", at, raw, err)
		}
	}
	raw, err := store.Event(t.Context(), "k", "e1")
	must(t, err)
	clean, version, err := store.Editable(raw)
	must(t, err)
	corrected := strings.Replace(string(clean), `"A"`, `"B"`, 1)
	must(t, store.Replace(t.Context(), "k", "e1", []byte(corrected), version))
	raw, err = store.Event(t.Context(), "k", "e1")
	must(t, err)
	if clean, _, err = store.Editable(raw); err != nil || string(clean) != `{"data":{"action":"B"},"eventId":"e1","id":"d1","partitionKey":"k","type":"domainEvent"}` {
		t.Errorf("replaced by %s: %s, %v", corrected, clean, err)
	}
}
