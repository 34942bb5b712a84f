package firestore

import (
	"context"
	"fmt"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
)

// Settling is the delay of the feed on the emulator.
const Settling = settling

// Unsettle makes the feed deliver commits at once, as that of the service. The emulator shows a commit to all
// reads after its answer.
func (db *DB) Unsettle() { db.settle = 0 }

// PutEvents commits events of a key with a given timestamp, as if it were that of the request.
func (db *DB) PutEvents(ctx context.Context, at time.Time, key string, ids ...string) error {
	var writes []*pb.Write
	for _, id := range ids {
		writes = append(writes, db.put(collectionEvents, id, fields{"slot": slotOf(key), "key": key, "document": fmt.Sprintf(`{"id":%q}`, id), memberAt: at}, absent))
	}
	_, err := db.commit(ctx, writes...)
	return err
}

// RemoveAggregate deletes an expired aggregate like the TTL policy.
func (db *DB) RemoveAggregate(ctx context.Context, id string) error {
	_, err := db.commit(ctx, db.remove(collectionAggregates, id, always))
	return err
}

// Narrow sets the limit of a search and the bounds of timestamps.
func (f *Feed) Narrow(enough int, window, slack time.Duration) {
	f.enough, f.window, f.slack = enough, window.Microseconds(), slack.Microseconds()
}

// Retime sets the timestamp of an event to its commit time minus less.
func (db *DB) Retime(ctx context.Context, id string, less time.Duration) error {
	found, err := db.get(ctx, db.document(collectionEvents, id))
	if err != nil {
		return err
	}
	_, err = db.commit(ctx, db.patch(collectionEvents, id, fields{memberAt: found[0].CreateTime.AsTime().Add(-less)}, always))
	return err
}
