package changefeed_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/internal/simulation"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
	"feedbox/tests/record"
	"feedbox/tests/spec/steps"
	"feedbox/tests/testenv"
)

// memBackend is an in-memory container and store.
type memBackend struct {
	feed  *memfeed.Container
	store *memstore.Store
}

func (b *memBackend) Connect(string) (changefeed.Feed, changefeed.LeaseStore, error) {
	return b.feed, b.store, nil
}

func (b *memBackend) Put(_ context.Context, key, id string, serial int) (int64, error) {
	return b.feed.Put(memfeed.Document{Key: key, ID: id, Data: nil, More: map[string]any{"serial": serial, "key": key}}), nil
}

func (b *memBackend) EPK(key string) string { return memfeed.EPK(key) }
func (b *memBackend) Split(epk string)      { b.feed.Split(epk) }
func (b *memBackend) Merge(epk string)      { b.feed.Merge(epk) }

// simConfig varies the kind of run with the seed.
func simConfig(seed uint64) simulation.Config {
	return simulation.Config{
		Seed: seed, Stops: seed%4 != 0, Suspends: seed%4 == 3, Splits: seed%3 != 0, NoDelete: seed%5 == 4, Drift: 0.03,
		Options: changefeed.Options{
			Processor: "sim", Expiry: 10 * time.Second, Acquire: 2 * time.Second, AcquireFast: 500 * time.Millisecond,
			Lanes: 1 + int(seed%4)*2, MaxItems: 10, PollMin: 200 * time.Millisecond, PollMax: 5 * time.Second, RetryMax: 5 * time.Second,
			CheckpointEvery: time.Duration(seed%3) * 700 * time.Millisecond, DrainTimeout: 3 * time.Second,
		},
	}
}

// seeds returns the first seed and the number of seeds of a test: CHANGEFEED_SEED, and CHANGEFEED_SEEDS
// or 60, of which a sample is 10.
func seeds(t *testing.T) (first uint64, count int) {
	t.Helper()
	return testenv.Seed(t, "CHANGEFEED_SEED", 1), testenv.Count(t, "CHANGEFEED_SEEDS", testenv.Sample(t, 10, 60))
}

func TestSimulation(t *testing.T) {
	first, seeds := seeds(t)
	var sum simulation.Report
	failed := 0
	for i := range uint64(seeds) {
		n := first + i
		ok := t.Run(fmt.Sprintf("seed=%d", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config, log := simConfig(n), steps.New()
				if log != nil { // shorter, because the checker takes a millisecond a step
					config.Steps, config.Hosts, config.MaxHosts, config.Keys, config.Length, config.Pace = log, 3, 4, 24, time.Minute, 100*time.Millisecond
				}
				backend := &memBackend{
					feed:  memfeed.New(&memfeed.Options{Ranges: 1 + int(n%6), StaleRanges: n%2 == 0}),
					store: memstore.New(nil),
				}
				report, err := simulation.Run(t.Context(), backend, config)
				if err != nil {
					t.Fatal(err)
				}
				if err := log.Write(fmt.Sprintf("changefeed-%d", n)); err != nil {
					t.Error(err)
				}
				if err := report.Err(); err != nil {
					t.Error(err)
				}
				if !config.Stops && report.Zombies > 0 {
					t.Errorf("%d zombies although no host was stopped", report.Zombies)
				}
				t.Log(report)
				sum.Add(report)
			})
		})
		if failed += map[bool]int{false: 1}[ok]; failed == 3 {
			break
		}
	}
	record.Write(t, record.Result{
		Fault: "F24", Name: "simulated hosts, faults and splits over a store in memory", Seed: sum.Seed, Injections: int64(sum.Runs), Of: 1000, Events: int64(sum.Written),
		DuplicatesSent: int64(sum.Redelivered), OrderViolations: sum.Count("V2", "V3"), Lost: sum.Count("V1", "V4"),
		Recovery: sum.Owned.Seconds(), Simulated: sum.Simulated.Hours(), Note: sum.String(),
	})
}
