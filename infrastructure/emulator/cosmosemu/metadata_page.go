package cosmosemu

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
)

// resource is one entry of a metadata feed. Feeds are sorted by key, so that a continuation
// stays valid when other entries are added or deleted.
type resource struct {
	key  string
	body []byte
}

// metadataFeed answers with a page of databases, containers, offers, users or permissions.
// The client sets the page size; without one all are on one page. If queried, the query in
// the request filters and projects them.
func metadataFeed(x *request, name, rid string, all []resource, queried bool) (*reply, error) {
	limit, err := maxItemCount(x.header)
	if err != nil {
		return nil, err
	}
	token := first(x.header, headerContinuation)
	after, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "The continuation token %q is not one of this feed", token)
	}
	if queried {
		if all, err = filterMetadata(x, all); err != nil {
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
func filterMetadata(x *request, all []resource) ([]resource, error) {
	b, err := parseQuery(x.body, query.Parse, query.Setting{Now: x.account.now(), Stop: x.overdue()})
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
	return kept, stopped(b)
}
