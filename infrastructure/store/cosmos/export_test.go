package cosmos

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"feedbox/application/query"
	"feedbox/domain/aggregate"
	"feedbox/domain/event"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/unitofwork"
)

// Exports for the tests of the documents of contacts, which are in package cosmos_test because the
// kind of contacts imports this package.
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

// DocumentOf returns the document of a after a commit.
func DocumentOf[A aggregate.Aggregate](k *document.Kind[A], a A, commit aggregate.Commit, deletedTTL time.Duration) (DataObject, error) {
	kind, err := k.Checked()
	if err != nil {
		return DataObject{}, err
	}
	data, err := kind.Data(a, commit)
	return aggregateObject(kind.Type, &unitofwork.Change{ID: a.ID(), Deleted: a.Deleted(), DeletedTTL: cmp.Or(kind.DeletedTTL, deletedTTL), Data: data}), err
}

// AggregateOf reads an aggregate from its document.
func AggregateOf[A aggregate.Aggregate](k *document.Kind[A], o DataObject) (a A, err error) {
	kind, err := k.Checked()
	if err != nil {
		return a, err
	}
	id, _ := uuid.Parse(o.ID)
	state, err := (&transaction[A]{kind: kind}).state(id, o)
	if err != nil {
		return a, err
	}
	return kind.Restore(id, state.Data)
}

// EventDocumentOf returns the document of an event of an aggregate of that kind.
func EventDocumentOf[A aggregate.Aggregate](k *document.Kind[A], e event.Event, ttl time.Duration, traceparent string) (DataObject, error) {
	data, err := k.EventData(e, 1, traceparent)
	meta := e.Metadata()
	return eventObject(unitofwork.Event{ID: meta.ID.String(), Key: meta.AggregateID.String(), Data: data}, &Options{EventTTL: ttl}), err
}
