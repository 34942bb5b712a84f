package cosmosfeed

import (
	"errors"

	"feedbox/changefeed"
	"feedbox/changefeed/internal/jsonscan"
)

var errNotAPage = errors.New("the reply is not a page of documents")

// decoder turns replies into items in one pass over the bytes: nothing of a
// document is decoded but its LSN, its time and its partition key.
type decoder struct {
	keys   keyPaths
	gate   *gate
	values [][]byte // of the document at hand
}

func newDecoder(keys keyPaths, g *gate) decoder {
	return decoder{keys: keys, gate: g, values: make([][]byte, len(keys.paths))}
}

// page reads the body of a feed reply. Items are parts of body.
func (d *decoder) page(body []byte, items []changefeed.Item) ([]changefeed.Item, error) {
	c := jsonscan.NewCursor(body)
	found := false
	for c.Object(); c.Member(); {
		if string(c.Name()) != "Documents" {
			c.Value()
			continue
		}
		found = true
		for c.Array(); c.Element(); {
			start := c.Pos()
			item, ok := d.document(&c)
			if !ok {
				return nil, errNotAPage
			}
			item.Raw = body[start:c.Pos()]
			mine, err := d.gate.admits(d.values, item.LSN)
			if err != nil {
				return nil, err
			}
			if mine {
				items = append(items, item)
			}
		}
	}
	if c.Failed() || !found {
		return nil, errNotAPage
	}
	return items, nil
}

// document reads one document, without its Raw.
func (d *decoder) document(c *jsonscan.Cursor) (item changefeed.Item, ok bool) {
	clear(d.values)
	for c.Object(); c.Member(); {
		name := c.Name()
		value := c.Value()
		switch string(name) {
		case "_lsn":
			item.LSN, _ = jsonscan.Int(value)
		case "_ts":
			item.Timestamp, _ = jsonscan.Int(value)
		}
		d.keys.note(d.values, name, value)
	}
	item.Key = d.keys.key(d.values)
	return item, !c.Failed()
}

// single reads one document the SDK has cut out already.
func (d *decoder) single(raw []byte) (item changefeed.Item, mine bool, err error) {
	c := jsonscan.NewCursor(raw)
	item, ok := d.document(&c)
	if !ok {
		return item, false, errNotAPage
	}
	item.Raw = raw
	mine, err = d.gate.admits(d.values, item.LSN)
	return item, mine, err
}
