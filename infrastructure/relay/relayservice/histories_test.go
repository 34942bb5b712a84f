package relayservice_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/cosmos/cosmosrelay"
	"feedbox/tests/testenv"
)

// lossWorld is a relay of an account that loses the last writes of some partitions.
type lossWorld struct {
	t        *testing.T
	emulator *cosmosemu.Server
	data     *azcosmos.ContainerClient
	bench    *bench
	ttl      int // of events, in seconds; 0 for none

	mu    sync.Mutex // guards order
	order []string
}

func newLossWorld(t *testing.T) *lossWorld {
	t.Helper()
	return newLossWorldOn(t, &cosmosemu.Options{KeepWrites: true}, &cosmosrelay.Options{Database: "shop"})
}

func newLossWorldOn(t *testing.T, account *cosmosemu.Options, o *cosmosrelay.Options) *lossWorld {
	t.Helper()
	account.Network = pipenet.New()
	w := &lossWorld{t: t, emulator: cosmosemu.StartT(t, account), bench: newBench(t)}
	for id, key := range map[string]string{"data": cosmos.PartitionKeyPath, "leases": "/id", "parked": cosmos.PartitionKeyPath} {
		props := cosmosemu.ContainerProps{ID: id, PartitionKey: []string{key}}
		if id == "data" {
			props.DefaultTTL = -1
		}
		must(t, w.emulator.CreateContainer("shop", props))
	}
	client, err := cosmos.NewClient(cosmos.ClientConfig{Endpoint: w.emulator.Endpoint(), Key: w.emulator.Key(), Options: azcore.ClientOptions{
		Transport: w.emulator.HTTPClient(),
	}})
	must(t, err)
	t.Cleanup(client.Close)
	w.data, err = client.NewContainer("shop", "data")
	must(t, err)
	w.bench.store, err = cosmosrelay.NewStore(client, o)
	must(t, err)
	w.bench.publish = func(_ context.Context, g *relay.Group) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, m := range g.Messages {
			if strings.HasPrefix(m.ID, "poison") {
				return &relay.Error{Class: relay.Refused, Reason: "test", Err: errors.New("refused")}
			}
			w.order = append(w.order, strings.Clone(m.ID))
		}
		return nil
	}
	return w
}

func (w *lossWorld) emit(key string, ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		_, err := w.data.CreateItem(w.t.Context(), azcosmos.NewPartitionKeyString(key),
			fmt.Appendf(nil, `{"id":%q,"partitionKey":%q,"type":"domainEvent","ttl":%d,"data":{"action":"E"}}`, id, key, cmp.Or(w.ttl, -1)), nil)
		must(w.t, err)
	}
}

// last returns the LSN of the only partition of a container.
func (w *lossWorld) last(container string) uint64 {
	w.t.Helper()
	ranges, err := w.emulator.PartitionKeyRanges("shop", container)
	must(w.t, err)
	return ranges[0].LSN
}

// lose calls emit, and makes the containers lose all writes since before that.
func (w *lossWorld) lose(containers string, emit func()) {
	w.t.Helper()
	time.Sleep(5 * time.Minute)
	kept := map[string]uint64{}
	for _, c := range strings.Fields(containers) {
		kept[c] = w.last(c)
	}
	emit()
	time.Sleep(5 * time.Minute)
	for c, lsn := range kept {
		must(w.t, w.emulator.LoseWrites("shop", c, "0", lsn))
	}
	time.Sleep(5 * time.Minute)
}

// parked returns the parked keys with their numbers of events.
func (w *lossWorld) parked() (string, error) {
	gates, err := w.bench.store.Parked.Gates(w.t.Context())
	var out []string
	for _, g := range gates {
		out = append(out, fmt.Sprint(g.Key, ":", g.Events))
	}
	return strings.Join(out, " "), err
}

