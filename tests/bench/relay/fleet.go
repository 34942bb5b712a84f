package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/tests/bench/measure"
)

// fleetName selects fleet among the dimensions of growth.
const fleetName = "fleet"

// fleet runs real relay processes at default settings on a container of 2,000 physical ranges. Its
// figures check the constants with which large fleets are simulated and calculated: the size of a
// lease, the listings and writes of leases, the reads of the feed, the memory, and the times until the
// ranges are shared out evenly (the scale simulation of package changefeed; feedbox plan).
func fleet(ctx context.Context, r *measure.Run) (err error) {
	f := &fleetRun{Run: r, partitions: 250, splits: 3, relays: 4, settle: 85 * time.Second, length: time.Minute}
	if r.Quick {
		f.partitions, f.splits, f.relays, f.settle, f.length = 4, 1, 2, time.Second, 2*time.Second
	}
	f.ranges = f.partitions << f.splits
	if f.store, err = openStore(Shape{Partitions: f.partitions}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.store.close()) }()
	r.Step("fleet: splitting %d ranges into %d", f.partitions, f.ranges)
	for range f.splits {
		ranges, err := f.store.cosmos.PartitionKeyRanges(database, container)
		if err != nil {
			return err
		}
		for _, p := range ranges {
			if err := f.store.cosmos.Split(database, container, p.ID); err != nil {
				return err
			}
		}
	}
	if f.leases, err = cosmosfeed.NewLeaseStore(f.store.cosmos.Client(), database, "leases"); err != nil {
		return err
	}
	b, err := openBroker(ctx, false, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	f.environment = []string{
		"FEEDBOX_COSMOS_ENDPOINT=" + f.store.cosmos.Endpoint(), "FEEDBOX_COSMOS_KEY=" + f.store.cosmos.Key(),
		"FEEDBOX_SERVICEBUS_CONNECTION_STRING=" + b.bus.ConnectionString(),
	}
	return f.measure(ctx)
}

type fleetRun struct {
	*measure.Run
	partitions, splits, ranges, relays int
	settle, length                     time.Duration

	store       *store
	leases      *cosmosfeed.LeaseStore
	environment []string
	processes   []*process

	reads, listings, writes atomic.Int64
}

