package world

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/infra"
)

// cosmosPart is the Cosmos DB emulator.
type cosmosPart struct {
	hooks hooks[cosmosemu.Call, cosmosemu.Fault]
	skew  atomic.Int64 // of the clock, in nanoseconds
	using sync.RWMutex // read-locked while the world reads from the emulator

	mu       sync.Mutex // guards the fields below
	srv      *cosmosemu.Server
	nic      *nic // nil while it does not run
	disk     *vfs.MemFS
	random   *rand.Rand
	writes   []verify.Checkpoint
	setAside map[string]int // by event, see verify.Run
	requests map[cosmosemu.Operation]int
}

func (c *cosmosPart) init(w *World) error {
	c.random, c.requests, c.setAside = w.Random(1), map[cosmosemu.Operation]int{}, map[string]int{}
	if w.topology.OnDisk {
		c.disk = vfs.NewCrashableMem()
	}
	if err := c.start(w); err != nil {
		return err
	}
	policies, err := infra.IndexingPolicies()
	if err != nil {
		return fmt.Errorf("read the deployed indexing policies: %w", err)
	}
	if w.topology.parks() {
		if err := c.srv.CreateContainer(Database, cosmosemu.ContainerProps{ID: inboxName, PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1}); err != nil {
			return err
		}
	}
	for _, o := range w.outboxes {
		for _, props := range []cosmosemu.ContainerProps{
			{ID: o.data, PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1, Partitions: w.topology.Partitions, IndexingPolicy: policies["data"]},
			{ID: o.leases, PartitionKey: []string{"/id"}, IndexingPolicy: policies["leases"]},
			{ID: o.parked, PartitionKey: []string{"/partitionKey"}, IndexingPolicy: policies["parked"]},
		} {
			if err := c.srv.CreateContainer(Database, props); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *cosmosPart) server() *cosmosemu.Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.srv
}

func (c *cosmosPart) current() *nic {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nic
}

func (c *cosmosPart) start(w *World) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nic != nil {
		return nil
	}
	n := newNIC(w.network)
	listener, err := n.listen(cosmosAddr)
	if err != nil {
		return err
	}
	o := &cosmosemu.Options{
		Listener: listener, Host: cosmosAddr, StaleReads: w.topology.StaleReads, Seed: w.seed | 1, Throughput: w.topology.Throughput,
		Now: func() time.Time { return time.Now().Add(time.Duration(c.skew.Load())) },
	}
	if c.disk != nil {
		o.FS, o.DataDir = c.disk, "data"
	}
	if c.srv, err = cosmosemu.Start(o); err != nil {
		return fmt.Errorf("start the Cosmos DB emulator: %w", err)
	}
	c.nic = n
	c.srv.Control(cosmosemu.OpAny, func(call *cosmosemu.Call) *cosmosemu.Fault {
		c.note(w, call)
		if isMetadata(call.Method, call.Path) {
			return nil
		}
		return c.hooks.ask(call)
	})
	w.trace.Add(PartCosmos, "starts")
	return nil
}

// crash loses a random part of the data that was not synced.
func (c *cosmosPart) crash(w *World) bool {
	c.mu.Lock()
	if c.nic == nil || c.disk == nil {
		c.mu.Unlock()
		return false
	}
	c.disk = c.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[c.random.IntN(3)], RNG: c.random})
	n, srv := c.nic, c.srv
	c.nic = nil
	c.mu.Unlock()
	n.kill()
	c.using.Lock()                      // waits for the current readers
	c.using.Unlock()                    //nolint:staticcheck // a barrier
	w.wg.Go(func() { _ = srv.Close() }) // later writes go to the abandoned disk
	return true
}

func (c *cosmosPart) close() {
	c.mu.Lock()
	srv := c.srv
	c.mu.Unlock()
	if srv != nil {
		_ = srv.Close()
	}
}

// look calls f with the emulator, unless the emulator is down.
func (c *cosmosPart) look(f func(*cosmosemu.Server)) {
	c.using.RLock()
	defer c.using.RUnlock()
	c.mu.Lock()
	srv, up := c.srv, c.nic != nil
	c.mu.Unlock()
	if up {
		f(srv)
	}
}

