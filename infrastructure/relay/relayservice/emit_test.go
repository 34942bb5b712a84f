package relayservice_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/domain/fault"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/cosmosrelay"
)

// backwards shows the documents of each transaction of the change feed in reverse, because the
// feed promises no order within a transaction.
type backwards struct {
	next  *http.Client
	pages atomic.Int64 // that had a transaction of several documents
}

// Do implements policy.Transporter.
func (b *backwards) Do(r *http.Request) (*http.Response, error) {
	reply, err := b.next.Do(r)
	if err != nil || r.Header.Get("A-IM") == "" || !strings.HasSuffix(r.URL.Path, "/docs") || reply.StatusCode != http.StatusOK {
		return reply, err
	}
	var page struct {
		RID       string            `json:"_rid"`
		Documents []json.RawMessage `json:"Documents"`
		Count     int               `json:"_count"`
	}
	err = json.NewDecoder(reply.Body).Decode(&page)
	_ = reply.Body.Close()
	if err != nil {
		return nil, err
	}
	lsn := func(raw json.RawMessage) (n int64) {
		var d struct {
			LSN int64 `json:"_lsn"`
		}
		_ = json.Unmarshal(raw, &d)
		return d.LSN
	}
	for from := 0; from < len(page.Documents); {
		to := from + 1
		for to < len(page.Documents) && lsn(page.Documents[to]) == lsn(page.Documents[from]) {
			to++
		}
		if to-from > 1 {
			b.pages.Add(1)
		}
		slices.Reverse(page.Documents[from:to])
		from = to
	}
	body, err := json.Marshal(page)
	reply.Body, reply.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	reply.Header.Del("Content-Length")
	return reply, err
}

// newBackwards returns a relay of an emulated account, whose feed it sees backwards, and the
// container of the events.
func newBackwards(t *testing.T) (*bench, *azcosmos.ContainerClient, *backwards) {
	t.Helper()
	emulator := cosmosemu.StartT(t, &cosmosemu.Options{Network: pipenet.New()})
	for id, key := range map[string]string{"data": cosmos.PartitionKeyPath, "leases": "/id", "parked": cosmos.PartitionKeyPath} {
		props := cosmosemu.ContainerProps{ID: id, PartitionKey: []string{key}}
		if id == "data" {
			props.DefaultTTL = -1
		}
		must(t, emulator.CreateContainer("shop", props))
	}
	wire := &backwards{next: emulator.HTTPClient()}
	client, err := cosmos.NewClient(cosmos.ClientConfig{Endpoint: emulator.Endpoint(), Key: emulator.Key(), Options: azcore.ClientOptions{
		Transport: wire,
	}})
	must(t, err)
	t.Cleanup(client.Close)
	data, err := client.NewContainer("shop", "data")
	must(t, err)
	b := newBench(t)
	b.store, err = cosmosrelay.NewStore(client, &cosmosrelay.Options{Database: "shop"})
	must(t, err)
	return b, data, wire
}

// letters returns n bytes that compress badly, 6.5 bits a byte.
func letters(n int) string {
	rng := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, n)
	for i := range text {
		for text[i] == 0 || strings.ContainsRune(`"\<>&`, rune(text[i])) {
			text[i] = byte(' ' + rng.IntN(95))
		}
	}
	return string(text)
}