func (f *fleetRun) measure(ctx context.Context) (err error) {
	dir, binary, err := build(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	defer func() {
		for _, p := range f.processes {
			err = errors.Join(err, p.stop())
		}
	}()
	f.store.cosmos.Control(cosmosemu.OpAny, f.count)
	f.Step("fleet: starting %d relays", f.relays)
	began := time.Now()
	for range f.relays {
		p, err := startBinary(ctx, binary, f.environment)
		if err != nil {
			return err
		}
		f.processes = append(f.processes, p)
	}
	if err := f.balanced(ctx); err != nil {
		return err
	}
	started := time.Since(began)
	f.Step("fleet: waiting %v for the pauses to grow", f.settle)
	if err := wait(ctx, f.settle); err != nil {
		return err
	}
	idle, err := f.counted(ctx)
	records, listErr := f.leases.List(ctx, "")
	if err := errors.Join(err, listErr); err != nil {
		return err
	}
	size := 0
	for _, record := range records {
		size += len(record.Body)
	}
	resident, _, err := f.processes[0].memory()
	if err != nil {
		return err
	}
	loaded, changes, err := f.loaded(ctx)
	if err != nil {
		return err
	}
	f.Step("fleet: killing a relay")
	began = time.Now()
	if err := f.processes[0].kill(); err != nil {
		return err
	}
	f.processes = f.processes[1:]
	if err := f.balanced(ctx); err != nil {
		return err
	}
	each := float64(f.ranges)
	f.Add(
		measure.Cost("fleet, shared out after a start without leases", started.Seconds(), "s").Noting("%d ranges, %d relays", f.ranges, f.relays),
		measure.Cost("fleet, shared out after a kill", time.Since(began).Seconds(), "s").Noting("FEEDBOX_LEASE_EXPIRY is 20 s"),
		measure.Cost("fleet, size of a lease", float64(size)/float64(len(records)), "bytes").Noting("model: 700; %d records", len(records)),
		measure.Cost("fleet, memory of a relay process", float64(resident)/(1<<20), "MB").Noting("%d ranges of its own", f.ranges/f.relays),
		measure.Cost("fleet, idle, listings of leases", idle.listings/float64(f.relays), "per relay and minute").Noting("model: 12"),
		measure.Cost("fleet, idle, writes of leases", idle.writes/each, "per range and minute").Noting("model: 12"),
		measure.Cost("fleet, idle, reads of the feed", idle.reads/each, "per range and minute").Noting("model: at most 12"),
		measure.Cost("fleet, under load, writes of leases", loaded.writes/changes, "per change").Noting("model: at most one a second and range; %.0f changes/s", changes/60),
		measure.Cost("fleet, under load, reads of the feed", loaded.reads/changes, "per change"),
	)
	return nil
}

// count counts a request to the emulator.
func (f *fleetRun) count(c *cosmosemu.Call) *cosmosemu.Fault {
	switch {
	case c.Operation == cosmosemu.OpReadChangeFeed:
		f.reads.Add(1)
	case c.Container != "leases":
	case c.Operation == cosmosemu.OpQueryItems && c.Header.Get("x-ms-continuation") == "":
		f.listings.Add(1)
	case c.Operation == cosmosemu.OpReplaceItem, c.Operation == cosmosemu.OpCreateItem:
		f.writes.Add(1)
	}
	return nil
}

// requests are numbers of requests in a minute.
type requests struct{ reads, listings, writes float64 }

// counted counts the requests of a while.
func (f *fleetRun) counted(ctx context.Context) (requests, error) {
	f.Step("fleet: counting for %v", f.length)
	reads, listings, writes := f.reads.Load(), f.listings.Load(), f.writes.Load()
	err := wait(ctx, f.length)
	minute := func(n int64) float64 { return float64(n) / f.length.Minutes() }
	return requests{minute(f.reads.Load() - reads), minute(f.listings.Load() - listings), minute(f.writes.Load() - writes)}, err
}

// balanced waits until all ranges have an owner and no relay has more than one range above its share. It
// lists the leases itself, twice a second, before anything is counted.
func (f *fleetRun) balanced(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		owned, err := f.owned(ctx)
		if err != nil {
			return err
		}
		sum, most := 0, 0
		for _, n := range owned {
			sum, most = sum+n, max(most, n)
		}
		if relays := len(f.processes); sum == f.ranges && len(owned) == relays && most <= (f.ranges+relays-1)/relays {
			return nil
		}
		if err := wait(ctx, 500*time.Millisecond); err != nil {
			return fmt.Errorf("the relays own %v of %d ranges: %w", owned, f.ranges, err)
		}
	}
}

// owned returns the number of leases of each host.
func (f *fleetRun) owned(ctx context.Context) (map[string]int, error) {
	records, err := f.leases.List(ctx, "")
	if err != nil {
		return nil, err
	}
	owned := map[string]int{}
	for _, r := range records {
		var lease struct{ Owner, FeedRange any }
		if err := json.Unmarshal(r.Body, &lease); err != nil {
			return nil, err
		}
		if owner, _ := lease.Owner.(string); owner != "" && lease.FeedRange != nil {
			owned[owner]++
		}
	}
	return owned, nil
}

// loaded changes up to 200 contacts a second, each another one, and returns the requests and the changes in a minute.
func (f *fleetRun) loaded(ctx context.Context) (requests, float64, error) {
	const rate = 200
	into, err := f.store.cosmos.Client().NewContainer(database, container)
	if err != nil {
		return requests{}, 0, err
	}
	shape := Shape{Events: 1, Size: 512}
	group, ctx := errgroup.WithContext(ctx)
	var made atomic.Int64
	enough := make(chan struct{})
	group.Go(func() error {
		tick := time.NewTicker(time.Second / rate)
		defer tick.Stop()
		for c := 0; ; c++ {
			select {
			case <-enough:
				return nil
			case <-tick.C:
			}
			batch := into.NewTransactionalBatch(azcosmos.NewPartitionKeyString(key(c)))
			batch.UpsertItem(shape.contact(c, 1), nil)
			batch.CreateItem(shape.event(c, 1), nil)
			reply, err := into.ExecuteTransactionalBatch(ctx, batch, nil)
			if err == nil && !reply.Success {
				err = errors.New("a transaction was refused")
			}
			if err != nil {
				return err
			}
			made.Add(1)
		}
	})
	got, err := f.counted(ctx)
	close(enough)
	changes := float64(made.Load()) / f.length.Minutes()
	return got, changes, errors.Join(err, group.Wait())
}
