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

// createPermission answers POST /dbs/{db}/users/{user}/permissions, an upsert too.
func createPermission(x *request) (*reply, error) {
	p, err := x.permissionBody()
	if err != nil {
		return nil, err
	}
	return x.changePermission(p, func(u *store.User) (*store.Permission, int, error) {
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

// replacePermission answers PUT .../permissions/{permission}: it may give another id.
func replacePermission(x *request) (*reply, error) {
	p, err := x.permissionBody()
	if err != nil {
		return nil, err
	}
	return x.changePermission(p, func(u *store.User) (*store.Permission, int, error) {
		old, err := u.Permission(x.route.id)
		if err != nil {
			return nil, 0, err
		}
		if taken, err := u.Permission(p.ID); err == nil && taken != old {
			return nil, 0, fmt.Errorf("permission %s: %w", p.ID, store.ErrExists)
		}
		return old, http.StatusOK, x.checkCatalogMatch(old.ETag)
	})
}

// changePermission gives the permission that find returns the content of p, and answers
// with the status that find returns.
func (x *request) changePermission(p *store.Permission, find func(*store.User) (*store.Permission, int, error)) (*reply, error) {
	db, u, err := x.user()
	if err != nil {
		return nil, err
	}
	if _, err := x.permittedResource(db, p); err != nil {
		return nil, err
	}
	var status int
	u, err = x.srv.store.ChangeUser(db, u.ID, func(u *store.User) error {
		to, answer, err := find(u)
		if err != nil {
			return err
		}
		status = answer
		to.ID, to.Mode, to.Resource, to.Key = p.ID, p.Mode, p.Resource, p.Key
		x.srv.store.StampPermission(u, to)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return x.permissionReply(status, db, u, p.ID)
}

func (x *request) permissionBody() (*store.Permission, error) {
	var in struct {
		ID   string          `json:"id"`
		Mode string          `json:"permissionMode"`
		Link string          `json:"resource"`
		Key  json.RawMessage `json:"resourcePartitionKey"`
	}
	if err := json.Unmarshal(x.body, &in); err != nil {
		return nil, refuse(http.StatusBadRequest, "The request body is not a permission: %v", err)
	}
	if err := checkResourceID("permission", in.ID); err != nil {
		return nil, err
	}
	switch { // JavaScript writes it in lower case
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

// readPermission answers GET .../permissions/{permission}, with a new token.
func readPermission(x *request) (*reply, error) {
	db, u, err := x.user()
	if err != nil {
		return nil, err
	}
	return x.permissionReply(http.StatusOK, db, u, x.route.id)
}

// deletePermission answers DELETE .../permissions/{permission}.
func deletePermission(x *request) (*reply, error) {
	db, u, err := x.user()
	if err != nil {
		return nil, err
	}
	_, err = x.srv.store.ChangeUser(db, u.ID, func(u *store.User) error {
		p, err := u.Permission(x.route.id)
		if err == nil {
			err = x.checkCatalogMatch(p.ETag)
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

// listPermissions answers GET .../permissions, with new tokens.
func listPermissions(x *request) (*reply, error) { return x.permissionFeed(false) }

// queryPermissions answers POST .../permissions with a query.
func queryPermissions(x *request) (*reply, error) { return x.permissionFeed(true) }

func (x *request) permissionFeed(queried bool) (*reply, error) {
	db, u, err := x.user()
	if err != nil {
		return nil, err
	}
	var all []resource
	for i := range u.Permissions {
		body, err := x.permissionText(db, u, &u.Permissions[i])
		if err != nil {
			return nil, err
		}
		all = append(all, resource{u.Permissions[i].ID, body})
	}
	slices.SortFunc(all, func(a, b resource) int { return strings.Compare(a.key, b.key) })
	return x.metadataFeed("Permissions", u.RID, all, queried)
}

func (x *request) permissionReply(status int, db *store.Database, u *store.User, id string) (*reply, error) {
	p, err := u.Permission(id)
	if err != nil {
		return nil, err
	}
	body, err := x.permissionText(db, u, p)
	if err != nil {
		return nil, err
	}
	a := ok(status, body, metadataCharge)
	a.etag = p.ETag
	return a, nil
}

func (x *request) permissionText(db *store.Database, u *store.User, p *store.Permission) ([]byte, error) {
	token, err := x.issueToken(db, p)
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	text := json.NewEncoder(&body)
	text.SetEscapeHTML(false) // tokens hold an &
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
