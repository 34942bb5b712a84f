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
func createDatabase(x *exchange) (*reply, error) {
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
func readDatabase(x *exchange) (*reply, error) {
	db, err := x.srv.store.Database(x.route.db)
	if err != nil {
		return nil, err
	}
	return databaseReply(http.StatusOK, db), nil
}

// deleteDatabase answers DELETE /dbs/{db}.
func deleteDatabase(x *exchange) (*reply, error) {
	if err := x.srv.store.DeleteDatabase(x.route.db); err != nil {
		return nil, err
	}
	return ok(http.StatusNoContent, nil, metadataCharge), nil
}

// listDatabases answers GET /dbs.
func listDatabases(x *exchange) (*reply, error) {
	return metadataFeed("Databases", "", databaseBodies(x.srv.store)), nil
}

// queryDatabases answers POST /dbs with a query.
func queryDatabases(x *exchange) (*reply, error) {
	bodies, err := x.filterMetadata(databaseBodies(x.srv.store))
	if err != nil {
		return nil, err
	}
	return metadataFeed("Databases", "", bodies), nil
}

func databaseBodies(st *store.Store) (bodies [][]byte) {
	for _, db := range st.Databases() {
		bodies = append(bodies, databaseBody(db))
	}
	return bodies
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

// metadataFeed is a feed of databases, containers or offers, all on one page.
func metadataFeed(name, rid string, bodies [][]byte) *reply {
	out := fmt.Appendf(nil, `{"_rid":%q,"%s":[`, rid, name)
	for i, b := range bodies {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, b...)
	}
	out = fmt.Appendf(out, `],"_count":%d}`, len(bodies))
	a := ok(http.StatusOK, out, metadataCharge)
	a.count = len(bodies)
	return a
}

// filterMetadata applies the query in the request to the bodies of resources.
func (x *exchange) filterMetadata(bodies [][]byte) ([][]byte, error) {
	b, err := x.parseQuery()
	if err != nil {
		return nil, err
	}
	if !b.Query().Shape().Plain() {
		return nil, refuse(http.StatusBadRequest, "This emulator filters and projects databases, containers and offers; it does not sort or aggregate them")
	}
	var kept [][]byte
	for _, body := range bodies {
		if !b.Match(body) {
			continue
		}
		if row, ok := b.Project(nil, body); ok {
			kept = append(kept, row)
		}
	}
	return kept, nil
}
