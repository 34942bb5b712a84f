package faults

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/tests/sim/world"
	"feedbox/tests/testkit"
)

// F6: the store throttles 30 % of all calls, with waits of 10 ms to 1 s. Nothing is lost, the feed
// is not read too early, callers of the API receive Retry-After, and all events have arrived 30 s
// after the fault.
func TestThrottledStore(t *testing.T) {
	const full = 3600 // seconds of storm
	runScenario(t, testkit.Result{
		Fault: "F6", Name: "Cosmos DB answers 30 % of calls with 429", Seed: 6, Of: 30_000,
		Note: "Retry-After reaches callers of the API; the feed is not read sooner than the store asks",
	}, world.Topology{APIs: 1, Consumers: 1}, func(s *scenario) {
		var all atomic.Bool // throttle every transaction
		s.FaultCosmos(func(c *cosmosemu.Call) *cosmosemu.Fault {
			if c.Operation != cosmosemu.OpBatch || !all.Load() {
				return nil
			}
			s.struck.Add(1)
			f := cosmosemu.Throttled(1500 * time.Millisecond)
			return &f
		})
		reads := readers{until: map[string]time.Time{}, owners: map[string]string{}}
		s.FaultCosmos(func(c *cosmosemu.Call) *cosmosemu.Fault {
			reads.come(c)
			if !s.chance(0.3) {
				return nil
			}
			s.struck.Add(1)
			wait := s.between(10*time.Millisecond, time.Second).Truncate(time.Millisecond) // in whole milliseconds, like the header
			reads.sentAway(c, wait)
			f := cosmosemu.Throttled(wait)
			return &f
		})
		load := s.StartLoad(world.LoadOptions{Writers: 3, Pace: 500 * time.Millisecond})
		s.Sleep(time.Duration(testkit.Count(s, full)) * time.Second)

		all.Store(true)
		client := s.NewClient()
		defer client.Close()
		r := client.Do(s.Context(), "api-0", http.MethodPost, "/api/contacts", map[string]any{
			"firstName": "Ada", "lastName": "Doe", "companyName": "Contoso", "email": "ada@contoso.com",
		})
		if wait, err := strconv.Atoi(r.Header.Get("Retry-After")); r.Status != http.StatusTooManyRequests || err != nil || wait != 2 {
			s.Errorf("a throttled transaction was answered with %d, Retry-After %q: %s; want 429 and 2", r.Status, r.Header.Get("Retry-After"), r.Body)
		}
		all.Store(false)

		early, throttled := reads.figures()
		if throttled == 0 || early > 0 {
			s.Errorf("%d of %d throttled reads of the feed were repeated before the time the store asked for", early, throttled)
		}
		run := s.judge()
		if run.Settled.Arrived > 30*time.Second {
			s.Errorf("it took %s after the storm until all had arrived, at most 30 s are allowed", run.Settled.Arrived)
		}
		s.Logf("%v; %d reads of the feed throttled", load.Requests(), throttled)
	})
}

// readers counts reads of the change feed that are repeated before the requested wait is over. A new
// owner of a lease may read at once, because the store did not throttle that owner.
type readers struct {
	mu               sync.Mutex           // guards the fields below
	until            map[string]time.Time // by requested range and position
	owners           map[string]string    // of the leases
	early, throttled int
}

func (r *readers) come(c *cosmosemu.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.Operation == cosmosemu.OpReplaceItem && c.Container == world.Leases {
		var lease struct{ Owner string }
		if json.Unmarshal(c.Body, &lease) == nil && r.owners[c.ID] != lease.Owner {
			r.owners[c.ID] = lease.Owner
			clear(r.until)
		}
	}
	if c.Operation != cosmosemu.OpReadChangeFeed {
		return
	}
	if time.Now().Before(r.until[place(c)]) {
		r.early++
	}
	delete(r.until, place(c))
}

func (r *readers) sentAway(c *cosmosemu.Call, wait time.Duration) {
	if c.Operation != cosmosemu.OpReadChangeFeed {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until[place(c)] = time.Now().Add(wait)
	r.throttled++
}

func (r *readers) figures() (early, throttled int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.early, r.throttled
}

// place returns the range and position of a read.
func place(c *cosmosemu.Call) string {
	h := c.Header
	return c.Container + h.Get("x-ms-documentdb-partitionkeyrangeid") + h.Get("x-ms-start-epk") + h.Get("x-ms-end-epk") + h.Get("If-None-Match")
}
