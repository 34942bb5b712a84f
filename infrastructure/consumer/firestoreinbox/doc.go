// Package firestoreinbox stores a consumer's inbox in the Firestore database to which its handlers
// write. Do runs a handler and records its event in one transaction, so the writes of an event are
// stored exactly once, even after a crash.
//
//	database, err := firestore.NewClient(ctx, "shop")
//	inbox, err := firestoreinbox.New(database, "billing", nil)
//	err = inbox.Do(ctx, received, func(ctx context.Context, tx *firestore.Transaction) error {
//		orders := firestore.Update{Path: "orders", Value: firestore.Increment(1)}
//		return tx.Update(database.Collection("totals").Doc(received.Key), []firestore.Update{orders})
//	})
//
// Several consumers may share the collection, because each has its own document per key. Field
// expireAt has the expiry of a document. It takes effect only with a TTL policy on that field.
//
// The package starts no goroutines.
package firestoreinbox