// After an unplanned failover the partitions of the leases and of the parked events may each have
// lost their last writes. New events are sent in order, and those of a parked key are parked. The
// lost parked events are gone: neither the feed nor the leases know that they were not sent, so
// an operator must rewind the leases or replay their keys. A running relay keeps its position
// when its leases lose writes; a relay that starts then sends the events after them again.
func TestRelayContinuesAfterLeasesOrParkedEventsLostWrites(t *testing.T) {
	for lost, want := range map[string]string{"leases": "p:3 q:1", "parked": "p:2", "leases parked": "p:2"} {
		t.Run(lost, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLossWorld(t)
				stop := w.bench.run()
				w.emit("k", "a1", "a2", "a3")
				w.emit("p", "poison1")
				w.lose(lost, func() {
					w.emit("k", "b1", "b2", "b3")
					w.emit("p", "poison2")
					w.emit("q", "poison3")
				})
				w.emit("k", "c1", "c2")
				w.emit("p", "c3")
				time.Sleep(10 * time.Minute)
				got, err := w.parked()
				if err := errors.Join(err, stop()); err != nil {
					t.Error(err)
				}
				if got != want {
					t.Errorf("parked %q, want %q", got, want)
				}
				if sent := strings.Join(slices.Compact(w.order), " "); !strings.HasSuffix(sent, "b1 b2 b3 c1 c2") {
					t.Errorf("sent %s", sent)
				}
			})
		})
	}
}

// If the data lost writes, new changes reuse the numbers of lost ones. The relay holds the range, in
// every combination with the other partitions, until an operator restarts its leases. Then it
// sends everything in the container again, in order. A parked event that the data lost (q) stays
// parked, because nothing shows that its change is gone.
func TestRelayIsHeldAfterDataLostWritesUntilRestart(t *testing.T) {
	for lost, want := range map[string]string{"data": "p:2 q:1", "data leases": "p:2 q:1", "data parked": "p:2", "data leases parked": "p:2"} {
		t.Run(lost, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLossWorld(t)
				stop := w.bench.run()
				w.emit("k", "a1", "a2", "a3")
				w.emit("p", "poison1")
				w.lose(lost, func() {
					w.emit("k", "b1", "b2", "b3")
					w.emit("q", "poison2")
				})
				w.emit("k", "c1", "c2", "c3", "c4", "c5")
				w.emit("p", "d1")
				time.Sleep(time.Duration(testenv.Sample(t, 10, 60)) * time.Minute)
				if sent := strings.Join(w.order, " "); sent != "a1 a2 a3 b1 b2 b3" {
					t.Errorf("sent %s before the restart", sent)
				}
				operator := changefeed.NewOperator(w.bench.store.Feed, w.bench.store.Leases, &changefeed.OperatorOptions{Processor: "feedbox"})
				lags, err := operator.Lag(t.Context())
				if err != nil || len(lags) != 1 || lags[0].Known || !strings.Contains(lags[0].Error, "ahead of the feed") {
					t.Errorf("lag %+v, error %v; want it unknown, and the reason", lags, err)
				}
				must(t, operator.Restart(t.Context()))
				time.Sleep(10 * time.Minute)
				got, err := w.parked()
				if err := errors.Join(err, stop()); err != nil {
					t.Error(err)
				}
				if got != want {
					t.Errorf("parked %q, want %q", got, want)
				}
				if sent := strings.Join(w.order, " "); sent != "a1 a2 a3 b1 b2 b3 a1 a2 a3 c1 c2 c3 c4 c5" {
					t.Errorf("sent %s", sent)
				}
			})
		})
	}
}

