package parked_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/domain/fault"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/parked"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wire passes requests on, and counts the bytes of the answers to queries. It can lose the answer to the
// next transaction.
type wire struct {
	next    *http.Client
	lose    atomic.Bool
	queried atomic.Int64
}

// Do implements policy.Transporter.
func (w *wire) Do(r *http.Request) (*http.Response, error) {
	reply, err := w.next.Do(r)
	if err == nil && isBatch(r) && w.lose.CompareAndSwap(true, false) {
		_ = reply.Body.Close()
		return nil, http.ErrHandlerTimeout
	}
	if err == nil && isQuery(r) {
		body, readErr := io.ReadAll(reply.Body)
		w.queried.Add(int64(len(body)))
		reply.Body = io.NopCloser(bytes.NewReader(body))
		return reply, readErr
	}
	return reply, err
}

// newContainer returns an empty container of an emulated account.
func newContainer(t *testing.T, o *cosmosemu.Options) (*azcosmos.ContainerClient, *wire) {
	t.Helper()
	emulator := cosmosemu.StartT(t, o)
	must(t, emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "parked", PartitionKey: []string{cosmos.PartitionKeyPath}}))
	w := &wire{next: emulator.HTTPClient()}
	client, err := cosmos.NewClient(cosmos.ClientConfig{Endpoint: emulator.Endpoint(), Key: emulator.Key(), Options: azcore.ClientOptions{Transport: w}})
	must(t, err)
	t.Cleanup(client.Close)
	container, err := client.NewContainer("contacts", "parked")
	must(t, err)
	return container, w
}

// newStore returns an empty store on an emulated account with several partitions.
func newStore(t *testing.T) (*parked.Store, *wire) {
	t.Helper()
	container, w := newContainer(t, &cosmosemu.Options{Partitions: 3})
	store, err := parked.NewStore(container)
	must(t, err)
	return store, w
}

func TestStore(t *testing.T) {
	parkedtest.Run(t, func(t *testing.T) parkedtest.Store {
		store, _ := newStore(t)
		return store
	})
	relays, _ := newStore(t)
	consumers := 0
	parkedtest.Run(t, func(t *testing.T) parkedtest.Store { // all share the container
		consumers++
		store, err := relays.Of(fmt.Sprint("consumer", consumers))
		must(t, err)
		return store
	})
	if keys, err := relays.Closed(t.Context()); err != nil || len(keys) > 0 {
		t.Errorf("a relay sees the parked keys %v of consumers, %v", keys, err)
	}
	if gates, err := relays.Gates(t.Context()); err != nil || len(gates) > 0 {
		t.Errorf("a relay sees the gates %v of consumers, %v", gates, err)
	}
	names, err := relays.Consumers(t.Context())
	if err != nil || len(names) == 0 || !slices.IsSorted(names) || slices.ContainsFunc(names, func(name string) bool { return !strings.HasPrefix(name, "consumer") || strings.Contains(name, ":") }) {
		t.Errorf("consumers with parked keys: %q, %v", names, err)
	}
}

func parkedEvent(id string, document []byte) relay.ParkedEvent {
	return relay.ParkedEvent{ID: id, Key: "k", Document: document, Reason: "too_large", ParkedAt: time.Now()}
}

func parkAt(t *testing.T, store *parked.Store, key string, closing *relay.Closing, events ...relay.ParkedEvent) relay.ParkResult {
	t.Helper()
	done, err := store.Park(t.Context(), key, events, closing)
	must(t, err)
	return done
}

func TestParkingKeepsTheBytes(t *testing.T) {
	store, _ := newStore(t)
	large := append([]byte(`{"id":"large","x":"`), make([]byte, 1_950_000)...)
	for i := range large[20:] {
		large[20+i] = "abcdefgh<>&"[i%11]
	}
	large = append(large, `"}`...)
	documents := map[string][]byte{
		"spaces": []byte(`{ "id" : "spaces",	"n": 1.50, "html":"<a href='x'>&</a>" }`),
		"broken": []byte("{\"id\":\"broken\",\xff"),
		"large":  large,
	}
	for id, document := range documents {
		parkAt(t, store, "k", &relay.Closing{Event: id}, parkedEvent(id, document))
	}
	events, err := store.First(t.Context(), "k", 10, 1<<30)
	must(t, err)
	if len(events) != len(documents) {
		t.Fatalf("%d events, want %d", len(events), len(documents))
	}
	for _, e := range events {
		if string(e.Document) != string(documents[e.ID]) {
			t.Errorf("document of %s is %.80q, want %.80q", e.ID, e.Document, documents[e.ID])
		}
	}
}

