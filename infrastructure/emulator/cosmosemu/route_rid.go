package cosmosemu

import (
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// A link may name resources by their resource ids: dbs/{rid}/colls/{rid}/docs/{rid}.
// The Java and .NET SDKs do so once they know the ids. Such a request signs the last
// resource id alone, in lower case.

// resolve replaces resource ids in a route by names. Names have precedence: a database
// whose name looks like a resource id is found by its name. An unknown resource id stays
// in the route, and the operation then answers 404.
func (a *account) resolve(rt *route) {
	if rt.db == "" || !store.IsDatabaseRID(rt.db) {
		return
	}
	if _, err := a.store.Database(rt.db); err == nil {
		return
	}
	if last := strings.LastIndexByte(rt.link, '/'); strings.Count(rt.link, "/")%2 == 1 {
		rt.link = strings.ToLower(rt.link[last+1:])
	}
	db, err := a.store.DatabaseByRID(rt.db)
	if err != nil {
		return
	}
	rt.db = db.ID
	c, err := a.store.ContainerByRID(db, rt.coll)
	if err != nil {
		return
	}
	rt.coll = c.Definition().ID
	if id, found := c.IDByRID(rt.id); found {
		rt.id = id
	}
}
