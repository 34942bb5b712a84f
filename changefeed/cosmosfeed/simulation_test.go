package cosmosfeed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/changefeed/internal/simulation"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
	"feedbox/tests/record"
	"feedbox/tests/testenv"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// emulated is the simulation's backend over the wire. Each host has a client with a host
// name of its own, because the SDK's caches are per process and host name, and hosts of a
// fleet do not share them.
type emulated struct {
	srv     *cosmosemu.Server
	network *pipenet.Network
	t       *testing.T
	data    *azcosmos.ContainerClient
}

func newEmulated(t *testing.T, partitions int, stale time.Duration) *emulated {
	t.Helper()
	network := pipenet.New()
	e := &emulated{t: t, network: network, srv: cosmosemu.StartT(t, &cosmosemu.Options{Network: network, Partitions: partitions, StaleReads: stale})}
	for _, c := range []cosmosemu.ContainerProps{{ID: "data", PartitionKey: []string{"/pk"}}, {ID: "leases", PartitionKey: []string{"/id"}, Partitions: 2}} {
		if err := e.srv.CreateContainer("db", c); err != nil {
			t.Fatal(err)
		}
	}
	client, err := e.client("writer")
	if err != nil {
		t.Fatal(err)
	}
	if e.data, err = client.NewContainer("db", "data"); err != nil {
		t.Fatal(err)
	}
	return e
}

// client connects to the emulator under the host's own name.
func (e *emulated) client(host string) (*azcosmos.Client, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 16, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return e.network.DialContext(ctx, network, e.srv.Addr())
	}}
	key, err := azcosmos.NewKeyCredential(e.srv.Key())
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(e.srv.Addr())
	if err != nil {
		return nil, err
	}
	endpoint := fmt.Sprintf("http://%s.%s:%s", host, strings.ReplaceAll(e.srv.Addr(), ":", "-"), port)
	client, err := azcosmos.NewClientWithKey(endpoint, key, cosmosfeed.ClientOptions(&azcosmos.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: transport}},
	}))
	if err != nil {
		return nil, err
	}
	e.t.Cleanup(func() {
		client.Close()
		transport.CloseIdleConnections()
	})
	return client, nil
}

func (e *emulated) Connect(host string) (changefeed.Feed, changefeed.LeaseStore, error) {
	client, err := e.client(host)
	if err != nil {
		return nil, nil, err
	}
	feed, err := cosmosfeed.NewFeed(client, "db", "data")
	if err != nil {
		return nil, nil, err
	}
	store, err := cosmosfeed.NewLeaseStore(client, "db", "leases")
	if err != nil {
		return nil, nil, err
	}
	return feed, store, nil
}

func (e *emulated) Put(ctx context.Context, key, id string, serial int) (int64, error) {
	body, err := json.Marshal(map[string]any{"id": id, "pk": key, "key": key, "serial": serial})
	if err != nil {
		return 0, err
	}
	resp, err := e.data.UpsertItem(ctx, azcosmos.NewPartitionKeyString(key), body, nil)
	if err != nil {
		return 0, err
	}
	_, lsn, _ := strings.Cut(*resp.SessionToken, "#")
	return strconv.ParseInt(lsn, 10, 64)
}

func (e *emulated) EPK(key string) string { return cosmosfeed.EPK(key) }

func (e *emulated) Split(epk string) {
	ranges, err := e.srv.PartitionKeyRanges("db", "data")
	if err != nil {
		e.t.Error(err)
	}
	for _, r := range ranges {
		if (changefeed.FeedRange{Min: r.MinInclusive, Max: r.MaxExclusive}).Has(epk) {
			if err := e.srv.Split("db", "data", r.ID); err != nil {
				e.t.Error(err)
			}
		}
	}
}

func (e *emulated) Merge(epk string) {
	ranges, err := e.srv.PartitionKeyRanges("db", "data")
	if err != nil {
		e.t.Error(err)
	}
	for i, r := range ranges {
		if i+1 < len(ranges) && (changefeed.FeedRange{Min: r.MinInclusive, Max: r.MaxExclusive}).Has(epk) {
			if err := e.srv.Merge("db", "data", r.ID, ranges[i+1].ID); err != nil {
				e.t.Error(err)
			}
		}
	}
}

func TestMain(m *testing.M) { testenv.Main(m) }

// TestSimulationOverTheWire is the simulation of package changefeed in which only time and
// the network are simulated: the SDK, HTTP and the emulator are real. Seeds:
// CHANGEFEED_WIRE_SEEDS, the first one CHANGEFEED_SEED.
func TestSimulationOverTheWire(t *testing.T) {
	first, count := testenv.Seed(t, "CHANGEFEED_SEED", 1), testenv.Count(t, "CHANGEFEED_WIRE_SEEDS", testenv.Sample(t, 2, 4))
	var sum simulation.Report
	for seed := first; seed < first+uint64(count); seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backend := newEmulated(t, 1+int(seed%4), time.Duration(seed%3)*time.Second)
				report, err := simulation.Run(t.Context(), backend, simulation.Config{
					Seed: seed, Hosts: 3, MaxHosts: 4, Keys: 24, Length: 90 * time.Second, Pace: 100 * time.Millisecond,
					Stops: true, Suspends: seed%2 == 0, Splits: true, Drift: 0.03,
					Options: changefeed.Options{
						Processor: "sim", LeasePrefixHost: "account", Expiry: 10 * time.Second, Acquire: 2 * time.Second, AcquireFast: 500 * time.Millisecond,
						Lanes: 1 + int(seed%3), MaxItems: 10, PollMin: 300 * time.Millisecond, PollMax: 3 * time.Second, RetryMax: 5 * time.Second,
						DrainTimeout: 3 * time.Second,
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				if err := report.Err(); err != nil {
					t.Error(err)
				}
				t.Log(report)
				sum.Add(report)
			})
		})
	}
	record.Write(t, record.Result{
		Fault: "F24", Name: "the same over azcosmos and the emulator", Seed: sum.Seed, Injections: int64(sum.Runs), Of: 200, Events: int64(sum.Written),
		DuplicatesSent: int64(sum.Redelivered), OrderViolations: sum.Count("V2", "V3"), Lost: sum.Count("V1", "V4"),
		Recovery: sum.Owned.Seconds(), Simulated: sum.Simulated.Hours(), Note: sum.String(),
	})
}
