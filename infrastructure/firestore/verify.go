package firestore

import (
	"context"
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
			return fmt.Errorf("firestore: %w: deploy infrastructure/firestore/firestore.indexes.json (%s): %w", ErrIndex, of, err)
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
