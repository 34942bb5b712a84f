package cosmosemu

import (
	"crypto/tls"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// account is the emulated account: its data, regions, key and clock. All addresses of a
// server share it.
type account struct {
	options Options
	key     []byte // signs requests and resource tokens
	store   *store.Store
	clock   atomic.Int64 // nanoseconds that Advance has added
	lags    lags
	budgets budgets
	regions regions
	hosts   []string         // host:port of each region, in the order of Options.Regions
	cert    *tls.Certificate // nil without TLS

	creations sync.Map // end of CreationDelay (time.Time) by *store.Container

	// Values of reply headers that never change.
	readRegions, started []string
}

// now is the emulator's clock: Options.Now plus the time that Advance has added.
func (a *account) now() time.Time { return a.options.Now().Add(time.Duration(a.clock.Load())) }

// location is a region in the body of the account.
type location struct {
	Name     string `json:"name"`
	Endpoint string `json:"databaseAccountEndpoint"`
}

// locations lists regions by their numbers. The endpoint of the first one is at host.
func (a *account) locations(host string, regions []int) []location {
	list := make([]location, 0, len(regions))
	for _, i := range regions {
		at := a.hosts[i]
		if i == 0 {
			at = host
		}
		list = append(list, location{a.options.Regions[i], a.scheme() + at + "/"})
	}
	return list
}

func (a *account) scheme() string {
	if a.cert != nil {
		return "https://"
	}
	return "http://"
}

// createDatabase checks the id and creates a database.
func (a *account) createDatabase(id string) (*store.Database, error) {
	if err := checkResourceID("database", id); err != nil {
		return nil, err
	}
	return a.store.CreateDatabase(id)
}

// created notes the creation of a container, for CreationDelay.
func (a *account) created(c *store.Container) {
	if d := a.options.CreationDelay; d > 0 {
		a.creations.Store(c, a.now().Add(d))
	}
}

// forget removes the state of deleted containers that is not in the store.
func (a *account) forget() {
	a.budgets.prune()
	a.creations.Range(func(c, _ any) bool {
		if store.Deleted(c.(*store.Container)) {
			a.creations.Delete(c)
		}
		return true
	})
}

// checkCreated refuses a request to a container that is still being created.
func (a *account) checkCreated(c *store.Container) error {
	if a.options.CreationDelay == 0 {
		return nil
	}
	if at, ok := a.creations.Load(c); ok && a.now().Before(at.(time.Time)) {
		return refuse(http.StatusNotFound, "Collection is not yet available for read. Please retry the request.").sub(subCreating)
	}
	return nil
}

// setRetention sets for how long a new container keeps versions and deletions.
func (a *account) setRetention(def *store.Definition) error {
	if def.Retention == 0 {
		def.Retention = int64(a.options.VersionRetention / time.Minute)
		return nil
	}
	if a.options.ContainerRetention {
		return nil
	}
	return refuse(http.StatusBadRequest, "The retention duration in the change feed policy should not be set: the account enables all versions and deletes for its containers. "+
		"In this emulator that is Options.VersionRetention; Options.ContainerRetention accepts the retention of a container, as Microsoft's emulator does")
}

// lags draws the staleness of reads that carry no session token.
type lags struct {
	mu     sync.Mutex // guards random
	random *rand.Rand
}

// lag returns a lag up to limit. It is zero for half of the reads.
func (l *lags) lag(limit time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, time.Duration(l.random.Int64N(2*int64(limit)+1))-limit)
}
