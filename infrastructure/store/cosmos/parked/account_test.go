package parked_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"feedbox/application/relay"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/parked"
)

// account is an emulated account with session consistency.
type account struct {
	t        *testing.T
	emulator *cosmosemu.Server
}

// newStale returns an account whose replicas lag by up to two seconds.
func newStale(t *testing.T) *account { return newAccount(t, 2*time.Second) }

// newAccount returns an account whose replicas lag by up to lag.
func newAccount(t *testing.T, lag time.Duration) *account {
	t.Helper()
	s := &account{t: t, emulator: cosmosemu.StartT(t, &cosmosemu.Options{Partitions: 3, StaleReads: lag})}
	must(t, s.emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "parked", PartitionKey: []string{cosmos.PartitionKeyPath}}))
	return s
}

// process is the transport of one relay. If crash is not nil, it reports whether a request fails.
type process struct {
	next  *http.Client
	crash func(r *http.Request) bool
}

var errCrashed = errors.New("the process has stopped")

// Do implements policy.Transporter. A session token is valid for one range, so it is removed from
// queries of all ranges.
func (p *process) Do(r *http.Request) (*http.Response, error) {
	if p.crash != nil && p.crash(r) {
		return nil, errCrashed
	}
	if isQuery(r) && r.Header.Get("x-ms-documentdb-partitionkey") == "" {
		r.Header.Del("x-ms-session-token")
	}
	return p.next.Do(r)
}

func isQuery(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("x-ms-documentdb-isquery"), "true") || strings.EqualFold(r.Header.Get("x-ms-documentdb-query"), "true")
}

func isBatch(r *http.Request) bool { return r.Header.Get("x-ms-cosmos-is-batch-request") != "" }

// store returns the store of a process that has just started, without a session.
func (s *account) store(crash func(r *http.Request) bool) *parked.Store {
	s.t.Helper()
	client, err := cosmos.NewClient(cosmos.ClientConfig{
		Endpoint: s.emulator.Endpoint(), Key: s.emulator.Key(),
		Options: azcore.ClientOptions{Transport: &process{next: s.emulator.HTTPClient(), crash: crash}},
	})
	must(s.t, err)
	s.t.Cleanup(client.Close)
	container, err := client.NewContainer("contacts", "parked")
	must(s.t, err)
	store, err := parked.NewStore(container)
	must(s.t, err)
	return store
}

func (s *account) close(store *parked.Store, key string) error {
	e := parkedEvent("e1", []byte(`{}`))
	_, err := store.Park(s.t.Context(), key, []relay.ParkedEvent{e}, &relay.Closing{Event: "e1", At: e.ParkedAt})
	return err
}

func (s *account) closed(store *parked.Store) []string {
	s.t.Helper()
	keys, err := store.Closed(s.t.Context())
	must(s.t, err)
	slices.Sort(keys)
	return keys
}

// tries is the number of repetitions of a test whose fault appears about every second time.
const tries = 20

// open drains the gate of key as the drainer does.
func (s *account) open(store *parked.Store, key string) error {
	s.t.Helper()
	g, err := store.Gate(s.t.Context(), key)
	must(s.t, err)
	g, err = store.Remove(s.t.Context(), g, []relay.ParkedEvent{{ID: "e1"}}, nil)
	must(s.t, err)
	return store.Open(s.t.Context(), g)
}
