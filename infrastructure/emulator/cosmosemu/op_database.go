package cosmosemu

import (
	"encoding/json"
	"fmt"
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// createDatabase answers POST /dbs and creates a database.
//
//   - Supports: manual and autoscale throughput, which the containers of the database share.
//   - Refuses: an invalid id or throughput (400), an id in use (409).
//   - Source: REST reference, Create a Database.
func createDatabase(x *request) (*reply, error) {
	var in struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(x.body, &in); err != nil {
		return nil, refuse(http.StatusBadRequest, "The request body is not a database: %v", err)
	}
	content, err := throughput(x.header)
	if err != nil {
		return nil, err
	}
	db, err := x.account.createDatabase(in.ID)
	if err != nil {
		return nil, err
	}
	if content != nil {
		if _, err := x.account.store.PutOffer(db.RID, databaseLink(db), content); err != nil {
			return nil, err
		}
	}
	return databaseReply(http.StatusCreated, db), nil
}

// readDatabase answers GET /dbs/{db} with one database.
//
//   - Supports: the name or the resource id of the database in the link.
//   - Refuses: an unknown database (404).
//   - Source: REST reference, Get a Database.
func readDatabase(x *request) (*reply, error) {
	db, err := x.account.store.Database(x.route.db)
	if err != nil {
		return nil, err
	}
	return databaseReply(http.StatusOK, db), nil
}

// deleteDatabase answers DELETE /dbs/{db} and deletes a database with all its containers
// and users.
//
//   - Supports: the name or the resource id of the database in the link; If-Match.
//   - Refuses: an unknown database (404), another ETag (412).
//   - Source: REST reference, Delete a Database and Common request headers.
func deleteDatabase(x *request) (*reply, error) {
	if db, err := x.account.store.Database(x.route.db); err == nil {
		if err := checkCatalogMatch(x.header, db.ETag); err != nil {
			return nil, err
		}
	}
	if err := x.account.store.DeleteDatabase(x.route.db); err != nil {
		return nil, err
	}
	x.account.forget()
	return ok(http.StatusNoContent, nil, metadataCharge), nil
}

// listDatabases answers GET /dbs with the databases in the order of creation.
//
//   - Supports: pages of x-ms-max-item-count; without it all are on one page.
//   - Refuses: an invalid page size or continuation (400).
//   - Source: REST reference, List Databases.
func listDatabases(x *request) (*reply, error) {
	return metadataFeed(x, "Databases", "", databaseResources(x.account.store), false)
}

// queryDatabases answers POST /dbs with the databases that match a query.
//
//   - Supports: filters and projections, and pages as listDatabases.
//   - Refuses: sorting, joins and aggregates (400).
//   - Source: NewQueryDatabasesPager of azcosmos.
func queryDatabases(x *request) (*reply, error) {
	return metadataFeed(x, "Databases", "", databaseResources(x.account.store), true)
}

func databaseResources(st *store.Store) (out []resource) {
	for _, db := range st.Databases() {
		out = append(out, resource{fmt.Sprintf("%020d %s", db.Created.UnixMilli(), db.ID), databaseBody(db)})
	}
	return out
}

func databaseLink(db *store.Database) string { return "dbs/" + db.RID + "/" }

func databaseBody(db *store.Database) []byte {
	id, _ := json.Marshal(db.ID) // a string never fails
	etag, _ := json.Marshal(db.ETag)
	return fmt.Appendf(nil, `{"id":%s,"_rid":%q,"_self":%q,"_etag":%s,"_colls":"colls/","_users":"users/","_ts":%d}`,
		id, db.RID, databaseLink(db), etag, db.Created.Unix())
}

func databaseReply(status int, db *store.Database) *reply {
	a := ok(status, databaseBody(db), metadataCharge)
	a.etag = db.ETag
	return a
}
