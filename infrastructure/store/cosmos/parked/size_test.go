package parked_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/parked"
)

// letters returns n bytes that compress badly, 6.5 bits a byte: gzip and base64 make them larger.
func letters(rng *rand.Rand, n int) string {
	b := make([]byte, 0, n)
	for len(b) < n {
		if c := byte(0x20 + rng.IntN(95)); !strings.ContainsRune(`"\<>&`, rune(c)) {
			b = append(b, c)
		}
	}
	return string(b)
}

// han returns n bytes or a few more of text outside of ASCII.
func han(rng *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteRune(rune(0x4e00 + rng.IntN(0x5000)))
	}
	return b.String()
}

// A topic of the Standard tier takes 256 KB, so a larger event can only be parked.
func TestEveryDocumentThatFitsCanBeParked(t *testing.T) {
	store, _ := newStore(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for name, event := range map[string]string{
		"ASCII 1.85 MB":         `{"id":"e1","partitionKey":"k1","data":"` + letters(rng, 1_850_000) + `"}`,
		"ASCII 1.95 MB":         `{"id":"e1","partitionKey":"k2","data":"` + letters(rng, 1_950_000) + `"}`,
		"ASCII 2.05 MB":         `{"id":"e1","partitionKey":"k3","data":"` + letters(rng, 2_050_000) + `"}`,
		"Han 1.95 MB":           `{"id":"e1","partitionKey":"k4","data":"` + han(rng, 1_950_000) + `"}`,
		"ASCII 1.7 MB, spaces":  `{ "id":"e1","partitionKey":"k5","data":"` + letters(rng, 1_700_000) + `"}`,
		"ASCII 2.05 MB, a URL":  `{"id":"e1","partitionKey":"k6","data":"https://x/?a=<b>&c=d` + letters(rng, 2_050_000) + `"}`,
		"markup 2 MB":           `{"id":"e1","partitionKey":"k7","data":"` + strings.Repeat("<b>&</b>", 260_000) + `"}`,
		"Han 2.05 MB, both, \\": `{"id":"e1","partitionKey":"k8","data":"&\u0026\\u0026` + han(rng, 2_050_000) + `"}`,
	} {
		key := event[strings.Index(event, `"k`)+1 : strings.Index(event, `"k`)+3]
		e := relay.ParkedEvent{ID: "e1", Key: key, Sequence: 1, LSN: 1, Reason: "too_large", Error: strings.Repeat("x", 200), Document: []byte(event), ParkedAt: time.Now()}
		if _, err := store.Park(t.Context(), key, []relay.ParkedEvent{e}, &relay.Closing{Event: "e1", Reason: "too_large", At: time.Now()}); err != nil {
			t.Errorf("%s (%d bytes): %.300s", name, len(event), err.Error())
			continue
		}
		line, err := store.First(t.Context(), key, 2, 64<<20)
		must(t, err)
		if len(line) != 1 || string(line[0].Document) != event {
			t.Errorf("%s: %d events are parked, the first as %.80s", name, len(line), line[0].Document)
		}
	}
}

// A document of another writer may leave no room at all.
func TestUnparkableDocumentIsNamedInTheError(t *testing.T) {
	store, _ := newStore(t)
	event := parkedEvent("e1", []byte(`{"id":"e1","data":"`+letters(rand.New(rand.NewPCG(1, 2)), 2<<20)+`"}`))
	_, err := store.Park(t.Context(), "k", []relay.ParkedEvent{event}, &relay.Closing{Event: "e1"})
	if !fault.Is(err, fault.TooLarge) || !strings.Contains(err.Error(), "event e1 (2097173 bytes) does not fit") || !strings.Contains(err.Error(), "restart the relay") {
		t.Errorf("%v; want an error that names the event and the remedy", err)
	}
	if _, err := store.Gate(t.Context(), "k"); !fault.Is(err, fault.NotFound) {
		t.Errorf("the gate without its event: %v", err)
	}
}

// newOutbox returns a container with its outbox, and the store of its parked events.
func newOutbox(t *testing.T) (*azcosmos.ContainerClient, *cosmos.Outbox, *parked.Store) {
	t.Helper()
	emulator := cosmosemu.StartT(t, nil)
	var containers [2]*azcosmos.ContainerClient
	client, err := cosmos.NewClient(cosmos.ClientConfig{Endpoint: emulator.Endpoint(), Key: emulator.Key(), Options: azcore.ClientOptions{Transport: emulator.HTTPClient()}})
	must(t, err)
	t.Cleanup(client.Close)
	for i, id := range []string{"data", "parked"} {
		must(t, emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: id, PartitionKey: []string{cosmos.PartitionKeyPath}, DefaultTTL: -1}))
		containers[i], err = client.NewContainer("contacts", id)
		must(t, err)
	}
	outbox, err := cosmos.NewOutbox(containers[0], &cosmos.OutboxOptions{MaxKeyLength: -1})
	must(t, err)
	store, err := parked.NewStore(containers[1])
	must(t, err)
	return containers[0], outbox, store
}