// note records the calls that the verifier needs: the positions written to leases, each with the
// number of messages accepted so far.
func (c *cosmosPart) note(w *World, call *cosmosemu.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[call.Operation]++
	if _, ok := w.outboxWith(func(o outbox) bool { return o.parked == call.Container }); ok {
		c.noteParked(call.Body)
	}
	relayed, ok := w.outboxWith(func(o outbox) bool { return o.leases == call.Container })
	if !ok || len(call.Body) == 0 || call.Operation == cosmosemu.OpQueryItems {
		return
	}
	if call.Operation == cosmosemu.OpReplaceItem && call.Header.Get("If-Match") == "" {
		w.violation("I6 the lease %s was written without its ETag", call.ID)
	}
	var l leaseDocument
	if json.Unmarshal(call.Body, &l) != nil || l.Continuation == nil {
		return
	}
	lsn, err := strconv.ParseInt(strings.Trim(*l.Continuation, `"`), 10, 64)
	if err != nil || l.FeedRange.Range.Max == "" {
		w.harness("lease %s has an unknown position: %s", l.ID, call.Body)
		return
	}
	owner := ""
	if l.Owner != nil {
		owner = *l.Owner
	}
	c.writes = append(c.writes, verify.Checkpoint{
		Feed: relayed.data, Lease: l.ID, Owner: owner, Min: l.FeedRange.Range.Min, Max: l.FeedRange.Range.Max, LSN: lsn, Accepted: w.bus.accepted(),
	})
}

// noteParked records the events that a batch parks. mu is held.
func (c *cosmosPart) noteParked(body []byte) {
	var batch []struct {
		ResourceBody json.RawMessage `json:"resourceBody"`
	}
	if json.Unmarshal(body, &batch) != nil {
		return // another operation
	}
	for _, op := range batch {
		d, err := verify.DecodeDocument(op.ResourceBody)
		if _, known := c.setAside[d.ID]; err == nil && d.Kind == verify.KindParked && !known {
			c.setAside[d.ID] = len(c.writes)
		}
	}
}

// leaseDocument is the part of a lease that is read here.
type leaseDocument struct {
	ID           string  `json:"id"`
	LeaseToken   string  `json:"LeaseToken"` // only live leases have one
	Owner        *string `json:"Owner"`
	Continuation *string `json:"ContinuationToken"`
	FeedRange    struct {
		Range struct {
			Min string `json:"min"`
			Max string `json:"max"`
		} `json:"Range"`
	} `json:"FeedRange"`
}

// FaultCosmos installs a hook for every call to the Cosmos DB emulator except metadata (see type
// metadata). It stays installed across restarts of the emulator. The hook is called concurrently.
func (w *World) FaultCosmos(hook func(*cosmosemu.Call) *cosmosemu.Fault) (remove func()) {
	return w.cosmos.hooks.add(hook)
}

// SkewCosmos shifts the clock of the store by d.
func (w *World) SkewCosmos(d time.Duration) {
	w.trace.Add(PartCosmos, "CLOCK %s off", d)
	w.cosmos.skew.Store(int64(d))
}

// Requests counts the calls to the store by operation since the world began.
func (w *World) Requests() map[cosmosemu.Operation]int {
	w.cosmos.mu.Lock()
	defer w.cosmos.mu.Unlock()
	counts := make(map[cosmosemu.Operation]int, len(w.cosmos.requests))
	for op, n := range w.cosmos.requests {
		counts[op] = n
	}
	return counts
}

// Split splits the physical partition of a key in each data container. It reports whether it split
// any.
func (w *World) Split(key string) bool {
	return w.reshape(key, func(container string, ranges []cosmosemu.PartitionKeyRange, i int) bool {
		r := ranges[i]
		err := w.Cosmos().Split(Database, container, r.ID)
		w.trace.Add(PartCosmos, "SPLIT of range %s [%s,%s) of %s: %v", r.ID, r.MinInclusive, r.MaxExclusive, container, err)
		return err == nil
	})
}

// Merge merges the physical partition of a key with the next one in each data container. It reports
// whether it merged any.
func (w *World) Merge(key string) bool {
	return w.reshape(key, func(container string, ranges []cosmosemu.PartitionKeyRange, i int) bool {
		if i+1 == len(ranges) {
			return false
		}
		err := w.Cosmos().Merge(Database, container, ranges[i].ID, ranges[i+1].ID)
		w.trace.Add(PartCosmos, "MERGE of ranges %s and %s of %s: %v", ranges[i].ID, ranges[i+1].ID, container, err)
		return err == nil
	})
}

// reshape calls f with the index of the range of a key, for each data container, and reports whether
// any call returned true.
func (w *World) reshape(key string, f func(container string, ranges []cosmosemu.PartitionKeyRange, i int) bool) (done bool) {
	if w.cosmos.current() == nil {
		return false
	}
	at := EPK(key)
	for _, o := range w.outboxes {
		ranges, err := w.Cosmos().PartitionKeyRanges(Database, o.data)
		if err != nil {
			continue
		}
		i := slices.IndexFunc(ranges, func(r cosmosemu.PartitionKeyRange) bool { return r.MinInclusive <= at && at < r.MaxExclusive })
		if i >= 0 && f(o.data, ranges, i) {
			done = true
		}
	}
	return done
}