// The events of an outbox without sequences arrive in the order of the calls, over the real SDK. An
// event that is nearly as large as a document may be, and does not compress, is refused and
// parked; later events of its key follow it, and other keys do not wait.
func TestEmittedEventsArriveInTheOrderOfTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, data, wire := newBackwards(t)
		outbox, err := cosmos.NewOutbox(data, nil)
		must(t, err)
		var actions map[string][]string
		var limit atomic.Int64
		limit.Store(1 << 20)
		b.publish = func(_ context.Context, g *relay.Group) error {
			for _, m := range g.Messages {
				if len(m.Body) > int(limit.Load()) {
					return relay.Refuse("too_large", "a message of %d bytes", len(m.Body))
				}
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, m := range g.Messages {
				key := strings.Clone(m.Key)
				actions[key] = append(actions[key], strings.Clone(m.Action))
			}
			return nil
		}
		actions = make(map[string][]string)
		stop := b.run()
		pad := letters(1_950_000)
		n := 0
		emit := func(key string, events int) {
			batch := outbox.Batch(key)
			for range events {
				n++
				batch.Emit(fmt.Sprintf("E%04d", n), nil)
			}
			_, err := batch.Commit(t.Context())
			must(t, err)
		}
		for i := range 20 {
			emit("k", 1+i%7)
			if i == 10 {
				time.Sleep(10 * time.Second) // the publisher of the test refuses a whole group
				n++
				_, err := outbox.Batch("k").Emit(fmt.Sprintf("E%04d", n), map[string]string{"pad": pad}).Commit(t.Context())
				must(t, err)
			}
			emit("other", 3)
			time.Sleep(10 * time.Second)
		}
		time.Sleep(5 * time.Minute)
		line, err := b.store.Parked.First(t.Context(), "k", 100, 1<<30)
		must(t, err)
		if len(line) == 0 || len(line[0].Document) < len(pad) || line[0].Reason != "too_large" {
			t.Errorf("%d events are parked; want the large one first: %s %s %d", len(line), line[0].Reason, line[0].Action, len(line[0].Document))
		}
		b.mu.Lock()
		if got := len(actions["other"]); got != 60 {
			t.Errorf("%d of 60 events of the other key were sent", got)
		}
		b.mu.Unlock()
		limit.Store(2 << 20)
		_, err = b.store.Parked.SetIntent(t.Context(), "k", relay.Intent{Verb: relay.VerbRetry, At: time.Now()})
		must(t, err)
		time.Sleep(5 * time.Minute)
		if err := stop(); err != nil {
			t.Errorf("the relay ended: %v", err)
		}
		if got := len(actions["k"]) + len(actions["other"]); got != n || !slices.IsSorted(actions["k"]) || !slices.IsSorted(actions["other"]) {
			t.Errorf("%d of %d events were sent:\n%v\n%v", got, n, actions["k"], actions["other"])
		}
		if wire.pages.Load() == 0 {
			t.Error("no page had a transaction of several events")
		}
	})
}

// An event of another writer leaves no room to park it, and the broker refuses it. Its key waits,
// other keys do not. The operator replaces the document by a shorter one and restarts the relay.
func TestUnparkableEventHoldsOnlyItsKeyUntilItIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, data, _ := newBackwards(t)
		b.publish = func(_ context.Context, g *relay.Group) error {
			if len(g.Messages[0].Body) > 1<<20 {
				return relay.Refuse("too_large", "a message of %d bytes", len(g.Messages[0].Body))
			}
			return nil
		}
		event := func(id, pad string) []byte {
			return fmt.Appendf(nil, `{"id":%q,"partitionKey":"k","type":"domainEvent","data":{"action":"E","pad":"%s"}}`, id, pad)
		}
		k := azcosmos.NewPartitionKeyString("k")
		_, err := data.CreateItem(t.Context(), k, event("large", letters(2<<20-150)), nil)
		must(t, err)
		stop := b.run()
		time.Sleep(10 * time.Second)
		_, err = data.CreateItem(t.Context(), k, event("next", ""), nil)
		must(t, err)
		outbox, err := cosmos.NewOutbox(data, nil)
		must(t, err)
		for range 6 {
			_, err = outbox.Batch("other").Emit("E", nil).Commit(t.Context())
			must(t, err)
			time.Sleep(5 * time.Second)
		}
		if got := strings.Fields(b.sent()); len(got) != 6 || slices.Contains(got, "next") {
			t.Errorf("%d of 6 events of the other key were sent, of the waiting key one: %t", len(got), slices.Contains(got, "next"))
		}
		if _, err := b.store.Parked.Gate(t.Context(), "k"); !fault.Is(err, fault.NotFound) {
			t.Errorf("the gate of the key, which cannot be parked: %v", err)
		}
		_, err = data.ReplaceItem(t.Context(), k, "large", event("large", "elsewhere"), nil)
		must(t, err)
		must(t, stop())
		again := b.run()
		time.Sleep(5 * time.Minute)
		if got := b.sent(); !strings.Contains(got, "large") || !strings.Contains(got, "next") {
			t.Errorf("after the restart: %s", got)
		}
		must(t, again())
	})
}
