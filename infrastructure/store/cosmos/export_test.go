package cosmos

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"feedbox/application/query"
	"feedbox/domain/aggregate"
	"feedbox/domain/event"
	"feedbox/infrastructure/store/document"
)

// What the tests of the documents of contacts use: they are of package cosmos_test, since
// the kind of contacts is built on this package.
var (
	DecodeObject    = decodeObject
	EncodeRequest   = encodeRequest
	DecodeRequest   = decodeRequest
	EncodeAudit     = encodeAudit
	EncodeTombstone = encodeTombstone
)

// Encode is DataObject.encode.
func (o DataObject) Encode() ([]byte, error) { return o.encode() }

// DecodeAudit returns the entry that an audit document of an aggregate holds.
func DecodeAudit(id uuid.UUID, o DataObject) (query.AuditEntry, error) {
	var data auditData
	err := json.Unmarshal(o.Data, &data)
	return data.entry(id), err
}

// DocumentOf returns the document of a as a commit leaves it.
func DocumentOf[A aggregate.Aggregate](k *document.Kind[A], a A, commit aggregate.Commit, deletedTTL time.Duration) (DataObject, error) {
	kind, err := withDefaults(k, &Options{DeletedTTL: deletedTTL})
	if err != nil {
		return DataObject{}, err
	}
	return documentOf(kind, a, commit)
}

// AggregateOf reads an aggregate from its document.
func AggregateOf[A aggregate.Aggregate](k *document.Kind[A], o DataObject) (A, error) {
	kind, err := withDefaults(k, &Options{})
	if err != nil {
		panic(err)
	}
	id, _ := uuid.Parse(o.ID)
	return aggregateOf(kind, id, o)
}

// EventDocumentOf returns the document of an event of an aggregate of that kind.
func EventDocumentOf[A aggregate.Aggregate](k *document.Kind[A], e event.Event, ttl time.Duration, traceparent string) (DataObject, error) {
	var documents ContainerContext
	documents.options = Options{EventTTL: ttl}
	b := eventOutbox{documents: &documents, encode: k.EventData}
	return b.document(e, traceparent)
}
