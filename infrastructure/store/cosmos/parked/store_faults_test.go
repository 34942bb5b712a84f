package parked_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"feedbox/application/relay"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/parked"
)

// brokenStore fails one request, the left-th from now on; 0 = none.
type brokenStore struct {
	next *http.Client
	left int
}

// Do implements policy.Transporter.
func (b *brokenStore) Do(r *http.Request) (*http.Response, error) {
	if b.left > 0 {
		if b.left--; b.left == 0 {
			return nil, brokenError{}
		}
	}
	return b.next.Do(r)
}

type brokenError struct{}

func (brokenError) Error() string { return "the store is broken" }

// NonRetriable makes the SDK return the error without a retry.
func (brokenError) NonRetriable() {}

// If any request of an operation fails, the operation returns an error.
func TestEveryFailureOfTheServiceIsReturned(t *testing.T) {
	var many []relay.ParkedEvent
	for i := range 100 { // more than one transaction takes
		many = append(many, parkedEvent(fmt.Sprintf("e%03d", i), []byte(`{}`)))
	}
	at := time.Now()
	closing := &relay.Closing{Event: "e000", At: at}
	for name, op := range map[string]struct {
		parked int // parked events of the key before
		do     func(ctx context.Context, store *parked.Store, g relay.Gate) error
		excuse int // the request that may fail, because its effect is detected later
	}{
		"park the first": {0, func(ctx context.Context, store *parked.Store, _ relay.Gate) error {
			_, err := store.Park(ctx, "k", many, closing)
			return err
		}, 0},
		"park again": {100, func(ctx context.Context, store *parked.Store, _ relay.Gate) error {
			_, err := store.Park(ctx, "k", append(many[:1:1], parkedEvent("new", []byte(`{}`))), nil)
			return err
		}, 0},
		"gate": {1, func(ctx context.Context, store *parked.Store, _ relay.Gate) error {
			_, err := store.Gate(ctx, "k")
			return err
		}, 0},
		"closed": {1, func(ctx context.Context, store *parked.Store, _ relay.Gate) error {
			_, err := store.Closed(ctx)
			return err
		}, 0},
		"gates": {1, func(ctx context.Context, store *parked.Store, _ relay.Gate) error {
			_, err := store.Gates(ctx)
			return err
		}, 0},
		"first": {1, func(ctx context.Context, store *parked.Store, _ relay.Gate) error {
			_, err := store.First(ctx, "k", 5, 1<<30)
			return err
		}, 0},
		"intents": {1, func(ctx context.Context, store *parked.Store, _ relay.Gate) error {
			_, err := store.Intents(ctx)
			return err
		}, 0},
		"update": {1, func(ctx context.Context, store *parked.Store, g relay.Gate) error {
			_, err := store.Update(ctx, g)
			return err
		}, 0},
		"set an intent": {1, func(ctx context.Context, store *parked.Store, _ relay.Gate) error {
			_, err := store.SetIntent(ctx, "k", relay.Intent{Verb: relay.VerbRetry, At: at})
			return err
		}, 0},
		"remove": {100, func(ctx context.Context, store *parked.Store, g relay.Gate) error {
			_, err := store.Remove(ctx, g, many[:90], &relay.Skipped{Event: many[0]})
			return err
		}, 0},
		"open": {1, func(ctx context.Context, store *parked.Store, g relay.Gate) error {
			g, err := store.Remove(ctx, g, many[:1], nil)
			if err != nil {
				return err
			}
			return store.Open(ctx, g)
		}, 3}, // its entry in the list may stay
	} {
		for n := 1; ; n++ {
			emulator := cosmosemu.StartT(t, &cosmosemu.Options{Partitions: 1})
			must(t, emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "parked", PartitionKey: []string{cosmos.PartitionKeyPath}}))
			broken := &brokenStore{next: emulator.HTTPClient()}
			client, err := cosmos.NewClient(cosmos.ClientConfig{Endpoint: emulator.Endpoint(), Key: emulator.Key(), Options: azcore.ClientOptions{Transport: broken}})
			must(t, err)
			t.Cleanup(client.Close)
			container, err := client.NewContainer("contacts", "parked")
			must(t, err)
			store, err := parked.NewStore(container)
			must(t, err)
			_, err = store.Closed(t.Context()) // the SDK learns of the account
			must(t, err)
			var gate relay.Gate
			if op.parked > 0 {
				parkAt(t, store, "k", closing, many[:op.parked]...)
				gate, err = store.Gate(t.Context(), "k")
				must(t, err)
			}
			broken.left = n
			err = op.do(t.Context(), store, gate)
			if broken.left > 0 {
				broken.left = 0
				must(t, err)
				break // it has fewer requests
			}
			if err == nil && n != op.excuse {
				t.Errorf("%s: its request %d failed, and it says nothing", name, n)
			}
		}
	}
}
