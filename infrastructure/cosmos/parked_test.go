package cosmos_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"feedbox/application/relay"
	"feedbox/application/relay/lottest"
	"feedbox/domain/fault"
	"feedbox/infrastructure/cosmos"
	"feedbox/infrastructure/emulator/cosmosemu"
)

// newLot returns an empty lot over an emulated account with several partitions.
func newLot(t *testing.T) (*cosmos.ParkedLot, *wire) {
	t.Helper()
	emulator := cosmosemu.StartT(t, &cosmosemu.Options{Partitions: 3})
	must(t, emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "parked", PartitionKey: []string{cosmos.PartitionKeyPath}}))
	w := &wire{next: emulator.HTTPClient()}
	client, err := cosmos.NewClient(cosmos.ClientConfig{Endpoint: emulator.Endpoint(), Key: emulator.Key(), Options: azcore.ClientOptions{Transport: w}})
	must(t, err)
	t.Cleanup(client.Close)
	container, err := client.NewContainer("contacts", "parked")
	must(t, err)
	lot, err := cosmos.NewParkedLot(container)
	must(t, err)
	return lot, w
}

func TestParkedLot(t *testing.T) {
	lottest.Run(t, func(t *testing.T) lottest.Lot {
		lot, _ := newLot(t)
		return lot
	})
}

func parkedEvent(id string, document []byte) relay.ParkedEvent {
	return relay.ParkedEvent{ID: id, Key: "k", Document: document, Reason: "too_large", ParkedAt: time.Now()}
}

func TestParkingKeepsTheBytes(t *testing.T) {
	lot, _ := newLot(t)
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
		must(t, lot.Park(t.Context(), "k", []relay.ParkedEvent{parkedEvent(id, document)}, &relay.Closing{Event: id}))
	}
	events, err := lot.First(t.Context(), "k", 10)
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

// TestParkingIsRepeatable loses the answer of a transaction that was applied.
func TestParkingIsRepeatable(t *testing.T) {
	lot, w := newLot(t)
	w.follow(once(func(_ *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
		reply, err := pass()
		if err == nil {
			_ = reply.Body.Close()
		}
		return nil, http.ErrHandlerTimeout
	}))
	events := []relay.ParkedEvent{parkedEvent("e1", []byte(`{}`)), parkedEvent("e2", []byte(`{}`))}
	err := lot.Park(t.Context(), "k", events, &relay.Closing{Event: "e1"})
	if err != nil && !fault.Is(err, fault.Unavailable) {
		t.Fatalf("park: %v, want it unavailable", err)
	}
	must(t, lot.Park(t.Context(), "k", events, &relay.Closing{Event: "e1"}))
	got, err := lot.First(t.Context(), "k", 10)
	must(t, err)
	if g, gateErr := lot.Gate(t.Context(), "k"); len(got) != 2 || gateErr != nil || g.Events != 2 {
		t.Errorf("%d events, gate %+v, %v; want two", len(got), g, gateErr)
	}
}

func TestGatesInOrderOfClosing(t *testing.T) {
	lot, _ := newLot(t)
	at := time.Now().UTC()
	for i, key := range []string{"c", "a", "b"} {
		must(t, lot.Park(t.Context(), key, nil, &relay.Closing{At: at.Add(time.Duration(i) * time.Second)}))
	}
	gates, err := lot.Gates(t.Context())
	must(t, err)
	if len(gates) != 3 || gates[0].Key != "c" || gates[1].Key != "a" || gates[2].Key != "b" {
		t.Errorf("gates %+v, want c, a, b", gates)
	}
}
