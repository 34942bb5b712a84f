package cosmosemu

import (
	"net/http"
	"net/url"
	"strings"
)

// route is the operation and the resource that the path and headers of a request name.
type route struct {
	op       Operation
	resource string // type in the signature: dbs, colls, docs, pkranges, offers or ""
	link     string // resource link in the signature
	db       string
	coll     string
	user     string
	id       string // of a document, offer or permission

	contentPath, altContentPath string // resource id and name link of the parent, for the reply
}

// parseRoute finds the operation of a request. ok is false if no operation matches.
func parseRoute(r *http.Request) (rt route, ok bool) {
	path := strings.Trim(r.URL.EscapedPath(), "/")
	if r.URL.RawQuery != "" || r.URL.ForceQuery { // the .NET SDK does not escape a ? in an id
		path += "?" + r.URL.RawQuery
	}
	if path == "" {
		rt.op = OpReadAccount
		return rt, r.Method == http.MethodGet
	}
	var segments [7]string
	n := 0
	for part := range strings.SplitSeq(path, "/") {
		if n == len(segments) {
			return rt, false
		}
		if strings.IndexByte(part, '%') >= 0 {
			decoded, err := url.PathUnescape(part)
			if err != nil {
				return rt, false
			}
			part = decoded
		}
		segments[n] = part
		n++
	}
	switch {
	case segments[0] == "offers" && n <= 2:
		rt.resource, rt.link, rt.id = "offers", strings.ToLower(segments[1]), segments[1]
		rt.op = pickOperation(r, n == 1, OpQueryOffers, "", OpListOffers, OpReadOffer, OpReplaceOffer, "")
		return rt, rt.op != ""
	case segments[0] != "dbs" || n > 6:
		return rt, false
	}
	rt.db, rt.coll, rt.id = segments[1], segments[3], segments[5]
	switch {
	case n <= 2:
		rt.resource, rt.link = "dbs", joinLink(segments[:n], n == 1)
		rt.op = pickOperation(r, n == 1, OpQueryDatabases, OpCreateDatabase, OpListDatabases, OpReadDatabase, "", OpDeleteDatabase)
	case segments[2] == "users" && n <= 4:
		rt.user, rt.coll = rt.coll, ""
		rt.resource, rt.link = "users", joinLink(segments[:n], n == 3)
		rt.op = pickOperation(r, n == 3, OpQueryUsers, OpCreateUser, OpListUsers, OpReadUser, OpReplaceUser, OpDeleteUser)
	case segments[2] == "users" && segments[4] == "permissions":
		rt.user, rt.coll = rt.coll, ""
		rt.resource, rt.link = "permissions", joinLink(segments[:n], n == 5)
		rt.op = pickOperation(r, n == 5, OpQueryPermissions, OpCreatePermission, OpListPermissions, OpReadPermission, OpReplacePermission, OpDeletePermission)
	case segments[2] != "colls":
		return rt, false
	case n <= 4:
		rt.resource, rt.link = "colls", joinLink(segments[:n], n == 3)
		rt.op = pickOperation(r, n == 3, OpQueryContainers, OpCreateContainer, OpListContainers, OpReadContainer, OpReplaceContainer, OpDeleteContainer)
	case segments[4] == "pkranges" && n == 5 && r.Method == http.MethodGet:
		rt.resource, rt.link, rt.op = "pkranges", joinLink(segments[:n], true), OpReadPartitionKeyRanges
	case segments[4] == "conflicts":
		rt.resource, rt.link = "conflicts", joinLink(segments[:n], n == 5)
		rt.op = pickOperation(r, n == 5, OpListConflicts, "", OpListConflicts, OpReadConflict, "", OpReadConflict)
	case segments[4] == "operations" && segments[5] == "partitionkeydelete" && r.Method == http.MethodPost:
		rt.resource, rt.link, rt.id, rt.op = "partitionkey", joinLink(segments[:4], false), "", OpDeletePartition
	case segments[4] == "docs":
		rt.resource, rt.link = "docs", joinLink(segments[:n], n == 5)
		rt.op = pickItem(r, n == 5)
	}
	return rt, rt.op != ""
}

// joinLink returns the link that a request signs: the link of the resource itself, or of
// its parent for a feed.
func joinLink(segments []string, feed bool) string {
	if feed {
		segments = segments[:len(segments)-1]
	}
	return strings.Join(segments, "/")
}

// pickOperation chooses one of the operations of a resource type; "" means none.
func pickOperation(r *http.Request, feed bool, query, create, list, read, replace, remove Operation) Operation {
	switch {
	case feed && r.Method == http.MethodPost && isQuery(r.Header):
		return query
	case feed && r.Method == http.MethodPost:
		return create
	case feed && r.Method == http.MethodGet:
		return list
	case feed:
		return ""
	case r.Method == http.MethodGet:
		return read
	case r.Method == http.MethodPut:
		return replace
	case r.Method == http.MethodDelete:
		return remove
	}
	return ""
}

func pickItem(r *http.Request, feed bool) Operation {
	h := r.Header
	switch {
	case !feed && r.Method == http.MethodPatch:
		return OpPatchItem
	case !feed:
		return pickOperation(r, false, "", "", "", OpReadItem, OpReplaceItem, OpDeleteItem)
	case r.Method == http.MethodGet && first(h, headerAIM) != "":
		return OpReadChangeFeed
	case r.Method == http.MethodGet:
		return OpListItems
	case r.Method != http.MethodPost:
		return ""
	case isTrue(h, headerIsQueryPlan):
		return OpQueryPlan
	case isQuery(h):
		return OpQueryItems
	case isTrue(h, headerIsBatch):
		return OpBatch
	case isTrue(h, headerIsUpsert):
		return OpUpsertItem
	}
	return OpCreateItem
}

func isQuery(h http.Header) bool {
	return isTrue(h, headerIsQuery) || isTrue(h, headerIsQueryJS) ||
		strings.HasPrefix(first(h, headerContentType), "application/query+json")
}
