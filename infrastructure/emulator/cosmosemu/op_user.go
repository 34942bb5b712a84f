package cosmosemu

import (
	"encoding/json"
	"fmt"
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// createUser answers POST /dbs/{db}/users, an upsert too.
func createUser(x *request) (*reply, error) {
	db, id, err := x.userBody()
	if err != nil {
		return nil, err
	}
	if isTrue(x.header, headerIsUpsert) {
		if u, err := x.srv.store.ChangeUser(db, id, func(*store.User) error { return nil }); err == nil {
			return userReply(http.StatusOK, u), nil
		}
	}
	u, err := x.srv.store.CreateUser(db, id)
	if err != nil {
		return nil, err
	}
	return userReply(http.StatusCreated, u), nil
}

// userBody reads a user, which is no more than its id.
func (x *request) userBody() (db *store.Database, id string, err error) {
	if db, err = x.database(); err != nil {
		return nil, "", err
	}
	var in struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(x.body, &in); err != nil {
		return nil, "", refuse(http.StatusBadRequest, "The request body is not a user: %v", err)
	}
	return db, in.ID, checkResourceID("user", in.ID)
}

func (x *request) user() (*store.Database, *store.User, error) {
	db, err := x.database()
	if err != nil {
		return nil, nil, err
	}
	u, err := x.srv.store.User(db, x.route.user)
	return db, u, err
}

// readUser answers GET /dbs/{db}/users/{user}.
func readUser(x *request) (*reply, error) {
	_, u, err := x.user()
	if err != nil {
		return nil, err
	}
	return userReply(http.StatusOK, u), nil
}

// replaceUser answers PUT /dbs/{db}/users/{user}: it may give another id.
func replaceUser(x *request) (*reply, error) {
	db, id, err := x.userBody()
	if err != nil {
		return nil, err
	}
	u, err := x.srv.store.ChangeUser(db, x.route.user, func(u *store.User) error {
		u.ID = id
		return x.checkCatalogMatch(u.ETag)
	})
	if err != nil {
		return nil, err
	}
	return userReply(http.StatusOK, u), nil
}

// checkCatalogMatch is the precondition of a change of a user or permission.
func (x *request) checkCatalogMatch(etag string) error {
	if match := first(x.header, headerIfMatch); match != "" && match != "*" && match != etag {
		return refuse(http.StatusPreconditionFailed, "The resource has changed: its ETag is %s", etag)
	}
	return nil
}

// deleteUser answers DELETE /dbs/{db}/users/{user}.
func deleteUser(x *request) (*reply, error) {
	db, u, err := x.user()
	if err == nil {
		err = x.checkCatalogMatch(u.ETag)
	}
	if err == nil {
		err = x.srv.store.DeleteUser(db, u.ID)
	}
	if err != nil {
		return nil, err
	}
	return ok(http.StatusNoContent, nil, metadataCharge), nil
}

// listUsers answers GET /dbs/{db}/users.
func listUsers(x *request) (*reply, error) { return x.userFeed(false) }

// queryUsers answers POST /dbs/{db}/users with a query.
func queryUsers(x *request) (*reply, error) { return x.userFeed(true) }

func (x *request) userFeed(queried bool) (*reply, error) {
	db, err := x.database()
	if err != nil {
		return nil, err
	}
	var all []resource
	for _, u := range x.srv.store.Users(db) {
		all = append(all, resource{u.ID, userBody(u)})
	}
	return x.metadataFeed("Users", db.RID, all, queried)
}

func userLink(u *store.User) string { return "dbs/" + u.Database + "/users/" + u.RID + "/" }

func userBody(u *store.User) []byte {
	id, _ := json.Marshal(u.ID) // a string never fails
	etag, _ := json.Marshal(u.ETag)
	return fmt.Appendf(nil, `{"id":%s,"_rid":%q,"_self":%q,"_etag":%s,"_permissions":"permissions/","_ts":%d}`, id, u.RID, userLink(u), etag, u.Modified/1000)
}

func userReply(status int, u *store.User) *reply {
	a := ok(status, userBody(u), metadataCharge)
	a.etag = u.ETag
	return a
}
