package cosmosemu

import (
	"encoding/json"
	"net/http"
	"strings"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// hasSystemKey reports whether the container was created without a partition key.
func hasSystemKey(def *store.Definition) bool {
	return len(def.Paths) == 1 && len(def.Paths[0]) == 1 && def.Paths[0][0] == systemKeyPath[1:]
}

func parseKeyPaths(texts []string, kind string) (paths []document.Path, hierarchical bool, err error) {
	switch kind {
	case "", "Hash":
		hierarchical = kind == "" && len(texts) > 1
	case "MultiHash":
		hierarchical = true
	default:
		return nil, false, refuse(http.StatusBadRequest, "The partition key kind %q is not supported: use Hash or MultiHash", kind)
	}
	if len(texts) > 3 || len(texts) > 1 && !hierarchical {
		return nil, false, refuse(http.StatusBadRequest, "A partition key of %d paths needs kind MultiHash and at most 3", len(texts))
	}
	for _, text := range texts {
		path, ok := parseKeyPath(text)
		if !ok {
			return nil, false, refuse(http.StatusBadRequest, `The partition key path %q is invalid: expected /name, /name/name or /"any name"`, text)
		}
		paths = append(paths, path)
	}
	return paths, hierarchical, nil
}

// Limits of the unique keys of a container. Source: the service's documentation.
const (
	maxUniqueKeys  = 10
	maxUniquePaths = 16
)

func appendUniqueKey(keys []store.UniqueKey, texts []string) ([]store.UniqueKey, error) {
	if len(keys) == maxUniqueKeys {
		return nil, refuse(http.StatusBadRequest, "The container has more than %d unique keys", maxUniqueKeys)
	}
	if len(texts) == 0 || len(texts) > maxUniquePaths {
		return nil, refuse(http.StatusBadRequest, "A unique key of %d paths: it needs 1 to %d", len(texts), maxUniquePaths)
	}
	var key store.UniqueKey
	for _, text := range texts {
		path, ok := parseKeyPath(text)
		if !ok {
			return nil, refuse(http.StatusBadRequest, `The path %q of a unique key is invalid: expected /name, /name/name or /"any name"`, text)
		}
		key = append(key, path)
	}
	return append(keys, key), nil
}

// parseSpatialIndexes checks the spatial indexes of an indexing policy and returns the
// first name of each path. The indexes have no effect.
func parseSpatialIndexes(policy json.RawMessage) (names []string, err error) {
	var in struct {
		Spatial []struct {
			Path  string   `json:"path"`
			Types []string `json:"types"`
		} `json:"spatialIndexes"`
	}
	if len(policy) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(policy, &in); err != nil {
		return nil, refuse(http.StatusBadRequest, "The indexingPolicy is invalid: %v", err)
	}
	for _, s := range in.Spatial {
		if len(s.Types) == 0 {
			return nil, refuseInputs("The spatial data types array cannot be empty. Assign at least one spatial type for the 'types' array for the path '%s'.", s.Path)
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(s.Path, "/"), "/")
		names = append(names, name)
	}
	return names, nil
}

// parseKeyPath splits a path at its slashes. A name in double quotes may contain any
// character except a quote.
func parseKeyPath(text string) (path document.Path, ok bool) {
	for text != "" {
		rest, found := strings.CutPrefix(text, "/")
		if !found {
			return nil, false
		}
		var name string
		if quoted, isQuoted := strings.CutPrefix(rest, `"`); isQuoted {
			if name, text, found = strings.Cut(quoted, `"`); !found {
				return nil, false
			}
		} else {
			end := strings.IndexByte(rest+"/", '/')
			name, text = rest[:end], rest[end:]
		}
		if name == "" {
			return nil, false
		}
		path = append(path, name)
	}
	return path, len(path) > 0
}
