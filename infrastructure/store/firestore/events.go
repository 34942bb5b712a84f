package firestore

import (
	"context"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"

	"feedbox/application/relay"
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

// Recent implements recordstore.Store. The index of the feed has the times in ascending order, so the
// listing reads period by period; see relay.Windows. A count, which costs one read, decides whether to
// read a period. So a page costs about one read for each of its events and one for each period, at most
// 32. An event by its id costs one read. The time of an event in this order is that of the request,
// which precedes the commit by up to 10 s.
func (r Records) Recent(ctx context.Context, q relay.RecentQuery, listed func(recordstore.StoredEvent) relay.RecentEvent) (relay.RecentPage, error) {
	const what = "list the latest events"
	convert := func(d *pb.Document) (relay.RecentEvent, error) {
		stored, err := storedOf(d)
		stored.Key, stored.ID, stored.LSN = text(d, "key"), idOf(d), stored.At.UnixMicro()
		stored.At = moment(d, memberAt)
		return listed(stored), err
	}
	if q.ID != "" {
		found, err := one(ctx, r.DB, "event", collectionEvents, q.ID, has{}, convert)
		if fault.Is(err, fault.NotFound) || code(err) == codes.InvalidArgument { // no document can have this id
			return relay.RecentPage{}, nil
		}
		return relay.RecentPage{Events: []relay.RecentEvent{found}}, err
	}
	return relay.Windows{Least: time.Microsecond, Between: func(ctx context.Context, from, until time.Time, most int, _ string) ([]relay.RecentEvent, string, error) {
		within := events(slotsOf(0, 1<<recordstore.HashBits), from.UnixMicro(), condition{memberAt, less, until})
		n, _, err := r.DB.count(ctx, within, most+1)
		switch {
		case err != nil:
			return nil, "", asFault(what, err)
		case n == 0:
			return nil, "", nil
		case n > most && until.Sub(from) > time.Microsecond:
			return nil, "more", nil
		}
		found, err := all(ctx, r.DB, what, within, convert)
		return found, "", err
	}}.Recent(ctx, time.Now(), q)
}
