package cosmosemu

import (
	"encoding/json"
	"fmt"
	"net/http"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// createUser answers POST /dbs/{db}/users and creates a user.
//
//   - Supports: the upsert header, which leaves an existing user unchanged.
//   - Refuses: an invalid id (400), an unknown database (404), an id in use (409).
//   - Source: REST reference, Create a User.
func createUser(x *request) (*reply, error) {
	db, id, err := userBody(x)
	if err != nil {
		return nil, err
	}
	if isTrue(x.header, headerIsUpsert) {
		if u, err := x.account.store.ChangeUser(db, id, func(*store.User) error { return nil }); err == nil {
			return userReply(http.StatusOK, u), nil
		}
	}
	u, err := x.account.store.CreateUser(db, id)
	if err != nil {
		return nil, err
	}
	return userReply(http.StatusCreated, u), nil
}

// userBody reads a user from the body. A user has only an id.
func userBody(x *request) (db *store.Database, id string, err error) {
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

// readUser answers GET /dbs/{db}/users/{user} with one user.
//
//   - Supports: names and resource ids in the link.
//   - Refuses: an unknown database or user (404).
//   - Source: REST reference, Get a User.
func readUser(x *request) (*reply, error) {
	_, u, err := x.user()
	if err != nil {
		return nil, err
	}
	return userReply(http.StatusOK, u), nil
}

// replaceUser answers PUT /dbs/{db}/users/{user} and renames a user.
//
//   - Supports: another id, If-Match.
//   - Refuses: an invalid id (400), an unknown user (404), an id in use (409), another ETag
//     (412).
//   - Source: REST reference, Replace a User.
func replaceUser(x *request) (*reply, error) {
	db, id, err := userBody(x)
	if err != nil {
		return nil, err
	}
	u, err := x.account.store.ChangeUser(db, x.route.user, func(u *store.User) error {
		u.ID = id
		return checkCatalogMatch(x.header, u.ETag)
	})
	if err != nil {
		return nil, err
	}
	return userReply(http.StatusOK, u), nil
}

// deleteUser answers DELETE /dbs/{db}/users/{user} and deletes a user with its permissions.
//
//   - Supports: If-Match.
//   - Refuses: an unknown user (404), another ETag (412). Tokens stay valid until they expire.
//   - Source: REST reference, Delete a User.
func deleteUser(x *request) (*reply, error) {
	db, u, err := x.user()
	if err == nil {
		err = checkCatalogMatch(x.header, u.ETag)
	}
	if err == nil {
		err = x.account.store.DeleteUser(db, u.ID)
	}
	if err != nil {
		return nil, err
	}
	return ok(http.StatusNoContent, nil, metadataCharge), nil
}

// listUsers answers GET /dbs/{db}/users with the users of a database.
//
//   - Supports: pages of x-ms-max-item-count; without it all are on one page.
//   - Refuses: an unknown database (404), an invalid page size or continuation (400).
//   - Source: REST reference, List Users.
func listUsers(x *request) (*reply, error) { return userFeed(x, false) }

// queryUsers answers POST /dbs/{db}/users with the users that match a query.
//
//   - Supports: filters and projections, and pages as listUsers.
//   - Refuses: sorting, joins and aggregates (400), an unknown database (404).
//   - Source: query_users of the SDK for Python.
func queryUsers(x *request) (*reply, error) { return userFeed(x, true) }

func userFeed(x *request, queried bool) (*reply, error) {
	db, err := x.database()
	if err != nil {
		return nil, err
	}
	var all []resource
	for _, u := range x.account.store.Users(db) {
		all = append(all, resource{u.ID, userText(u)})
	}
	return metadataFeed(x, "Users", db.RID, all, queried)
}

func userLink(u *store.User) string { return "dbs/" + u.Database + "/users/" + u.RID + "/" }

func userText(u *store.User) []byte {
	id, _ := json.Marshal(u.ID) // a string never fails
	etag, _ := json.Marshal(u.ETag)
	return fmt.Appendf(nil, `{"id":%s,"_rid":%q,"_self":%q,"_etag":%s,"_permissions":"permissions/","_ts":%d}`, id, u.RID, userLink(u), etag, u.Modified/1000)
}

func userReply(status int, u *store.User) *reply {
	a := ok(status, userText(u), metadataCharge)
	a.etag = u.ETag
	return a
}