// TestParkingLargeEvents parks more than one transaction allows.
func TestParkingLargeEvents(t *testing.T) {
	store, _ := newStore(t)
	var events []relay.ParkedEvent
	for i := range 4 {
		events = append(events, parkedEvent(fmt.Sprint("e", i), fmt.Appendf(nil, `{"id":"e%d","x":"%s"}`, i, strings.Repeat("x", 900_000))))
	}
	if done := parkAt(t, store, "k", &relay.Closing{Event: "e0"}, events...); len(done.Parked) != 4 {
		t.Errorf("%d events were parked, want 4", len(done.Parked))
	}
	got, err := store.First(t.Context(), "k", 10, 1<<30)
	must(t, err)
	if len(got) != 4 || string(got[3].Document) != string(events[3].Document) {
		t.Errorf("%d events are there, want 4 with their documents", len(got))
	}
}

// TestParkingIsRepeatable loses the answer of a transaction that was applied.
func TestParkingIsRepeatable(t *testing.T) {
	store, w := newStore(t)
	w.lose.Store(true)
	events := []relay.ParkedEvent{parkedEvent("e1", []byte(`{}`)), parkedEvent("e2", []byte(`{}`))}
	_, err := store.Park(t.Context(), "k", events, &relay.Closing{Event: "e1"})
	if err != nil && !fault.Is(err, fault.Unavailable) {
		t.Fatalf("park: %v, want it unavailable", err)
	}
	parkAt(t, store, "k", &relay.Closing{Event: "e1"}, events...)
	got, err := store.First(t.Context(), "k", 10, 1<<30)
	must(t, err)
	if g, gateErr := store.Gate(t.Context(), "k"); len(got) != 2 || gateErr != nil || g.Events != 2 {
		t.Errorf("%d events, gate %+v, %v; want two", len(got), g, gateErr)
	}
}

// A key may have more parked events than memory, and a restart of the feed from its beginning parks each again.
func TestParkingAgainReadsOnlyTheNamedEvents(t *testing.T) {
	store, w := newStore(t)
	var events []relay.ParkedEvent
	for i := range 100 {
		events = append(events, parkedEvent(fmt.Sprintf("e%03d", i), []byte(`{"text":"`+strings.Repeat("x", 10_000)+`"}`)))
	}
	closing := &relay.Closing{Event: "e000"}
	parkAt(t, store, "k", closing, events...)
	w.queried.Store(0)
	done := parkAt(t, store, "k", closing, events[98], parkedEvent("new", []byte(`{}`)), events[99])
	if len(done.Parked) != 1 || done.Parked[0].ID != "new" || len(done.Existing) != 2 || done.Existing[1].ID != "e099" || !bytes.Equal(done.Existing[1].Document, events[99].Document) {
		t.Errorf("parked %d events, %d existed; want one and two", len(done.Parked), len(done.Existing))
	}
	if n := w.queried.Load(); n > 50_000 {
		t.Errorf("parking three events read %d bytes of parked ones", n)
	}
}

func TestGatesAreOrderedByClosing(t *testing.T) {
	store, _ := newStore(t)
	at := time.Now().UTC()
	for i, key := range []string{"c", "a", "b"} { // the answer is in the order of creation, or of the partitions
		parkAt(t, store, key, &relay.Closing{At: at.Add(time.Duration((i+2)%3) * time.Second)})
	}
	gates, err := store.Gates(t.Context())
	must(t, err)
	if len(gates) != 3 || gates[0].Key != "a" || gates[1].Key != "b" || gates[2].Key != "c" {
		t.Errorf("gates %+v, want a, b, c", gates)
	}
}
