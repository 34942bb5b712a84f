package cosmosemu

import (
	"encoding/json"
	"net/http"
	"slices"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/query"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// maxComputed is how many computed properties the service lets a container have.
const maxComputed = 20

// reservedNames are properties that the service makes, or that say where an item is.
var reservedNames = []string{"id", "_rid", "_ts", "_etag", "_self", "_attachments", "_lsn", "ttl"}

// parseComputed reads the computed properties of a container. Those that would have
// no meaning, or two, are refused.
func parseComputed(text json.RawMessage, keyPaths []document.Path) (list []store.ComputedProperty, err error) {
	if len(text) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, refuse(http.StatusBadRequest, "One of the specified inputs is invalid: computedProperties is no list of names and queries")
	}
	if len(list) > maxComputed {
		return nil, refuse(http.StatusBadRequest, "The container has %d computed properties: at most %d are allowed", len(list), maxComputed)
	}
	seen := map[string]bool{}
	for _, c := range list {
		onKey := slices.ContainsFunc(keyPaths, func(path document.Path) bool { return path[0] == c.Name })
		switch {
		case c.Name == "":
			return nil, refuse(http.StatusBadRequest, "A computed property has no name")
		case seen[c.Name]:
			return nil, refuse(http.StatusBadRequest, "Two computed properties are named %q", c.Name)
		case onKey || slices.Contains(reservedNames, c.Name):
			return nil, refuse(http.StatusBadRequest, "The computed property %q has the name of a system property or of the partition key", c.Name)
		}
		seen[c.Name] = true
		if _, err := query.ParseComputed(c.Name, c.Query); err != nil {
			return nil, refuse(http.StatusBadRequest, "The query of the computed property %q is invalid: %v", c.Name, err)
		}
	}
	return list, nil
}

// computedProperties are those of a container as the query engine takes them.
func computedProperties(def *store.Definition) []query.Computed {
	var list []query.Computed
	for _, c := range def.Computed {
		if one, err := query.ParseComputed(c.Name, c.Query); err == nil { // checked on creation
			list = append(list, one)
		}
	}
	return list
}
