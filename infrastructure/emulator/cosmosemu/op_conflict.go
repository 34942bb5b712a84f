package cosmosemu

import (
	"fmt"
	"net/http"
)

// listConflicts answers GET and POST .../conflicts with an empty list, because one copy of
// the data has no conflicts.
//
//   - Supports: queries on one partition key, or on all with the cross-partition header.
//   - Refuses: other queries (400), an unknown container (404).
//   - Source: the tests of the SDKs for Python and .NET.
func listConflicts(x *request) (*reply, error) {
	c, err := x.container()
	if err != nil {
		return nil, err
	}
	if isQuery(x.header) && first(x.header, headerPartitionKey) == "" && !isTrue(x.header, headerCrossPartition) {
		return nil, crossPartitionDisabled()
	}
	a := ok(http.StatusOK, fmt.Appendf(nil, `{"_rid":%q,"Conflicts":[],"_count":0}`, c.RID), 1)
	a.count = 0
	return a, nil
}

// readConflict answers GET and DELETE .../conflicts/{id}.
//
//   - Supports: nothing, because there are no conflicts.
//   - Refuses: every id (404).
//   - Source: as listConflicts.
func readConflict(x *request) (*reply, error) {
	if _, err := x.container(); err != nil {
		return nil, err
	}
	return nil, refuse(http.StatusNotFound, "Entity with the specified id does not exist in the system: no conflict %q. "+notFound, x.route.id)
}