// A restore within the account keeps the container's name and resource id, and counts changes
// again. The relay must not look idle; after a restart from the beginning everything is sent.
func TestRestoredContainerHoldsTheRelayUntilRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		stop := b.run()
		for n := 1; n <= 50; n++ {
			b.put("k", fmt.Sprintf("e%d", n), n)
		}
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		b.feed.Restore(0)
		stop = b.run()
		for n := 1; n <= 5; n++ {
			b.put("new", fmt.Sprintf("n%d", n), n)
		}
		time.Sleep(24 * time.Hour)
		operator := changefeed.NewOperator(b.store.Feed, b.store.Leases, &changefeed.OperatorOptions{Processor: "feedbox"})
		lag, err := operator.Lag(t.Context())
		if err != nil || len(lag) != 1 || lag[0].Known || !strings.Contains(lag[0].Error, "the checkpoint is ahead of the feed") {
			t.Errorf("the operator's lag %+v, error %v; want it unknown, and the reason", lag, err)
		}
		if got := b.sent(); strings.Contains(got, "n") {
			t.Errorf("sent before the restart: %s", got)
		}
		if err := operator.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := b.sent(); !strings.HasSuffix(got, " e50 n1 n2 n3 n4 n5") {
			t.Errorf("sent after the restart: %s", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// With the feed of all versions, events that expired while no relay ran are sent, in the order of each key.
func TestExpiredEventsAreSentFromTheFeedOfAllVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLossWorldOn(t, &cosmosemu.Options{VersionRetention: 7 * 24 * time.Hour, Partitions: 2}, &cosmosrelay.Options{Database: "shop", AllVersions: true})
		w.ttl, w.bench.o.Start = 60, changefeed.FromNow()
		stop := w.bench.run()
		time.Sleep(time.Minute)
		w.emit("p", "p1")
		w.emit("q", "q1")
		time.Sleep(time.Minute)
		must(t, stop())
		for i := 2; i < 30; i++ {
			w.emit("p", fmt.Sprint("p", i))
			w.emit("q", fmt.Sprint("q", i))
		}
		time.Sleep(time.Hour)
		if left, err := w.bench.store.Events.OfKey(t.Context(), "p"); err != nil || len(left) > 0 {
			t.Fatalf("%d events are stored, error %v", len(left), err)
		}
		stop = w.bench.run()
		time.Sleep(time.Minute)
		must(t, stop())
		next := map[string]int{"p": 1, "q": 1}
		for _, id := range w.order {
			if key := id[:1]; id == fmt.Sprint(key, next[key]) {
				next[key]++
			} else {
				t.Fatalf("sent: %v", w.order)
			}
		}
		if next["p"] != 30 || next["q"] != 30 {
			t.Errorf("sent: %v", w.order)
		}
	})
}

// The feed of all versions cannot be read from the beginning of a container that was created again. The relay
// holds its ranges with an error until an operator moves the leases to now, and then sends new events. Those
// between are lost, as cmd/feedbox/README.md says.
func TestAllVersionsHoldTheRelayUntilRewind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLossWorldOn(t, &cosmosemu.Options{VersionRetention: 7 * 24 * time.Hour}, &cosmosrelay.Options{Database: "shop", AllVersions: true})
		w.bench.o.Start = changefeed.FromNow()
		stop := w.bench.run()
		time.Sleep(time.Minute)
		w.emit("k", "a1", "a2", "a3")
		time.Sleep(time.Minute)
		_, err := w.data.Delete(w.t.Context(), nil)
		must(w.t, err)
		must(w.t, w.emulator.CreateContainer("shop", cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{cosmos.PartitionKeyPath}, DefaultTTL: -1}))
		w.emit("k", "b1", "b2")
		time.Sleep(10 * time.Minute)
		operator := changefeed.NewOperator(w.bench.store.Feed, w.bench.store.Leases, &changefeed.OperatorOptions{Processor: "feedbox"})
		lags, err := operator.Lag(t.Context())
		if err != nil || len(lags) != 1 || lags[0].Known || !strings.Contains(lags[0].Error, "the feed of all versions has no beginning and no times: rewind the lease to now") {
			t.Errorf("lag %+v, error %v; want it unknown, and the reason", lags, err)
		}
		must(t, operator.Rewind(t.Context(), changefeed.FromNow()))
		time.Sleep(time.Minute)
		w.emit("k", "c1", "c2")
		time.Sleep(time.Minute)
		lags, err = operator.Lag(t.Context())
		if err != nil || len(lags) != 1 || !lags[0].Known || lags[0].Transactions != 0 {
			t.Errorf("lag after the rewind %+v, error %v", lags, err)
		}
		must(t, stop())
		if sent := strings.Join(w.order, " "); sent != "a1 a2 a3 c1 c2" {
			t.Errorf("sent %s", sent)
		}
	})
}
