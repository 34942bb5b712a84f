package cosmos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"feedbox/infrastructure/store/internal/jsontext"
)

// never is the TTL of a document that does not expire in a container with TTL enabled.
const never = -1

// DataObject is a stored document: the members of all documents, and its data.
type DataObject struct {
	// ID is unique within the partition key.
	ID string
	// PartitionKey is the id of the aggregate the document belongs to.
	PartitionKey string
	// KeyMember is the member for the partition key in a document to be sent; empty is that of
	// PartitionKeyPath.
	KeyMember string
	// Type is the type of Data.
	Type string
	// Data is a JSON object. In a document to be sent it is compact and escaped as
	// encoding/json writes it.
	Data json.RawMessage
	// TTL is the lifetime in seconds from the last write; -1 is for ever.
	TTL int
	// ETag changes with every write. It is quoted as in HTTP, and empty if the document was
	// never stored or its ETag is not known.
	ETag azcore.ETag
}

// Initial buffers, in bytes.
const (
	dataRoom     = 640
	envelopeRoom = 192
)

// encode returns the JSON text to send, without the ETag.
func (o DataObject) encode() ([]byte, error) {
	w := jsontext.NewWriter(len(o.Data) + envelopeRoom)
	w.Object(func() {
		w.Text("id", o.ID)
		w.Text(cmp.Or(o.KeyMember, PartitionKeyPath[1:]), o.PartitionKey)
		w.Text("type", o.Type)
		w.Raw("data", o.Data)
		w.Integer("ttl", int64(o.TTL))
	})
	raw, err := w.Done()
	if err != nil {
		return nil, fmt.Errorf("encode document %s: %w", o.ID, err)
	}
	return raw, nil
}

// decodeObject decodes a received document, except its partition key, which the caller knows,
// and its lifetime. The data is not decoded and shares the memory of raw.
func decodeObject(raw []byte) (DataObject, error) {
	var o DataObject
	s := jsontext.NewScanner(raw)
	err := s.Object(func(member string) (err error) {
		switch member {
		case "id":
			o.ID, err = s.RequireText()
		case "type":
			o.Type, err = s.RequireText()
		case "data":
			o.Data, err = s.Raw()
		case "_etag":
			var etag string
			etag, err = s.RequireText()
			o.ETag = azcore.ETag(etag)
		default:
			err = s.Skip()
		}
		return err
	})
	switch {
	case err != nil:
		return DataObject{}, fmt.Errorf("decode document: %w", err)
	case s.Peek() != 0:
		return DataObject{}, fmt.Errorf("decode document: %w", jsontext.ErrMalformed)
	case !utf8.Valid(raw):
		return DataObject{}, fmt.Errorf("decode document: %w", jsontext.ErrNotUTF8)
	}
	return o, nil
}

// seconds returns a lifetime as a TTL: whole seconds, rounded up, at least 1. A negative lifetime
// is for ever.
func seconds(lifetime time.Duration) int {
	if lifetime < 0 {
		return never
	}
	s := int64(lifetime / time.Second)
	if lifetime%time.Second != 0 || s == 0 {
		s++
	}
	return int(min(s, math.MaxInt32))
}
