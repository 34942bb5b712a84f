package cosmosemu

import (
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// maxPartitionThroughput is the most that a physical partition serves. Source: Microsoft Learn,
// "Partitioning and horizontal scaling".
const maxPartitionThroughput = 10000

// budgets limits physical partitions to their shares of the throughput (Options.Throughput).
type budgets struct {
	mu     sync.Mutex // guards ranges and the budgets
	ranges map[budgetKey]*budget
}

// budgetKey identifies a physical partition.
type budgetKey struct {
	container *store.Container
	id        string
}

// budget is a physical partition's request units. A request may start while some are left, and
// costs what it costs, as on the service: left may become negative. At most those of one second
// are saved up.
type budget struct {
	left      float64
	at        time.Time // of left
	second    time.Time // the current second
	used      float64   // in it
	last      float64   // in the second before it
	throttled int
}

// of returns the budget of a range at a time. The caller holds mu.
func (b *budgets) of(c *store.Container, rng *store.Range, share float64, now time.Time) *budget {
	key := budgetKey{c, rng.ID}
	one := b.ranges[key]
	if one == nil {
		one = &budget{left: share, at: now, second: now}
		if store.Deleted(c) { // a request that began before the deletion; prune does not run again for it
			return one
		}
		if b.ranges == nil {
			b.ranges = map[budgetKey]*budget{}
		}
		b.ranges[key] = one
	}
	if passed := now.Sub(one.at); passed > 0 {
		one.left, one.at = min(one.left+share*passed.Seconds(), share), now
	}
	if passed := now.Sub(one.second); passed >= time.Second {
		one.last = one.used
		if passed >= 2*time.Second {
			one.last = 0
		}
		one.used, one.second = 0, now
	}
	return one
}

// prune removes the budgets of deleted containers, and of ranges that were split or merged. It must be
// called after each such change, because otherwise the memory of a long test run grows.
func (b *budgets) prune() {
	b.mu.Lock()
	defer b.mu.Unlock()
	live := map[budgetKey]bool{}
	for key := range b.ranges {
		if store.Deleted(key.container) || live[key] {
			continue
		}
		ranges := key.container.Topology().Ranges
		for i := range ranges {
			live[budgetKey{key.container, ranges[i].ID}] = true
		}
	}
	maps.DeleteFunc(b.ranges, func(key budgetKey, _ *budget) bool { return !live[key] })
}

// share returns the request units per second of each physical partition of a container, 0 without a
// limit. Autoscale throughput counts with its maximum, because the service scales at once.
func (a *account) share(c *store.Container) float64 {
	if a.options.Throughput == 0 {
		return 0
	}
	units, ranges := float64(a.options.Throughput), len(c.Topology().Ranges)
	if o := a.store.OfferOf(c.RID); o != nil {
		units = offered(o.Content)
	} else if o := a.store.OfferOf(c.DatabaseRID); o != nil {
		units, ranges = offered(o.Content), a.sharing(c.DatabaseRID)
	}
	return min(units/float64(max(ranges, 1)), maxPartitionThroughput)
}

// sharing returns the number of physical partitions that share the throughput of a database.
func (a *account) sharing(databaseRID string) (n int) {
	for _, db := range a.store.Databases() {
		for _, c := range a.store.Containers(db) {
			if c.DatabaseRID == databaseRID && a.store.OfferOf(c.RID) == nil {
				n += len(c.Topology().Ranges)
			}
		}
	}
	return n
}

// offered returns the throughput of an offer, of autoscale the maximum; 0 if there is none.
func offered(content json.RawMessage) float64 {
	var offer struct {
		Throughput int `json:"offerThroughput"`
		Autopilot  struct {
			Max int `json:"maxThroughput"`
		} `json:"offerAutopilotSettings"`
	}
	if len(content) == 0 || json.Unmarshal(content, &offer) != nil {
		return 0
	}
	return float64(max(offer.Throughput, offer.Autopilot.Max))
}

// admit returns the budgets of physical partitions, nil without a limit. It refuses a request if one
// of them has used its request units.
func (a *account) admit(c *store.Container, ranges []store.Range) ([]*budget, error) {
	share := a.share(c)
	if share == 0 {
		return nil, nil
	}
	b, now := &a.budgets, a.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	paying := make([]*budget, 0, len(ranges))
	for i := range ranges {
		one := b.of(c, &ranges[i], share, now)
		if one.left <= 0 {
			one.throttled++
			e := refuse(http.StatusTooManyRequests, "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request later. "+
				"Learn more: http://aka.ms/cosmosdb-error-429").sub(subThrottled)
			wait := math.Floor(-one.left/share*1000) + 1 // rounded up, so that a retry is admitted
			e.Headers = http.Header{replyRetryAfter: {strconv.FormatFloat(wait, 'f', 0, 64)}}
			return nil, e
		}
		paying = append(paying, one)
	}
	return paying, nil
}

// pay charges a request to budgets, each with an equal part.
func (b *budgets) pay(paying []*budget, charge float64) {
	if len(paying) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range paying {
		one.left -= charge / float64(len(paying))
		one.used += charge / float64(len(paying))
	}
}

// usage returns the share of a range, the request units that it used in the last whole second, and
// the number of requests that were throttled.
func (a *account) usage(c *store.Container, rng *store.Range) (share, consumed float64, throttled int) {
	if share = a.share(c); share == 0 {
		return 0, 0, 0
	}
	a.budgets.mu.Lock()
	defer a.budgets.mu.Unlock()
	one := a.budgets.of(c, rng, share, a.now())
	return share, one.last, one.throttled
}
