package main

import (
	"bytes"
	"context"
	"encoding/json"
	"feedbox/infrastructure/cosmos"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"example.com/orders/open"
)

// world is both emulators with what the service needs in them; the parts of the service
// find it in the environment.
type world struct {
	t      *testing.T
	store  *cosmosemu.Server
	bus    *busemu.Server
	client *azcosmos.Client
	listen string // the address of the API
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, store: cosmosemu.StartT(t), bus: busemu.StartT(t)}
	for name, key := range map[string]string{"data": "/partitionKey", "totals": "/partitionKey", "leases": "/id", "parked": "/partitionKey"} {
		props := cosmosemu.ContainerProps{ID: name, PartitionKey: []string{key}}
		if name == "data" || name == "totals" {
			props.DefaultTTL = -1 // documents may have a TTL of their own
		}
		must(t, w.store.CreateContainer(database, props))
	}
	must(t, w.bus.CreateTopic(t.Context(), busemu.Topic{
		Name: topic, RequiresDuplicateDetection: true,
		Subscriptions: []busemu.Subscription{{Name: open.Name, RequiresSession: true}, {Name: "judge", RequiresSession: true}},
	}))
	var err error
	w.client, err = cosmos.NewClient(cosmos.ClientConfig{Endpoint: w.store.Endpoint(), Key: w.store.Key()})
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w.listen = l.Addr().String()
	must(t, l.Close())
	for name, value := range map[string]string{
		"ORDERS_COSMOS": w.store.Endpoint(), "ORDERS_COSMOS_KEY": w.store.Key(), "ORDERS_SERVICEBUS": w.bus.ConnectionString(),
		"ORDERS_LISTEN": w.listen, "ORDERS_LEASE_EXPIRY": "2s",
	} {
		t.Setenv(name, value)
	}
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// answer is what the API says.
type answer struct {
	status   int
	etag     string
	replayed bool
	view     struct {
		ID      string
		Version int
		Total   int64
		Status  string
		Lines   []struct{ Pieces int }
	}
}

// call sends a request; headers are name, value, name, value.
func (w *world) call(ctx context.Context, method, path, body string, headers ...string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+w.listen+"/api/orders"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return answer{}, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	a := answer{status: reply.StatusCode, etag: reply.Header.Get("ETag"), replayed: reply.Header.Get("Idempotency-Replayed") == "true"}
	_ = json.Unmarshal(text, &a.view) // a problem has other members
	return a, err
}

// up waits until the API answers.
func (w *world) up() {
	w.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if a, err := w.call(w.t.Context(), http.MethodGet, "", ""); err == nil && a.status == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatal("the API does not answer")
		}
	}
}

// total returns what the consumer keeps of an order.
func (w *world) total(id string) (t open.Total) {
	w.t.Helper()
	container, err := w.client.NewContainer(database, "totals")
	must(w.t, err)
	reply, err := container.ReadItem(w.t.Context(), azcosmos.NewPartitionKeyString(id), open.Name+"-total", nil)
	if err == nil {
		must(w.t, json.Unmarshal(reply.Value, &t))
	}
	return t
}

// eventually waits until something is so.
func (w *world) eventually(what string, so func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("not after a minute: %s", what)
		}
	}
}
