package firestore

import (
	"context"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"

	"feedbox/domain/fault"
	"feedbox/infrastructure/store/recordstore"
)

// event returns the write of an event.
func (db *DB) event(key, id, document string, lifetime time.Duration) *pb.Write {
	w := db.put(collectionEvents, id, fields{"slot": slotOf(key), "key": key, "document": document}.expires(lifetime), absent)
	w.UpdateTransforms = []*pb.DocumentTransform_FieldTransform{{ // set by the service
		FieldPath: memberAt, TransformType: &pb.DocumentTransform_FieldTransform_SetToServerValue{SetToServerValue: pb.DocumentTransform_FieldTransform_REQUEST_TIME},
	}}
	return w
}

// AddEvent stores an event without an aggregate. A negative lifetime is for ever. Fault: Conflict
// if the id exists.
func (db *DB) AddEvent(ctx context.Context, key, id, document string, lifetime time.Duration) error {
	_, err := db.commit(ctx, db.event(key, id, document, lifetime))
	if refused(err) {
		return fault.Wrap(fault.Conflict, "", "there is an event of that id already", err)
	}
	return asFault("add event "+id+" of key "+key, err)
}

func storedOf(d *pb.Document) (recordstore.StoredEvent, error) {
	return recordstore.StoredEvent{Document: []byte(text(d, "document")), At: d.CreateTime.AsTime(), Tag: tagOf(d)}, nil
}

// Event implements recordstore.Store.
func (r Records) Event(ctx context.Context, key, id string) (recordstore.StoredEvent, error) {
	return one(ctx, r.DB, "event", collectionEvents, id, has{"key", key}, storedOf)
}

// Events implements recordstore.Store.
func (r Records) Events(ctx context.Context, key string) ([]recordstore.StoredEvent, error) {
	return all(ctx, r.DB, "read the events of key "+key, find(collectionEvents, byName, 0, condition{"key", equal, key}), storedOf)
}

// ReplaceEvent implements recordstore.Store.
func (r Records) ReplaceEvent(ctx context.Context, key, id string, read recordstore.StoredEvent, document []byte) (bool, error) {
	_, err := r.DB.commit(ctx, r.DB.patch(collectionEvents, id, fields{"document": string(document)}, hasTag(read.Tag)))
	if refused(err) {
		return false, nil
	}
	return err == nil, asFault("replace event "+id+" of key "+key, err)
}
