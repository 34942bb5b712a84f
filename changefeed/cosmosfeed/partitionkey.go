package cosmosfeed

import (
	"fmt"
	"strings"

	"feedbox/changefeed"
	"feedbox/changefeed/internal/jsonscan"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// keyPaths finds the partition key values of a document in its raw bytes.
type keyPaths struct {
	paths [][]string // members from the document inwards, one per key part
	// unhashed says why effective partition keys are not computed here; empty if
	// they are.
	unhashed string
}

// newKeyPaths reads a container's partition key definition.
func newKeyPaths(d azcosmos.PartitionKeyDefinition) (keyPaths, error) {
	var k keyPaths
	switch {
	case d.Kind == azcosmos.PartitionKeyKindMultiHash || len(d.Paths) > 1:
		k.unhashed = "the container's partition key is hierarchical"
	case d.Version != 2:
		k.unhashed = fmt.Sprintf("the container's partition key has hash version %d", max(d.Version, 1))
	}
	for _, p := range d.Paths {
		var path []string
		for part := range strings.SplitSeq(strings.TrimPrefix(p, "/"), "/") {
			path = append(path, strings.Trim(part, `"'`))
		}
		k.paths = append(k.paths, path)
	}
	if len(k.paths) == 0 {
		return keyPaths{}, fmt.Errorf("the container has no partition key path: %w", changefeed.ErrPermanent)
	}
	return k, nil
}

// note keeps a top-level member if it leads to a key part.
func (k *keyPaths) note(values [][]byte, name, value []byte) {
	for i, path := range k.paths {
		if string(name) != path[0] {
			continue
		}
		for _, part := range path[1:] {
			value = jsonscan.Member(value, part)
		}
		values[i] = value
	}
}

// key is the raw JSON of the key, for ordering: the value itself, or the parts
// of a hierarchical key one after another.
func (k *keyPaths) key(values [][]byte) []byte {
	if len(values) == 1 {
		return values[0]
	}
	var joined []byte
	for _, v := range values {
		joined = append(append(joined, v...), ',')
	}
	return joined
}
