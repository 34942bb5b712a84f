package cosmosemu

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// maxComputed is the service's limit of computed properties in a container.
const maxComputed = 20

// reservedNames are the properties that the service writes or that identify an item.
var reservedNames = []string{"id", "_rid", "_ts", "_etag", "_self", "_attachments", "_lsn", "ttl"}

// parseComputed reads the computed properties of a container. It refuses those that are
// malformed or ambiguous.
func parseComputed(text json.RawMessage, keyPaths []document.Path, spatial []string) (list []store.ComputedProperty, err error) {
	if len(text) == 0 {
		return nil, nil
	}
	var given []struct{ Name, Query *string }
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, refuseInputs("One of the specified inputs is invalid")
	}
	for _, g := range given {
		if g.Name == nil || g.Query == nil {
			return nil, refuseInputs("One of the specified inputs is invalid")
		}
		list = append(list, store.ComputedProperty{Name: *g.Name, Query: *g.Query})
	}
	if len(list) > maxComputed {
		return nil, refuse(http.StatusBadRequest, "The container has %d computed properties: at most %d are allowed", len(list), maxComputed)
	}
	seen := map[string]bool{}
	for i, c := range list {
		onKey := slices.ContainsFunc(keyPaths, func(path document.Path) bool { return path[0] == c.Name })
		switch {
		case c.Name == "":
			return nil, refuseInputs("Computed property 'name' is either empty or unspecified.")
		case c.Query == "":
			return nil, refuseInputs("Computed property 'query' is either empty or unspecified.")
		case seen[c.Name]:
			return nil, refuseInputs("Computed property name '%s' cannot be used in multiple definitions.", c.Name)
		case slices.Contains(reservedNames, c.Name):
			return nil, refuseInputs("The system property name '%s' cannot be used as a computed property name.", c.Name)
		case slices.Contains(spatial, c.Name):
			return nil, refuseInputs("Computed property '%s' at index (%d) has a spatial index. Remove the spatial index on this path.", c.Name, i)
		case onKey:
			return nil, refuseInputs("Computed property '%s' has the name of the partition key.", c.Name)
		}
		seen[c.Name] = true
		if _, err := query.ParseComputed(c.Name, c.Query); err != nil {
			return nil, refuseInputs("Computed property at index (%d) has a malformed query: '%s' Error details: '%v'", i, c.Query, err)
		}
	}
	return list, nil
}

// refuseInputs refuses a definition with the service's message, which contains a list of
// errors.
func refuseInputs(format string, args ...any) *wireError {
	list, _ := json.Marshal(struct{ Errors []string }{[]string{fmt.Sprintf(format, args...)}}) // strings never fail
	return refuse(http.StatusBadRequest, "Message: %s", list)
}

// computedProperties converts the computed properties of a container for the query engine.
func computedProperties(def *store.Definition) []query.Computed {
	var list []query.Computed
	for _, c := range def.Computed {
		if one, err := query.ParseComputed(c.Name, c.Query); err == nil { // checked on creation
			list = append(list, one)
		}
	}
	return list
}
