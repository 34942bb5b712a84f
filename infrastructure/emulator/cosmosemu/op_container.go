package cosmosemu

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// createContainer answers POST /dbs/{db}/colls and creates a container.
//
//   - Supports: hash and hierarchical partition keys, time to live, unique keys, computed
//     properties, and throughput: its own or the database's.
//   - Refuses: an invalid definition, a retention of all versions (400; see Options), an unknown
//     database (404), an id in use (409).
//   - Source: REST reference, Create a Collection; .NET's ContainerSettingsTests and BatchTestBase.
func createContainer(x *request) (*reply, error) {
	db, err := x.database()
	if err != nil {
		return nil, err
	}
	def, err := parseDefinition(x.body, newKeyVersion)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(x.account.options.readIndexing(def), x.account.setRetention(def)); err != nil {
		return nil, err
	}
	content, err := throughput(x.header)
	if err != nil {
		return nil, err
	}
	if content == nil && x.account.store.OfferOf(db.RID) == nil { // otherwise it shares the throughput of the database
		content = json.RawMessage(`{"offerThroughput":400}`)
	}
	c, err := x.account.store.CreateContainer(db, *def, max(throughputPartitions(content), x.account.options.Partitions))
	if err != nil {
		return nil, err
	}
	x.account.created(c)
	if content != nil {
		if _, err := x.account.store.PutOffer(c.RID, containerLink(c), content); err != nil {
			return nil, err
		}
	}
	a := containerReply(http.StatusCreated, c)
	if content == nil {
		a.extra = append(a.extra, sharesThroughput)
	}
	return a, nil
}

// sharesThroughput marks a container that has no throughput of its own.
var sharesThroughput = headerValue{"x-ms-share-throughput", "True"}

// readContainer answers GET /dbs/{db}/colls/{coll} with the definition of a container.
//
//   - Supports: x-ms-documentdb-populatequotainfo, which adds the index progress.
//   - Refuses: an unknown database or container (404).
//   - Source: REST reference, Get a Collection; .NET's CosmosContainerTests.
func readContainer(x *request) (*reply, error) {
	c, err := x.container()
	if err != nil {
		return nil, err
	}
	a := containerReply(http.StatusOK, c)
	if x.account.store.OfferOf(c.RID) == nil {
		a.extra = append(a.extra, sharesThroughput)
	}
	if isTrue(x.header, headerQuota) {
		a.extra = append(a.extra, headerValue{replyIndexProgress, "100"})
	}
	return a, nil
}

// replaceContainer answers PUT /dbs/{db}/colls/{coll} and changes a container.
//
//   - Supports: changes of time to live, indexing policy and computed properties; If-Match.
//   - Refuses: changes of id, partition key, unique keys and changeFeedPolicy (400), another
//     ETag (412).
//   - Source: REST reference, Replace a Collection.
func replaceContainer(x *request) (*reply, error) {
	c, err := x.container()
	if err != nil {
		return nil, err
	}
	old := c.Definition()
	def, err := parseDefinition(x.body, old.KeyVersion)
	if err != nil {
		return nil, err
	}
	if err := x.account.options.readIndexing(def); err != nil {
		return nil, err
	}
	if err := checkCatalogMatch(x.header, c.ETag()); err != nil {
		return nil, err
	}
	if def.ID != old.ID {
		return nil, refuse(http.StatusBadRequest, "The id of a container cannot be changed from %q to %q", old.ID, def.ID)
	}
	if !reflect.DeepEqual(def.Paths, old.Paths) || def.Hierarchical != old.Hierarchical || def.KeyVersion != old.KeyVersion {
		return nil, refuse(http.StatusBadRequest, "The partition key of a container cannot be changed")
	}
	if !reflect.DeepEqual(def.Unique, old.Unique) {
		return nil, refuse(http.StatusBadRequest, "The unique keys of a container cannot be changed: send its uniqueKeyPolicy as it is, or make another container")
	}
	if def.Retention != old.Retention && (def.Retention != 0 || x.account.options.ContainerRetention) {
		return nil, refuse(http.StatusBadRequest, "The changeFeedPolicy of a container cannot be changed in this emulator: versions are kept from its creation on or not at all")
	}
	def.Retention = old.Retention
	if err := c.Replace(*def); err != nil {
		return nil, err
	}
	return containerReply(http.StatusOK, c), nil
}

// deleteContainer answers DELETE /dbs/{db}/colls/{coll} and deletes a container with its items.
//
//   - Supports: names and resource ids in the link; If-Match.
//   - Refuses: an unknown database or container (404), another ETag (412).
//   - Source: REST reference, Delete a Collection.
func deleteContainer(x *request) (*reply, error) {
	db, err := x.database()
	if err != nil {
		return nil, err
	}
	if c, err := x.account.store.Container(db, x.route.coll); err == nil {
		if err := checkCatalogMatch(x.header, c.ETag()); err != nil {
			return nil, err
		}
	}
	if err := x.account.store.DeleteContainer(db, x.route.coll); err != nil {
		return nil, err
	}
	x.account.forget()
	return ok(http.StatusNoContent, nil, metadataCharge), nil
}

// listContainers answers GET /dbs/{db}/colls with the containers in the order of creation.
//
//   - Supports: pages of x-ms-max-item-count; without it all are on one page.
//   - Refuses: an unknown database (404), an invalid page size or continuation (400).
//   - Source: REST reference, List Collections.
func listContainers(x *request) (*reply, error) {
	db, err := x.database()
	if err != nil {
		return nil, err
	}
	return metadataFeed(x, "DocumentCollections", db.RID, containerResources(x.account.store, db), false)
}

// queryContainers answers POST /dbs/{db}/colls with the containers that match a query.
//
//   - Supports: filters and projections, and pages as listContainers.
//   - Refuses: sorting, joins and aggregates (400), an unknown database (404).
//   - Source: NewQueryContainersPager of azcosmos.
func queryContainers(x *request) (*reply, error) {
	db, err := x.database()
	if err != nil {
		return nil, err
	}
	return metadataFeed(x, "DocumentCollections", db.RID, containerResources(x.account.store, db), true)
}

func containerResources(st *store.Store, db *store.Database) (out []resource) {
	for _, c := range st.Containers(db) {
		if c.Restoring() {
			continue
		}
		out = append(out, resource{fmt.Sprintf("%010d", c.Number()), containerBody(c)})
	}
	return out
}

func containerLink(c *store.Container) string {
	return "dbs/" + c.DatabaseRID + "/colls/" + c.RID + "/"
}

func containerBody(c *store.Container) []byte {
	etag, _ := json.Marshal(c.ETag()) // a string never fails
	return fmt.Appendf(nil, `{%s,"_rid":%q,"_self":%q,"_etag":%s,"_ts":%d,"_docs":"docs/","_sprocs":"sprocs/",`+
		`"_triggers":"triggers/","_udfs":"udfs/","_conflicts":"conflicts/"}`,
		c.Definition().Raw, c.RID, containerLink(c), etag, c.Modified().Unix())
}

func containerReply(status int, c *store.Container) *reply {
	a := ok(status, containerBody(c), metadataCharge)
	a.etag = c.ETag()
	return a
}
