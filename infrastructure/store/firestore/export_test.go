package firestore

import (
	"context"
	"fmt"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
)

// Settling is how long the feed of the emulator holds back.
const Settling = settling

// PutEvents commits events of a key that carry a time of the test's choice, as if their
// request had come at it.
func (db *DB) PutEvents(ctx context.Context, at time.Time, key string, ids ...string) error {
	var writes []*pb.Write
	for _, id := range ids {
		writes = append(writes, db.put(collectionEvents, id, fields{"slot": slotOf(key), "key": key, "document": fmt.Sprintf(`{"id":%q}`, id), memberAt: at}, absent))
	}
	_, err := db.commit(ctx, writes...)
	return err
}

// RemoveAggregate does what the TTL policy does with one that has expired.
func (db *DB) RemoveAggregate(ctx context.Context, id string) error {
	_, err := db.commit(ctx, db.remove(collectionAggregates, id, always))
	return err
}

// Narrow has searches end after so many events, and know other bounds.
func (f *Feed) Narrow(enough int, window, slack time.Duration) {
	f.enough, f.window, f.slack = enough, window.Microseconds(), slack.Microseconds()
}

// Retime gives an event the time of its commit, less some.
func (db *DB) Retime(ctx context.Context, id string, less time.Duration) error {
	found, err := db.get(ctx, db.document(collectionEvents, id))
	if err != nil {
		return err
	}
	_, err = db.commit(ctx, db.patch(collectionEvents, id, fields{memberAt: found[0].CreateTime.AsTime().Add(-less)}, always))
	return err
}
