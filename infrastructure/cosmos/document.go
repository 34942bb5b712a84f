package cosmos

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// typeContact is the type of the documents that hold contacts.
const typeContact = "contact"

// never is the TTL of a document that does not expire, in a container whose
// default TTL is on.
const never = -1

// DataObject is a stored document: what all documents share, and the data.
type DataObject struct {
	// ID is unique within the partition key.
	ID string
	// PartitionKey is the id of the contact the document belongs to.
	PartitionKey string
	// Type says what Data holds.
	Type string
	// Data is a JSON object.
	Data json.RawMessage
	// TTL is the lifetime in seconds from the last write; -1 is for ever.
	TTL int
	// ETag changes with every write. It is quoted as in HTTP and empty while the
	// document was never stored, or its ETag is not known.
	ETag azcore.ETag
}

// storedObject is the wire form of a DataObject.
type storedObject struct {
	ID           string          `json:"id"`
	PartitionKey string          `json:"partitionKey"`
	Type         string          `json:"type"`
	Data         json.RawMessage `json:"data"`
	TTL          int             `json:"ttl"`
	ETag         azcore.ETag     `json:"_etag,omitempty"`
}

// encode returns the document as it is sent. The ETag is not part of it.
func (o DataObject) encode() ([]byte, error) {
	raw, err := json.Marshal(storedObject{ID: o.ID, PartitionKey: o.PartitionKey, Type: o.Type, Data: o.Data, TTL: o.TTL})
	if err != nil {
		return nil, fmt.Errorf("encode document %s: %w", o.ID, err)
	}
	return raw, nil
}

// decodeObject reads a document as it was received.
func decodeObject(raw []byte) (DataObject, error) {
	var s storedObject
	if err := json.Unmarshal(raw, &s); err != nil {
		return DataObject{}, fmt.Errorf("decode document: %w", err)
	}
	return DataObject(s), nil
}

// seconds turns a lifetime into a TTL: whole seconds, rounded up, at least 1.
// A negative lifetime is for ever.
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
