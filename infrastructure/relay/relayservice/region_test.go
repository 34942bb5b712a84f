package relayservice_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/cosmosrelay"
)

// inRegion sends all requests to one region, as a writer does that has found the new one.
type inRegion struct {
	next *http.Client
	host *atomic.Value
}

// Do implements policy.Transporter.
func (r inRegion) Do(req *http.Request) (*http.Response, error) {
	req.URL.Host = r.host.Load().(string)
	req.Host = req.URL.Host
	return r.next.Do(req)
}

// For minutes after a failover the account advertises a region that refuses requests with 403/3
// or 403/1008. That is an outage: nothing is parked because of it, and afterwards every event is
// sent in order, and what was refused by the broker is parked.
func TestRelayContinuesAfterARegionFailover(t *testing.T) {
	for name, disaster := range map[string]func(*cosmosemu.Server) error{
		"writes move": func(s *cosmosemu.Server) error { return s.FailOver("East US") },
		"the region is removed": func(s *cosmosemu.Server) error {
			return errors.Join(s.FailOver("East US"), s.RemoveRegion("West US"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				emulator := cosmosemu.StartT(t, &cosmosemu.Options{Regions: []string{"West US", "East US"}, Network: pipenet.New()})
				for id, key := range map[string]string{"data": cosmos.PartitionKeyPath, "leases": "/id", "parked": cosmos.PartitionKeyPath} {
					props := cosmosemu.ContainerProps{ID: id, PartitionKey: []string{key}}
					if id == "data" {
						props.DefaultTTL = -1
					}
					must(t, emulator.CreateContainer("shop", props))
				}
				client, err := cosmos.NewClient(cosmos.ClientConfig{Endpoint: emulator.Endpoint(), Key: emulator.Key(), Options: azcore.ClientOptions{
					Transport: emulator.HTTPClient(),
				}})
				must(t, err)
				t.Cleanup(client.Close)
				host := &atomic.Value{}
				move := func(region string) {
					host.Store(strings.TrimSuffix(strings.TrimPrefix(emulator.RegionEndpoint(region), "http://"), "/"))
				}
				move("West US")
				writer, err := cosmos.NewClient(cosmos.ClientConfig{Endpoint: "http://writer.example", Key: emulator.Key(), Options: azcore.ClientOptions{
					Transport: inRegion{emulator.HTTPClient(), host},
				}})
				must(t, err)
				t.Cleanup(writer.Close)
				data, err := writer.NewContainer("shop", "data")
				must(t, err)
				b := newBench(t)
				b.store, err = cosmosrelay.NewStore(client, &cosmosrelay.Options{Database: "shop"})
				must(t, err)
				var mu sync.Mutex
				var order []string
				b.publish = func(_ context.Context, g *relay.Group) error {
					mu.Lock()
					defer mu.Unlock()
					for _, m := range g.Messages {
						if m.ID == "poison" {
							return &relay.Error{Class: relay.Refused, Reason: "test", Err: errors.New("refused")}
						}
						order = append(order, strings.Clone(m.ID))
					}
					return nil
				}
				emit := func(key, id string) {
					t.Helper()
					_, err := data.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(key),
						fmt.Appendf(nil, `{"id":%q,"partitionKey":%q,"type":"domainEvent","data":{"action":"E"}}`, id, key), nil)
					must(t, err)
				}
				stop := b.run()
				emit("k", "e1")
				time.Sleep(time.Minute)
				before, err := emulator.Items("shop", "parked")
				must(t, err)
				must(t, disaster(emulator))
				move("East US")
				for n := 2; n <= 20; n++ {
					emit("k", fmt.Sprint("e", n))
					if n == 10 {
						emit("other", "poison")
					}
					time.Sleep(30 * time.Second) // ten minutes in all
				}
				if items, err := emulator.Items("shop", "parked"); err != nil || len(items) > len(before) {
					t.Errorf("%q is parked by the failover, %v", items, err)
				}
				emulator.AdvertiseRegions()
				time.Sleep(3 * time.Minute)
				emit("k", "e21")
				time.Sleep(time.Minute)
				if err := stop(); err != nil {
					t.Errorf("the relay ended: %v", err)
				}
				seen, next := map[string]bool{}, 1
				for _, id := range order {
					if seen[id] {
						continue // sent again, which is allowed
					}
					seen[id] = true
					if id != fmt.Sprint("e", next) {
						t.Errorf("%s is sent before e%d", id, next)
					}
					next++
				}
				if next != 22 {
					t.Errorf("sent %v, want all 21 events", order)
				}
				keys, err := b.store.Parked.Closed(t.Context())
				if err != nil || len(keys) != 1 || keys[0] != "other" {
					t.Errorf("the parked keys are %v, %v; want the one whose event the broker refuses", keys, err)
				}
				t.Logf("%d sends of 21 events", len(order))
			})
		})
	}
}
