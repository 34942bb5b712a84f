package cosmosemu

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// createPermission answers POST /dbs/{db}/users/{user}/permissions and creates a permission
// with a resource token.
//
//   - Supports: modes Read and All on a container or an item, one partition key, the lifetime
//     of the token, the upsert header.
//   - Refuses: another resource or mode (400), an unknown user or resource (404), an id in
//     use (409).
//   - Source: REST reference, Create a Permission.
func createPermission(x *request) (*reply, error) {
	p, err := permissionBody(x.body)
	if err != nil {
		return nil, err
	}
	return changePermission(x, p, func(u *store.User) (*store.Permission, int, error) {
		old, err := u.Permission(p.ID)
		switch {
		case errors.Is(err, store.ErrNotFound):
			u.Permissions = append(u.Permissions, store.Permission{ID: p.ID})
			return &u.Permissions[len(u.Permissions)-1], http.StatusCreated, nil
		case !isTrue(x.header, headerIsUpsert):
			err = fmt.Errorf("permission %s: %w", p.ID, store.ErrExists)
		}
		return old, http.StatusOK, err
	})
}

// replacePermission answers PUT .../permissions/{permission} and changes a permission.
//
//   - Supports: another id, mode, resource or partition key; If-Match.
//   - Refuses: as createPermission, an unknown permission (404), another ETag (412). Earlier
//     tokens stay valid until they expire.
//   - Source: REST reference, Replace a Permission.
func replacePermission(x *request) (*reply, error) {
	p, err := permissionBody(x.body)
	if err != nil {
		return nil, err
	}
	return changePermission(x, p, func(u *store.User) (*store.Permission, int, error) {
		old, err := u.Permission(x.route.id)
		if err != nil {
			return nil, 0, err
		}
		if taken, err := u.Permission(p.ID); err == nil && taken != old {
			return nil, 0, fmt.Errorf("permission %s: %w", p.ID, store.ErrExists)
		}
		return old, http.StatusOK, checkCatalogMatch(x.header, old.ETag)
	})
}

