package cosmosfeed

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"feedbox/changefeed"
	"feedbox/changefeed/internal/jsonscan"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

var errNotAPage = errors.New("the reply is not a page of documents")

// decoder turns replies into items in one pass over the bytes. It decodes only the LSN, the
// time and the partition key of a document.
type decoder struct {
	container string // resource id of the requested container
	keys      keyPaths
	filter    *filter
	values    [][]byte          // of the current document
	items     []changefeed.Item // of the lease; slices of the decoded bytes
	versions  bool              // the body is one of the feed of all versions
}

// page reads the body of a feed reply.
func (d *decoder) page(body []byte) error {
	c := jsonscan.NewCursor(body)
	found := false
	for c.Object(); c.Member(); {
		switch string(c.Name()) {
		case "Documents":
			found = true
		case "_rid":
			name, _ := jsonscan.Unquote(c.Value())
			if err := sameContainer(string(name), d.container); err != nil {
				return err
			}
			continue
		default:
			c.Value()
			continue
		}
		read := d.document
		if d.versions {
			read = d.entry
		}
		for c.Array(); c.Element(); {
			if err := read(&c, body); err != nil {
				return err
			}
		}
	}
	if c.Failed() || !found {
		return errNotAPage
	}
	return nil
}

// document reads the document of body that starts at c.
func (d *decoder) document(c *jsonscan.Cursor, body []byte) error {
	start := c.Pos()
	var item changefeed.Item
	clear(d.values)
	for c.Object(); c.Member(); {
		name := c.Name()
		value := c.Value()
		switch string(name) {
		case "_lsn":
			item.LSN, _ = strconv.ParseInt(string(value), 10, 64) // 0 if it is none
		case "_ts":
			item.Timestamp, _ = strconv.ParseInt(string(value), 10, 64)
		}
		d.keys.note(d.values, name, value)
	}
	if c.Failed() {
		return errNotAPage
	}
	return d.add(item, body[start:c.Pos()])
}

// entry reads an entry of the feed of all versions: a document under current, and the metadata of its
// write. It skips deletions, also those of expired documents.
func (d *decoder) entry(c *jsonscan.Cursor, _ []byte) error {
	var current, metadata []byte
	for c.Object(); c.Member(); {
		switch name := string(c.Name()); name {
		case "current":
			current = c.Value()
		case "metadata":
			metadata = c.Value()
		default:
			c.Value()
		}
	}
	operation, _ := jsonscan.Unquote(jsonscan.Member(metadata, "operationType"))
	lsn, err := strconv.ParseInt(string(jsonscan.Member(metadata, "lsn")), 10, 64)
	switch {
	case c.Failed() || err != nil:
		return errNotAPage
	case string(operation) == "delete":
		return nil
	case string(operation) != "create" && string(operation) != "replace":
		return fmt.Errorf("the feed of all versions has the unknown operation %q at LSN %d", operation, lsn)
	}
	item := changefeed.Item{LSN: lsn}
	item.Timestamp, _ = strconv.ParseInt(string(jsonscan.Member(metadata, "crts")), 10, 64)
	clear(d.values)
	document := jsonscan.NewCursor(current)
	for document.Object(); document.Member(); {
		name := document.Name()
		d.keys.note(d.values, name, document.Value())
	}
	if document.Failed() {
		return errNotAPage
	}
	return d.add(item, current)
}

// add adds a document, unless another lease has it.
func (d *decoder) add(item changefeed.Item, raw []byte) error {
	own, err := d.filter.admits(d.values, item.LSN)
	if own {
		item.Key, item.Raw = d.keys.key(d.values), raw
		d.items = append(d.items, item)
	}
	return err
}

// keyPaths finds the partition key values of a document in its raw bytes.
type keyPaths struct {
	paths [][]string // members from the document inwards, one per key part
	// unhashed is the reason why effective partition keys are not computed here; empty if
	// they are.
	unhashed string
}

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

// note stores a top-level member that contains a key part.
func (k *keyPaths) note(values [][]byte, name, value []byte) {
	for i, path := range k.paths {
		if string(name) != path[0] {
			continue
		}
		at := value
		for _, part := range path[1:] {
			at = jsonscan.Member(at, part)
		}
		values[i] = at
	}
}

// key returns the raw JSON of the key, for ordering: the value itself, or the joined parts
// of a hierarchical key.
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
