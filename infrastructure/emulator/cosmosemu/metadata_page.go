package cosmosemu

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// resource is a database, container or offer of a feed. Its key says where it stands
// among the others, and stays right when these come and go.
type resource struct {
	key  string
	body []byte
}

func databaseResources(st *store.Store) (out []resource) {
	for _, db := range st.Databases() {
		out = append(out, resource{fmt.Sprintf("%020d %s", db.Created.UnixMilli(), db.ID), databaseBody(db)})
	}
	return out
}

func containerResources(st *store.Store, db *store.Database) (out []resource) {
	for _, c := range st.Containers(db) {
		out = append(out, resource{fmt.Sprintf("%010d", c.Number()), containerBody(c)})
	}
	return out
}

func offerResources(st *store.Store) (out []resource) {
	for _, o := range st.Offers() {
		out = append(out, resource{o.ID, offerBody(o)})
	}
	return out
}

// metadataFeed is a page of databases, containers or offers: as many as the client
// wants, all if it does not say. A query filters and projects them.
func (x *request) metadataFeed(name, rid string, all []resource, queried bool) (*reply, error) {
	limit, err := x.maxItemCount()
	if err != nil {
		return nil, err
	}
	token := first(x.header, headerContinuation)
	after, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "The continuation token %q is not one of this feed", token)
	}
	if queried {
		if all, err = x.filterMetadata(all); err != nil {
			return nil, err
		}
	}
	all = slices.DeleteFunc(all, func(r resource) bool { return strings.Compare(r.key, string(after)) <= 0 })
	a := ok(http.StatusOK, fmt.Appendf(nil, `{"_rid":%q,"%s":[`, rid, name), metadataCharge)
	if limit > 0 && len(all) > limit {
		all = all[:limit]
		a.continuation = base64.RawURLEncoding.EncodeToString([]byte(all[limit-1].key))
	}
	for i := range all {
		if i > 0 {
			a.body = append(a.body, ',')
		}
		a.body = append(a.body, all[i].body...)
	}
	a.body = fmt.Appendf(a.body, `],"_count":%d}`, len(all))
	a.count = len(all)
	return a, nil
}

// filterMetadata applies the query in the request to the bodies of resources.
func (x *request) filterMetadata(all []resource) ([]resource, error) {
	b, err := x.parseQuery(query.Setting{Now: x.srv.now()})
	if err != nil {
		return nil, err
	}
	if !b.Query().Shape().Plain() || b.Many() || b.Sourceless() {
		return nil, refuse(http.StatusBadRequest, "This emulator filters and projects databases, containers and offers; it does not sort, join or aggregate them")
	}
	var kept []resource
	for _, r := range all {
		if !b.Match(r.body) {
			continue
		}
		if row, ok := b.Project(nil, r.body); ok {
			kept = append(kept, resource{r.key, row})
		}
	}
	return kept, nil
}
