package cosmosemu

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"unicode/utf8"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/infrastructure/emulator/cosmosemu/internal/store"
)

// newKeyVersion is the version of the partition key of a new container whose definition has
// none, as in the service. Only the definitions of such containers omit the version.
const newKeyVersion = 1

// defaultIndexingPolicy is the policy that the service adds if there is none.
const defaultIndexingPolicy = `{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]}`

// containerDefaults are members that the service adds if the client gives none. They have no
// effect here.
var containerDefaults = []struct{ name, value string }{
	{"conflictResolutionPolicy", `{"mode":"LastWriterWins","conflictResolutionPath":"/_ts","conflictResolutionProcedure":""}`},
	{"geospatialConfig", `{"type":"Geography"}`},
}

// parseDefinition reads the body of a container. Members that the emulator does not use
// are kept unchanged. A partition key without a version has the version keyVersion.
func parseDefinition(body []byte, keyVersion int) (*store.Definition, error) {
	var in struct {
		ID               string         `json:"id"`
		PartitionKey     *keyDefinition `json:"partitionKey"`
		DefaultTTL       *float64       `json:"defaultTtl"`
		TTLPath          string         `json:"ttlPropertyPath"`
		ChangeFeedPolicy struct {
			Retention float64 `json:"retentionDuration"` // minutes
		} `json:"changeFeedPolicy"`
		IndexingPolicy  json.RawMessage `json:"indexingPolicy"`
		UniqueKeyPolicy struct {
			UniqueKeys []struct {
				Paths []string `json:"paths"`
			} `json:"uniqueKeys"`
		} `json:"uniqueKeyPolicy"`
		Computed json.RawMessage `json:"computedProperties"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, refuse(http.StatusBadRequest, "The request body is not a container: %v", err)
	}
	if err := checkResourceID("container", in.ID); err != nil {
		return nil, err
	}
	if in.PartitionKey == nil {
		in.PartitionKey = &keyDefinition{Paths: []string{systemKeyPath}}
	}
	if len(in.PartitionKey.Paths) == 0 {
		return nil, refuse(http.StatusBadRequest, "The partition key has no paths")
	}
	if in.TTLPath != "" && (in.DefaultTTL == nil || in.TTLPath != "/_ts") {
		return nil, refuse(http.StatusBadRequest, "ttlPropertyPath is %q: it needs a defaultTtl, and this emulator counts from /_ts only", in.TTLPath)
	}
	spatial, err := parseSpatialIndexes(in.IndexingPolicy)
	if err != nil {
		return nil, err
	}
	def := &store.Definition{ID: in.ID, KeyVersion: int(in.PartitionKey.Version)}
	if def.Paths, def.Hierarchical, err = parseKeyPaths(in.PartitionKey.Paths, in.PartitionKey.Kind); err != nil {
		return nil, err
	}
	switch def.KeyVersion {
	case 0:
		if def.KeyVersion = keyVersion; def.Hierarchical {
			def.KeyVersion = 2 // the only one
		}
	case 1, 2:
	default:
		return nil, refuse(http.StatusBadRequest, "The partition key version %d is invalid: it must be 1 or 2", def.KeyVersion)
	}
	def.PlacedByV1 = def.KeyVersion == 1
	if def.PlacedByV1 && def.Hierarchical {
		return nil, refuse(http.StatusBadRequest, "A hierarchical partition key must have version 2")
	}
	if in.DefaultTTL != nil {
		ttl := *in.DefaultTTL
		if ttl != math.Trunc(ttl) || ttl == 0 || ttl < -1 || ttl > math.MaxInt32 {
			return nil, refuse(http.StatusBadRequest, "defaultTtl is %g: it must be -1 or a whole number from 1 to 2147483647", ttl)
		}
		def.DefaultTTL = int32(ttl)
	}
	for _, key := range in.UniqueKeyPolicy.UniqueKeys {
		if def.Unique, err = appendUniqueKey(def.Unique, key.Paths); err != nil {
			return nil, err
		}
	}
	if def.Computed, err = parseComputed(in.Computed, def.Paths, spatial); err != nil {
		return nil, err
	}
	if r := in.ChangeFeedPolicy.Retention; r != math.Trunc(r) || r < 0 || r > maxRetention {
		return nil, refuse(http.StatusBadRequest, "changeFeedPolicy.retentionDuration is %g: it must be a whole number of minutes, at most %d", r, maxRetention)
	}
	def.Retention = int64(in.ChangeFeedPolicy.Retention)
	policy, err := indexingPolicy(in.IndexingPolicy)
	if err != nil {
		return nil, err
	}
	def.Raw, err = definitionText(body, def, in.PartitionKey, policy)
	return def, err
}

// systemKeyPath is the partition key that the service gives a container created without
// one, which is possible for clients before version 2018-12-31. Its items do not have the
// property, so all are in one logical partition, and such clients send no partition key.
const systemKeyPath = "/_partitionKey"

type keyDefinition struct {
	Paths   []string   `json:"paths"`
	Kind    string     `json:"kind"`
	Version keyVersion `json:"version"`
}

// keyVersion is a number. The Java SDK writes it as "V1" or "V2".
type keyVersion int

// UnmarshalJSON implements json.Unmarshaler.
func (v *keyVersion) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case `"V1"`:
		*v = 1
	case `"V2"`:
		*v = 2
	default:
		return json.Unmarshal(text, (*int)(v))
	}
	return nil
}

// indexingPolicy returns the policy with automatic true, whatever was given: the attribute is
// obsolete and ignored (Learn, "Indexing policies"), and the Rust SDK's suite sends false and reads
// true. In the mode none, where the service refuses true, it is kept as given.
func indexingPolicy(policy json.RawMessage) ([]byte, error) {
	if len(policy) == 0 || string(policy) == "null" {
		return []byte(defaultIndexingPolicy), nil
	}
	var given struct {
		Mode string `json:"indexingMode"`
	}
	if err := json.Unmarshal(policy, &given); err != nil {
		return nil, refuse(http.StatusBadRequest, "The indexingPolicy is invalid: %v", err)
	}
	if strings.EqualFold(given.Mode, "none") {
		return policy, nil
	}
	text := []byte(`{"automatic":true`)
	members, err := document.Members(policy, func(name string, _ []byte) bool { return name != "automatic" })
	if len(members) > 0 {
		text = append(append(text, ','), members...)
	}
	return append(text, '}'), err
}

// definitionText returns the client's text with the partition key and the indexing policy
// completed and without the members that the emulator writes itself.
func definitionText(body []byte, def *store.Definition, in *keyDefinition, policy []byte) (string, error) {
	given := map[string]bool{}
	text, err := document.Members(body, func(name string, value []byte) bool {
		given[name] = string(value) != "null"
		switch name {
		case "_rid", "_self", "_etag", "_ts", "_docs", "_sprocs", "_triggers", "_udfs", "_conflicts", "partitionKey", "indexingPolicy":
			return false
		}
		return given[name]
	})
	if err != nil {
		return "", fmt.Errorf("read container: %w", err)
	}
	kind := "Hash"
	if def.Hierarchical {
		kind = "MultiHash"
	}
	version := def.KeyVersion
	if version == 1 && in.Version == 0 {
		version = 0 // the Rust suite demands that it is omitted, the Python suite that a given one is kept
	}
	key, err := json.Marshal(struct {
		Paths   []string `json:"paths"`
		Kind    string   `json:"kind"`
		Version int      `json:"version,omitempty"`
		System  bool     `json:"systemKey,omitempty"`
	}{in.Paths, kind, version, hasSystemKey(def)})
	if err != nil {
		return "", fmt.Errorf("encode partition key: %w", err)
	}
	text = append(append(text, `,"partitionKey":`...), key...)
	for _, d := range containerDefaults {
		if !given[d.name] {
			text = append(append(append(text, `,"`...), d.name...), `":`...)
			text = append(text, d.value...)
		}
	}
	return string(append(append(text, `,"indexingPolicy":`...), policy...)), nil
}

// checkResourceID checks the id of a database, container, user or permission.
func checkResourceID(kind, id string) error {
	if id == "" || utf8.RuneCountInString(id) > 255 || strings.ContainsAny(id, `/\?#`) || strings.HasSuffix(id, " ") {
		return refuse(http.StatusBadRequest, `The %s id %q is invalid: it needs 1 to 255 characters, none of / \ ? #, and no space at its end`, kind, id)
	}
	return nil
}
