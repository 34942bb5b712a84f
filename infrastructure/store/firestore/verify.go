package firestore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
)

// ErrIndex reports that the database lacks an index.
var ErrIndex = errors.New("an index is missing or not built yet")

// oldest queries the oldest event by the index of the feed.
func oldest() *pb.StructuredQuery {
	return find(collectionEvents, memberAt, 1, condition{"slot", oneOf, slotsOf(0, 1<<30)}, condition{memberAt, atLeast, time.UnixMicro(0)})
}

// Verify refuses a database that lacks an index. If the database does not answer, the fault is
// Unavailable.
func (db *DB) Verify(ctx context.Context) error {
	for of, q := range map[string]*pb.StructuredQuery{
		// From now on, not from the oldest: the query would first skip the index entries of all events
		// that the TTL policy has deleted in each slot.
		collectionEvents: events(slotsOf(0, 1), time.Now().UnixMicro()), collectionParked: find(collectionParked, "position", 1, condition{"line", equal, ""}),
	} {
		err := db.scan(ctx, q, time.Time{}, func(*pb.Document) bool { return true })
		if code(err) == codes.FailedPrecondition {
			return fmt.Errorf("firestore: %w: deploy infrastructure/store/firestore/firestore.indexes.json (%s): %w", ErrIndex, of, err)
		}
		if err != nil {
			return asFault("examine the database", err)
		}
	}
	return nil
}

// Oldest returns the expiry of the oldest event, zero for never or none, and the time of the
// service.
func (db *DB) Oldest(ctx context.Context) (expires, now time.Time, err error) {
	err = db.scan(ctx, oldest(), time.Time{}, func(d *pb.Document) bool {
		expires = moment(d, memberExpires)
		return true
	})
	if err == nil {
		_, now, err = db.count(ctx, oldest(), 1)
	}
	return expires, now, asFault("read the oldest event", err)
}

// Walk calls visit for all aggregates, events and parked events, in the form of a document store,
// until visit fails. It is for tests and diagnosis, because each document costs a read.
func (db *DB) Walk(ctx context.Context, visit func(raw []byte) error) (err error) {
	for collection, form := range map[string]func(d *pb.Document, id string) any{
		collectionAggregates: func(d *pb.Document, id string) any {
			return map[string]any{"id": id, "type": text(d, "type"), "data": json.RawMessage(text(d, "data"))}
		},
		collectionEvents: func(d *pb.Document, _ string) any { return json.RawMessage(text(d, "document")) },
		collectionParked: func(d *pb.Document, _ string) any {
			return map[string]string{"id": text(d, "event"), "partitionKey": text(d, "key"), "type": "parkedEvent"}
		},
	} {
		failed := db.scan(ctx, find(collection, byName, 0), time.Time{}, func(d *pb.Document) bool {
			var raw []byte
			if raw, err = json.Marshal(form(d, idOf(d))); err == nil {
				err = visit(raw)
			}
			return err == nil
		})
		if err != nil || failed != nil {
			return asFault("read collection "+collection, cmp.Or(err, failed))
		}
	}
	return nil
}
