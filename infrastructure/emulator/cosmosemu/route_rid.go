package cosmosemu

import (
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// A link may name resources by their resource ids: dbs/{rid}/colls/{rid}/docs/{rid}.
// The Java and .NET SDKs do so once they know the ids. Such a request signs the last
// resource id alone, in lower case.

// resolve turns a link of resource ids into one of names. Names come first: a
// database that is called like a resource id is found by its name. What has no such
// id stays as it is, and is not found by its operation.
func (s *Server) resolve(rt *route) {
	if rt.db == "" || !store.IsDatabaseRID(rt.db) {
		return
	}
	if _, err := s.store.Database(rt.db); err == nil {
		return
	}
	if last := strings.LastIndexByte(rt.link, '/'); strings.Count(rt.link, "/")%2 == 1 {
		rt.link = strings.ToLower(rt.link[last+1:])
	}
	db, err := s.store.DatabaseByRID(rt.db)
	if err != nil {
		return
	}
	rt.db = db.ID
	c, err := s.store.ContainerByRID(db, rt.coll)
	if err != nil {
		return
	}
	rt.coll = c.Definition().ID
	if id, found := c.IDByRID(rt.id); found {
		rt.id = id
	}
}