// The reserve of the outbox suffices for everything that is stored with the event: a key whose
// characters all need escapes, the longest errors and the longest note of an operator.
func TestEveryEventThatTheOutboxAcceptsCanBeParkedAndSkipped(t *testing.T) {
	data, outbox, store := newOutbox(t)
	key := strings.Repeat("<", 1000)
	id, at, rng := uuid.New(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), rand.New(rand.NewPCG(3, 4))
	pad := letters(rng, 2<<20)
	commit := func(length int) error {
		_, err := outbox.Batch(key).EmitEvent(cosmos.Event{ID: id, At: at, Action: strings.Repeat("A", 300), Data: map[string]string{"pad": "&" + pad[:length]}}).Commit(t.Context())
		return err
	}
	refused, length, limit := 2_060_000, 0, 0
	var refusal *fault.Error
	if err := commit(refused); !errors.As(err, &refusal) || refusal.Kind != fault.TooLarge || refusal.Code != "event_too_large" {
		t.Fatalf("an event for which there is no room when it is parked: %v", err)
	}
	if _, err := fmt.Sscanf(refusal.Message, "event "+id.String()+" is %d bytes long, and at most %d can be parked", &length, &limit); err != nil {
		t.Fatalf("%q: %v", refusal.Message, err)
	}
	largest := refused - (length - limit)
	if commit(largest+1) == nil || limit < 2_030_000 {
		t.Errorf("an event may have %d bytes, and one of %d was stored", limit, limit+1)
	}
	must(t, commit(largest))
	reply, err := data.ReadItem(t.Context(), azcosmos.NewPartitionKeyString(key), id.String(), nil)
	must(t, err)
	long := strings.Repeat("\x00", 1<<20)
	for form, document := range map[string][]byte{
		"as it was sent": reply.Value,
		"unescaped, as the service may return it": []byte(strings.NewReplacer(`\u003c`, "<", `\u0026`, "&").Replace(string(reply.Value))),
	} {
		event := relay.ParkedEvent{ID: id.String(), Key: key, Action: strings.Repeat("A", 300), LSN: 1 << 60, Reason: "too_large", Error: long, Document: document, ParkedAt: time.Now()}
		_, err = store.Park(t.Context(), key, []relay.ParkedEvent{event}, &relay.Closing{Event: event.ID, Reason: "too_large", Error: long, At: time.Now()})
		if err != nil {
			t.Fatalf("%s, %d bytes: %.300s", form, len(document), fmt.Sprint(err))
		}
		line, err := store.First(t.Context(), key, 2, 64<<20)
		must(t, err)
		if len(line) != 1 || string(line[0].Document) != string(document) {
			t.Fatalf("%s: %d events are parked, the first as %.80s", form, len(line), line[0].Document)
		}
		intent := relay.Intent{Verb: relay.VerbSkip, Event: event.ID, By: "ann", Note: strings.Repeat("<", 2000), At: time.Now()}
		g, err := store.SetIntent(t.Context(), key, intent)
		must(t, err)
		g.Error = long
		if g, err = store.Remove(t.Context(), g, line, &relay.Skipped{Event: line[0], Intent: intent}); err != nil {
			t.Fatalf("%s, skipped: %.300s", form, fmt.Sprint(err))
		}
		must(t, store.Open(t.Context(), g))
	}
}
