package firestore

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
)

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
