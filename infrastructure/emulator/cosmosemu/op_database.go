package cosmosemu

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// createDatabase answers POST /dbs.
func createDatabase(x *request) (*reply, error) {
	var in struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(x.body, &in); err != nil {
		return nil, refuse(http.StatusBadRequest, "The request body is not a database: %v", err)
	}
	content, err := x.throughput()
	if err != nil {
		return nil, err
	}
	db, err := x.srv.createDatabase(in.ID)
	if err != nil {
		return nil, err
	}
	if content != nil {
		if _, err := x.srv.store.PutOffer(db.RID, databaseLink(db), content); err != nil {
			return nil, err
		}
	}
	return databaseReply(http.StatusCreated, db), nil
}

func (s *Server) createDatabase(id string) (*store.Database, error) {
	if err := checkResourceID("database", id); err != nil {
		return nil, err
	}
	return s.store.CreateDatabase(id)
}

// CreateDatabase makes a database unless it is there.
func (s *Server) CreateDatabase(id string) error {
	if _, err := s.store.Database(id); err == nil {
		return nil
	}
	if _, err := s.createDatabase(id); err != nil && asWire(err).Status != http.StatusConflict {
		return fmt.Errorf("cosmosemu: create database %s: %w", id, err)
	}
	return nil
}

// checkResourceID holds for names of databases and containers.
func checkResourceID(kind, id string) error {
	if id == "" || utf8.RuneCountInString(id) > 255 || strings.ContainsAny(id, `/\?#`) || strings.HasSuffix(id, " ") {
		return refuse(http.StatusBadRequest, `The %s id %q is invalid: it needs 1 to 255 characters, none of / \ ? #, and no space at its end`, kind, id)
	}
	return nil
}

// readDatabase answers GET /dbs/{db}.
func readDatabase(x *request) (*reply, error) {
	db, err := x.srv.store.Database(x.route.db)
	if err != nil {
		return nil, err
	}
	return databaseReply(http.StatusOK, db), nil
}

// deleteDatabase answers DELETE /dbs/{db}.
func deleteDatabase(x *request) (*reply, error) {
	if err := x.srv.store.DeleteDatabase(x.route.db); err != nil {
		return nil, err
	}
	return ok(http.StatusNoContent, nil, metadataCharge), nil
}

// listDatabases answers GET /dbs.
func listDatabases(x *request) (*reply, error) {
	return x.metadataFeed("Databases", "", databaseResources(x.srv.store), false)
}

// queryDatabases answers POST /dbs with a query.
func queryDatabases(x *request) (*reply, error) {
	return x.metadataFeed("Databases", "", databaseResources(x.srv.store), true)
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