// changePermission copies the content of p to the permission that find returns, and answers
// with the status that find returns.
func changePermission(x *request, p *store.Permission, find func(*store.User) (*store.Permission, int, error)) (*reply, error) {
	db, u, err := x.user()
	if err != nil {
		return nil, err
	}
	if _, err := x.account.permittedResource(db, p); err != nil {
		return nil, err
	}
	var status int
	u, err = x.account.store.ChangeUser(db, u.ID, func(u *store.User) error {
		to, answer, err := find(u)
		if err != nil {
			return err
		}
		status = answer
		to.ID, to.Mode, to.Resource, to.Key = p.ID, p.Mode, p.Resource, p.Key
		x.account.store.StampPermission(u, to)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return permissionReply(x, status, db, u, p.ID)
}

func permissionBody(body []byte) (*store.Permission, error) {
	var in struct {
		ID   string          `json:"id"`
		Mode string          `json:"permissionMode"`
		Link string          `json:"resource"`
		Key  json.RawMessage `json:"resourcePartitionKey"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, refuse(http.StatusBadRequest, "The request body is not a permission: %v", err)
	}
	if err := checkResourceID("permission", in.ID); err != nil {
		return nil, err
	}
	switch { // the SDK for JavaScript writes it in lower case
	case strings.EqualFold(in.Mode, "Read"):
		in.Mode = "Read"
	case strings.EqualFold(in.Mode, "All"):
		in.Mode = "All"
	default:
		return nil, refuse(http.StatusBadRequest, "permissionMode is %q: it must be Read or All", in.Mode)
	}
	if string(in.Key) == "null" {
		in.Key = nil
	}
	return &store.Permission{ID: in.ID, Mode: in.Mode, Resource: in.Link, Key: in.Key}, nil
}

// readPermission answers GET .../permissions/{permission} with a permission and a new token.
//
//   - Supports: the lifetime of the token.
//   - Refuses: an unknown user or permission (404), an invalid lifetime (400).
//   - Source: REST reference, Get a Permission.
func readPermission(x *request) (*reply, error) {
	db, u, err := x.user()
	if err != nil {
		return nil, err
	}
	return permissionReply(x, http.StatusOK, db, u, x.route.id)
}

// deletePermission answers DELETE .../permissions/{permission} and deletes a permission.
//
//   - Supports: If-Match.
//   - Refuses: an unknown user or permission (404), another ETag (412). Tokens stay valid
//     until they expire.
//   - Source: REST reference, Delete a Permission.
func deletePermission(x *request) (*reply, error) {
	db, u, err := x.user()
	if err != nil {
		return nil, err
	}
	_, err = x.account.store.ChangeUser(db, u.ID, func(u *store.User) error {
		p, err := u.Permission(x.route.id)
		if err == nil {
			err = checkCatalogMatch(x.header, p.ETag)
		}
		if err != nil {
			return err
		}
		u.Permissions = slices.DeleteFunc(u.Permissions, func(other store.Permission) bool { return other.RID == p.RID })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ok(http.StatusNoContent, nil, metadataCharge), nil
}

// listPermissions answers GET .../permissions with the permissions of a user and new tokens.
//
//   - Supports: pages of x-ms-max-item-count, without it all are on one page; the lifetime
//     of the tokens.
//   - Refuses: an unknown user (404), an invalid page size, continuation or lifetime (400).
//   - Source: REST reference, List Permissions.
func listPermissions(x *request) (*reply, error) { return permissionFeed(x, false) }

// queryPermissions answers POST .../permissions with the permissions that match a query.
//
//   - Supports: filters and projections, and pages as listPermissions.
//   - Refuses: sorting, joins and aggregates (400), an unknown user (404).
//   - Source: query_permissions of the SDK for Python.
func queryPermissions(x *request) (*reply, error) { return permissionFeed(x, true) }

func permissionFeed(x *request, queried bool) (*reply, error) {
	db, u, err := x.user()
	if err != nil {
		return nil, err
	}
	var all []resource
	for i := range u.Permissions {
		body, err := permissionText(x, db, u, &u.Permissions[i])
		if err != nil {
			return nil, err
		}
		all = append(all, resource{u.Permissions[i].ID, body})
	}
	slices.SortFunc(all, func(a, b resource) int { return strings.Compare(a.key, b.key) })
	return metadataFeed(x, "Permissions", u.RID, all, queried)
}

func permissionReply(x *request, status int, db *store.Database, u *store.User, id string) (*reply, error) {
	p, err := u.Permission(id)
	if err != nil {
		return nil, err
	}
	body, err := permissionText(x, db, u, p)
	if err != nil {
		return nil, err
	}
	a := ok(status, body, metadataCharge)
	a.etag = p.ETag
	return a, nil
}

func permissionText(x *request, db *store.Database, u *store.User, p *store.Permission) ([]byte, error) {
	token, err := x.account.issueToken(x.header, db, p)
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	text := json.NewEncoder(&body)
	text.SetEscapeHTML(false) // tokens contain an &
	err = text.Encode(struct {
		ID    string          `json:"id"`
		Mode  string          `json:"permissionMode"`
		Link  string          `json:"resource"`
		Key   json.RawMessage `json:"resourcePartitionKey,omitempty"`
		RID   string          `json:"_rid"`
		Self  string          `json:"_self"`
		ETag  string          `json:"_etag"`
		Time  int64           `json:"_ts"`
		Token string          `json:"_token"`
	}{p.ID, p.Mode, p.Resource, p.Key, p.RID, userLink(u) + "permissions/" + p.RID + "/", p.ETag, p.Modified / 1000, token})
	if err != nil {
		return nil, fmt.Errorf("encode permission: %w", err)
	}
	return bytes.TrimSpace(body.Bytes()), nil
}
