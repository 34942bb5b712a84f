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

// ErrIndex says that the database lacks an index.
var ErrIndex = errors.New("an index is missing or not built yet")

// oldest asks for the event that was stored first, as the feed asks.
func oldest() *pb.StructuredQuery {
	return find(collectionEvents, memberAt, 1, condition{"slot", oneOf, slotsOf(0, 1<<30)}, condition{memberAt, atLeast, time.UnixMicro(0)})
}

// Verify refuses a database that does not answer, or lacks an index that a query needs.
// Faults Unavailable say that it did not answer.
func (db *DB) Verify(ctx context.Context) error {
	for of, q := range map[string]*pb.StructuredQuery{
		// Not the oldest: before it lies what the TTL policy has removed, for each slot.
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

// Oldest is when the event that was stored first expires, zero for never or none, and the
// service's time.
func (db *DB) Oldest(ctx context.Context) (expires, now time.Time, err error) {
	err = db.scan(ctx, oldest(), time.Time{}, func(d *pb.Document) bool {
		expires = moment(d, memberExpires)
		return true
	})
	if err == nil {
		_, now, err = db.count(ctx, oldest(), 1)
	}
	return expires, now, asFault("look for the oldest event", err)
}

// Walk visits all aggregates, events and parked events, in the form in which a document store
// has them, until a visit fails. It is for tests and examinations: each document is a read.
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
