package parked_test

import (
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/store/cosmos/parked"
)

// TestGatesOfEarlierVersionsAreRead continues a gate of an earlier version, without progress and
// positions by sequence, which a drainer had claimed.
func TestGatesOfEarlierVersionsAreRead(t *testing.T) {
	container, _ := newContainer(t, &cosmosemu.Options{})
	for _, document := range []string{
		`{"id":"$gate","partitionKey":"k","type":"gate","closing":{"event":"e5","reason":"too_large","error":"too large","at":"2026-03-01T12:00:00Z"},"events":3,"last":4,"intent":{"verb":"retry","by":"ann","at":"2026-03-01T13:00:00Z"},"claim":{"Owner":"relay-1","Token":"t","Beat":3},"attempts":2,"error":"still","triedAt":"2026-03-01T12:30:00Z"}`,
		`{"id":"e6","partitionKey":"k","type":"parkedEvent","position":2,"lsn":6,"sequence":6,"reason":"held","attempts":0,"parkedAt":"2026-03-01T12:00:00Z","document":{}}`,
		`{"id":"e5","partitionKey":"k","type":"parkedEvent","position":3,"lsn":5,"sequence":5,"reason":"too_large","attempts":5,"parkedAt":"2026-03-01T12:00:00Z","document":{}}`,
		`{"id":"e7","partitionKey":"k","type":"parkedEvent","position":4,"lsn":7,"sequence":0,"reason":"held","attempts":0,"parkedAt":"2026-03-01T12:00:00Z","document":{}}`,
	} {
		_, err := container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("k"), []byte(document), nil)
		must(t, err)
	}
	store, err := parked.NewStore(container)
	must(t, err)
	gates, err := store.Intents(t.Context())
	must(t, err)
	closed, err := store.Closed(t.Context())
	must(t, err)
	if !slices.Equal(closed, []string{"k"}) {
		t.Errorf("closed keys %v, want k, which is not listed", closed)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	want := relay.Closing{Event: "e5", Reason: "too_large", Error: "too large", At: at}
	if len(gates) != 1 || gates[0].Closing != want || gates[0].Events != 3 || gates[0].Progress != (relay.Progress{}) || gates[0].Attempts != 2 || gates[0].Intent.By != "ann" {
		t.Fatalf("gates %+v, want the one that is stored", gates)
	}
	late := parkedEvent("late", []byte(`{}`))
	late.Sequence, late.LSN = 0, 8
	e4, e8 := late, late
	e4.ID, e4.Sequence, e4.LSN = "e4", 4, 4
	e8.ID, e8.Sequence, e8.LSN = "e8", 8, 9
	parkAt(t, store, "k", nil, late, e8, e4)
	events, err := store.First(t.Context(), "k", 10, 1<<30)
	must(t, err)
	var ids []string
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	if want := []string{"e6", "e5", "e7", "late", "e4", "e8"}; !slices.Equal(ids, want) {
		t.Errorf("the line is %v, want what stood there as it stood, then %v", ids, want)
	}
	g, err := store.Gate(t.Context(), "k")
	must(t, err)
	g, err = store.Remove(t.Context(), g, events, nil)
	must(t, err)
	must(t, store.Open(t.Context(), g))
}
