package main

import (
	"bytes"
	"context"
	"encoding/json"
	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/lab/feedboxtest"
	"feedbox/infrastructure/store/cosmos"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"example.com/orders/open"
)

// TestMain runs the tests, or one part of the service in a process that a test kills.
func TestMain(m *testing.M) {
	part := os.Getenv("ORDERS_TEST_PART")
	if part == "" {
		os.Exit(m.Run())
	}
	k, c, err := pairOf(context.Background())
	if err == nil {
		err = runOn(context.Background(), part, k, c)
	}
	fmt.Fprintln(os.Stderr, part, err) // the process should be killed and not end
	os.Exit(1)
}

// world is a store and a broker that are set up for the service. The parts of the service find them by
// the environment.
type world struct {
	t *testing.T
	keeper
	carrier
	azure  bool              // Cosmos DB and Service Bus, as in main.go
	store  *cosmosemu.Server // nil with another store
	listen string            // the address of the API
}

// newWorld starts the emulators, or uses the servers that tests/pairs has set in the environment.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t}
	w.listen = freeAddress(t)
	t.Setenv("ORDERS_LISTEN", w.listen)
	t.Setenv("ORDERS_LEASE_EXPIRY", "2s")
	cosmos := os.Getenv("ORDERS_TEST_POSTGRES") == "" && os.Getenv("ORDERS_TEST_FIRESTORE") == ""
	name := fmt.Sprint("orders-", rand.Uint64())
	t.Setenv("ORDERS_TEST_NAME", name)
	url, endpoint := os.Getenv("ORDERS_TEST_RABBITMQ"), os.Getenv("ORDERS_TEST_SQS")
	w.azure = cosmos && url == "" && endpoint == ""
	emulators := feedboxtest.Start(t, &feedboxtest.Options{
		Database: database, Topic: topic, Containers: []string{"totals"}, Subscriptions: []string{open.Name}, Loopback: true, NoRelay: true,
	})
	t.Setenv("ORDERS_COSMOS", emulators.Store.Endpoint())
	t.Setenv("ORDERS_COSMOS_KEY", emulators.Store.Key())
	t.Setenv("ORDERS_SERVICEBUS", emulators.Broker.ConnectionString())
	if cosmos {
		w.store = emulators.Store
	}
	if endpoint != "" {
		queue, err := sqs.Declare(t.Context(), sqsClient(endpoint), name+".fifo")
		must(t, err)
		t.Setenv("ORDERS_TEST_QUEUE", queue)
	}
	var err error
	w.keeper, w.carrier, err = pairOf(t.Context())
	must(t, err)
	if k, ok := w.keeper.(inPostgres); ok {
		must(t, k.create(t.Context()))
	}
	if c, ok := w.carrier.(byRabbitMQ); ok {
		client, err := rabbitmq.NewClient(rabbitmq.Config{URL: url})
		must(t, err)
		must(t, rabbitmq.Declare(t.Context(), client, name, c.group()))
		must(t, client.Close())
	}
	return w
}

// pairOf returns the store and the broker that the environment names.
func pairOf(ctx context.Context) (keeper, carrier, error) {
	var k keeper
	var err error
	switch url, project := os.Getenv("ORDERS_TEST_POSTGRES"), os.Getenv("ORDERS_TEST_FIRESTORE"); {
	case url != "":
		k, err = openPostgres(ctx, url)
	case project != "":
		k, err = openFirestore(ctx, project)
	default:
		var client *azcosmos.Client
		client, err = cosmos.NewClient(cosmos.ClientConfig{Endpoint: os.Getenv("ORDERS_COSMOS"), Key: os.Getenv("ORDERS_COSMOS_KEY")})
		k = inCosmos{client}
	}
	switch url, endpoint := os.Getenv("ORDERS_TEST_RABBITMQ"), os.Getenv("ORDERS_TEST_SQS"); {
	case url != "":
		return k, byRabbitMQ{url, os.Getenv("ORDERS_TEST_NAME")}, err
	case endpoint != "":
		return k, bySQS{sqsClient(endpoint), os.Getenv("ORDERS_TEST_QUEUE")}, err
	default:
		return k, byServiceBus{servicebus.ClientConfig{ConnectionString: os.Getenv("ORDERS_SERVICEBUS")}}, err
	}
}

// freeAddress returns an address at which a killed API can be started again. The port is below those
// of outgoing connections, because one of them could take it in between.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprint("127.0.0.1:", 15000+rand.IntN(17000))
		if l, err := net.Listen("tcp", address); err == nil {
			must(t, l.Close())
			return address
		}
	}
	t.Fatal("there is no free port")
	return ""
}

// seedOf returns the seed of random choices, FEEDBOX_SEED or 1, and logs it.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("FEEDBOX_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	t.Logf("seed %d (FEEDBOX_SEED=%d repeats it)", seed, seed)
	return seed
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// answer is an answer of the API.
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
	_ = json.Unmarshal(text, &a.view) // a problem document has other members
	return a, err
}

// up waits until the API answers.
func (w *world) up() {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if a, err := w.call(w.t.Context(), http.MethodGet, "", ""); err == nil && a.status == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatal("the API does not answer")
		}
	}
}

// counted returns the total that the consumer has stored of an order.
func (w *world) counted(id string) open.Total {
	w.t.Helper()
	t, _ := w.total(w.t.Context(), id) // there may be none yet
	return t
}

// eventually waits up to a minute until ok returns true.
func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("not after a minute: %s", what)
		}
	}
}
