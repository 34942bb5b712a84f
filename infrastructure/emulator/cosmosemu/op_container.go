package cosmosemu

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// createContainer answers POST /dbs/{db}/colls.
func createContainer(x *request) (*reply, error) {
	db, err := x.database()
	if err != nil {
		return nil, err
	}
	def, err := parseDefinition(x.body)
	if err != nil {
		return nil, err
	}
	content, err := x.throughput()
	if err != nil {
		return nil, err
	}
	if content == nil && x.srv.store.OfferOf(db.RID) == nil { // else it shares that of the database
		content = json.RawMessage(`{"offerThroughput":400}`)
	}
	c, err := x.srv.store.CreateContainer(db, *def, max(throughputPartitions(content), x.srv.options.Partitions))
	if err != nil {
		return nil, err
	}
	if content != nil {
		if _, err := x.srv.store.PutOffer(c.RID, containerLink(c), content); err != nil {
			return nil, err
		}
	}
	a := containerReply(http.StatusCreated, c)
	if content == nil {
		a.extra = append(a.extra, sharesThroughput)
	}
	return a, nil
}

// sharesThroughput says of a container that it has no throughput of its own.
var sharesThroughput = headerValue{"x-ms-share-throughput", "True"}

// readContainer answers GET /dbs/{db}/colls/{coll}.
func readContainer(x *request) (*reply, error) {
	c, err := x.container()
	if err != nil {
		return nil, err
	}
	a := containerReply(http.StatusOK, c)
	if x.srv.store.OfferOf(c.RID) == nil {
		a.extra = append(a.extra, sharesThroughput)
	}
	if isTrue(x.header, headerQuota) {
		a.extra = append(a.extra, headerValue{replyIndexProgress, "100"})
	}
	return a, nil
}

// replaceContainer answers PUT /dbs/{db}/colls/{coll}. The id and the partition
// key cannot change.
func replaceContainer(x *request) (*reply, error) {
	c, err := x.container()
	if err != nil {
		return nil, err
	}
	def, err := parseDefinition(x.body)
	if err != nil {
		return nil, err
	}
	if match := first(x.header, headerIfMatch); match != "" && match != "*" && match != c.ETag() {
		return nil, refuse(http.StatusPreconditionFailed, "The container has changed: its ETag is %s", c.ETag())
	}
	old := c.Definition()
	if def.ID != old.ID {
		return nil, refuse(http.StatusBadRequest, "The id of a container cannot be changed from %q to %q", old.ID, def.ID)
	}
	if !reflect.DeepEqual(def.Paths, old.Paths) || def.Hierarchical != old.Hierarchical || def.KeyVersion != old.KeyVersion {
		return nil, refuse(http.StatusBadRequest, "The partition key of a container cannot be changed")
	}
	if !reflect.DeepEqual(def.Unique, old.Unique) {
		return nil, refuse(http.StatusBadRequest, "The unique keys of a container cannot be changed: send its uniqueKeyPolicy as it is, or make another container")
	}
	if def.Retention != old.Retention {
		return nil, refuse(http.StatusBadRequest, "The changeFeedPolicy of a container cannot be changed in this emulator: versions are kept from its creation on or not at all")
	}
	if err := x.srv.store.ReplaceContainer(c, *def); err != nil {
		return nil, err
	}
	return containerReply(http.StatusOK, c), nil
}

// deleteContainer answers DELETE /dbs/{db}/colls/{coll}.
func deleteContainer(x *request) (*reply, error) {
	db, err := x.database()
	if err != nil {
		return nil, err
	}
	if err := x.srv.store.DeleteContainer(db, x.route.coll); err != nil {
		return nil, err
	}
	return ok(http.StatusNoContent, nil, metadataCharge), nil
}

// listContainers answers GET /dbs/{db}/colls.
func listContainers(x *request) (*reply, error) {
	db, err := x.database()
	if err != nil {
		return nil, err
	}
	return x.metadataFeed("DocumentCollections", db.RID, containerResources(x.srv.store, db), false)
}

// queryContainers answers POST /dbs/{db}/colls with a query.
func queryContainers(x *request) (*reply, error) {
	db, err := x.database()
	if err != nil {
		return nil, err
	}
	return x.metadataFeed("DocumentCollections", db.RID, containerResources(x.srv.store, db), true)
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
